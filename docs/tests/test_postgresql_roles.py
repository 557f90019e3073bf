"""The rights in docs/postgresql/roles.md: they are enough, and not one of them is too many."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import asyncpg
import psycopg
import pytest

from goncordia import Client, DriverError, FixedRetry, Job, Registry, UniqueOpts, WorkerPool
from goncordia.driver import FetchRequest, Finish, Mark, PruneRequest, QueueFetch
from goncordia_conformance.servers.schemas import Roles
from goncordia_driver_pg import AsyncpgDriver

PAGE = Path(__file__).parents[1] / "postgresql" / "roles.md"
LEASE = 30.0
SECONDS = 30


@dataclass
class Ping:
    kind: ClassVar[str] = "ping"
    number: int = 0


def page(name: str) -> str:
    """A block of the page, with the places for names that ``Roles.grant`` fills in."""
    found = re.search(rf"<!-- not run: {name} -->\n```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None, name
    names = {"goncordia": "{schema}", "shop_worker": "{worker}", "shop_web": "{enqueuer}"}
    return re.sub(r"\b(goncordia|shop_worker|shop_web)\b", lambda name: names[name[0]], found[1])


def each_right(name: str) -> list[tuple[str, str, str]]:
    """The rights of a block one by one: which, on what, whose."""
    found = []
    for rights, things, role in re.findall(r"GRANT (.*?) ON (.*?) TO (.*?);", page(name)):
        for right in re.findall(r"\w+(?: \([^)]*\))?", rights):
            found += [(right, thing, role) for thing in things.split(", ")]
    return found


@asynccontextmanager
async def installed(roles: Roles) -> AsyncIterator[AsyncpgDriver]:
    """The schema's owner, who has migrated."""
    async with AsyncpgDriver(roles.migrator, schema=roles.schema) as driver:
        await driver.migrate()
        yield driver


# ---------------------------------------------------------------- what each of them does


async def enqueues(dsn: str, schema: str) -> None:
    """All ways of enqueueing."""
    async with AsyncpgDriver(dsn, schema=schema) as driver:
        client = Client(driver)
        await client.enqueue(Ping())
        await client.enqueue_many([Ping(1), Ping(2)])
        await client.enqueue(Ping(), pipeline_id=uuid.uuid4().hex)
        await client.enqueue(Ping(), delay=0.2)
        for _ in range(2):
            await client.enqueue(Ping(), unique=UniqueOpts(key="k"))
        await client.enqueue(Ping(), unique=UniqueOpts(by_args=True, by_period=60))
        connection = await asyncpg.connect(dsn)
        try:
            async with connection.transaction():
                await client.enqueue_tx(connection, Ping())
                await client.enqueue_tx(connection, Ping(), unique=UniqueOpts(key="k"))
        finally:
            await connection.close()


async def looks(dsn: str, schema: str) -> None:
    async with AsyncpgDriver(dsn, schema=schema) as driver:
        client = Client(driver)
        job, *_ = (await client.list()).jobs
        assert (await client.get(job)).id == job.id
        assert await client.count() > 0


async def changes(dsn: str, schema: str) -> None:
    """Cancel and retry; and take a key whose period is over."""
    async with AsyncpgDriver(dsn, schema=schema) as driver:
        client = Client(driver)
        job, *_ = (await client.list(state="available")).jobs
        await client.cancel(job)
        await client.retry(job)
        await client.reschedule(job, delay=0)
        connection = await asyncpg.connect(dsn)
        try:
            async with connection.transaction():
                await client.cancel_tx(connection, job)
        finally:
            await connection.close()


async def pauses(dsn: str, schema: str) -> None:
    async with AsyncpgDriver(dsn, schema=schema) as driver:
        await Client(driver).queue_pause("q")
        await Client(driver).queue_resume("q")


async def works(dsn: str, schema: str) -> None:
    """What a worker pool does, step by step; jobs of a group are there."""
    async with AsyncpgDriver(dsn, schema=schema) as driver:
        await driver.verify()
        executor, session = driver.executor(), uuid.uuid4()
        put = await executor.record_put("leader/x", b"1", 0, b"a")
        put = await executor.record_put("leader/x", b"2", put.version, b"b")
        assert await executor.record_get("leader/x") is not None
        await executor.record_put("leader/x", None, put.version, b"c")
        await executor.session_open(session, "w", LEASE)
        assert (await executor.session_beat(session, LEASE)).held
        fetched = await executor.fetch(
            FetchRequest(session, 1, 100, (QueueFetch("default", 100),), "w")
        )
        claims = [row.claim for row in fetched.jobs if row.claim is not None]
        assert claims
        await executor.mark_many([Mark(claim, started=True) for claim in claims])
        await executor.finish_many([Finish(claim, "complete") for claim in claims])
        assert await executor.expire(session, 10) == []
        for _ in range(2):  # jobs, and then groups without any
            now = await executor.now() + timedelta(seconds=1)
            await executor.prune(PruneRequest(completed=now, limit=1000))
        await executor.session_close(session)


async def a_pool_works(dsn: str, schema: str) -> None:
    """The same by a pool, with a failure."""
    registry = Registry()

    @registry.worker(Ping, retry_policy=FixedRetry(0.01))
    async def ping(job: Job[Ping]) -> None:
        await job.checkpoint(job.attempt)
        if job.attempt == 1:
            raise ConnectionError

    async with (
        asyncio.timeout(SECONDS),
        AsyncpgDriver(dsn, schema=schema) as driver,
        WorkerPool(driver, registry) as pool,
    ):
        await pool.drain(within=SECONDS)
        assert await Client(driver).count(state="completed") > 0


async def views(dsn: str, schema: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        await connection.execute(f'SELECT kind, args FROM "{schema}".jobs'.encode())


async def completes(dsn: str, schema: str) -> None:
    """Ends claims of a group in a transaction of its own; the owner's pool has fetched them."""
    owner = dsn.replace("enqueuer", "migrator", 1)
    async with AsyncpgDriver(owner, schema=schema) as driver:
        executor, session = driver.executor(), uuid.uuid4()
        await executor.session_open(session, "w", LEASE)
        fetched = await executor.fetch(FetchRequest(session, 1, 100, (QueueFetch("default", 100),)))
        connection = await asyncpg.connect(dsn)
        try:
            async with connection.transaction():
                tx = driver.unwrap_tx(connection)
                claims = [row.claim for row in fetched.jobs if row.claim is not None]
                ended = await tx.finish_many([Finish(claim, "complete") for claim in claims])
                assert {each.status for each in ended} == {"DONE"}
        finally:
            await connection.close()
            await executor.session_close(session)


Deeds = list[Callable[[str, str], Awaitable[None]]]

CASES: dict[str, tuple[list[str], Deeds, Deeds]] = {
    # What is granted; what that is enough for; what it is not enough for.
    "web": (["web"], [enqueues, looks], [changes, pauses, works]),
    "web blind": (["web blind"], [enqueues], [looks, changes, pauses, works, views]),
    "web changes": (["web", "web changes"], [changes], [pauses, works]),
    "worker": (["worker"], [works, a_pool_works, looks, changes], [enqueues, pauses]),
    "operator": (["worker", "operator"], [pauses], [enqueues]),
    "completer": (["completer"], [completes], [enqueues, pauses]),
    "viewer": (["viewer"], [views], [enqueues, looks, changes, works]),
}


@pytest.mark.parametrize("case", CASES)
async def test_they_are_enough(case: str, pg_roles: Roles) -> None:
    granted, can, cannot = CASES[case]
    whose = pg_roles.worker if "worker" in granted else pg_roles.enqueuer
    async with installed(pg_roles) as driver:
        for name in granted:
            pg_roles.grant(page(name))
        for deed in can:
            await enqueues(pg_roles.migrator, pg_roles.schema)
            await deed(whose, pg_roles.schema)
        for deed in cannot:
            await enqueues(pg_roles.migrator, pg_roles.schema)
            with pytest.raises((DriverError, psycopg.errors.InsufficientPrivilege)) as caught:
                await deed(whose, pg_roles.schema)
            assert "permission denied" in str(caught.value)
        assert driver.schema == pg_roles.schema


@pytest.mark.parametrize("case", CASES)
async def test_each_is_needed(case: str, pg_roles: Roles) -> None:
    granted, can, _ = CASES[case]
    whose = pg_roles.worker if "worker" in granted else pg_roles.enqueuer
    deeds = [deed for deed in can if deed is not a_pool_works]  # it would try again for ever
    async with installed(pg_roles):
        for name in granted:
            pg_roles.grant(page(name))
        for right, thing, role in each_right(case):
            pg_roles.grant(f"REVOKE {right} ON {thing} FROM {role}")
            said = "nothing"
            for deed in deeds:
                await enqueues(pg_roles.migrator, pg_roles.schema)
                try:
                    await deed(whose, pg_roles.schema)
                except (DriverError, psycopg.errors.InsufficientPrivilege) as error:
                    said = str(error)
                    break
            name = "" if thing.startswith("SCHEMA") else thing.rpartition(".")[2]
            refused = re.search(rf"permission denied for (schema|table|view) {name}", said)
            assert refused, f"without {right} on {thing}: {said}"
            pg_roles.grant(f"GRANT {right} ON {thing} TO {role}")


async def rights(dsn: str, schema: str) -> list[str]:
    """What doctor says of the rights."""
    async with AsyncpgDriver(dsn, schema=schema) as driver:
        return [each.message for each in await driver.check() if "the role" in each.message]


async def test_doctor_says_what_a_role_may(pg_roles: Roles) -> None:
    async with installed(pg_roles):
        for name in ("worker", "web"):
            pg_roles.grant(page(name))
        (of_worker,) = await rights(pg_roles.worker, pg_roles.schema)
        (of_web,) = await rights(pg_roles.enqueuer, pg_roles.schema)
        assert "may work on jobs, but lacks INSERT on job, to enqueue" in of_worker
        assert "may enqueue, but not work" in of_web
        pg_roles.grant("GRANT INSERT ON {schema}.job TO {worker}")
        assert await rights(pg_roles.worker, pg_roles.schema) == []
