"""What goes wrong on the driver's own connections, for both libraries."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest

from goncordia.driver import Change, Finish, ListFilter, NewJob
from goncordia.errors import (
    ConfigurationError,
    DriverBusyError,
    DriverError,
    DriverUnavailableError,
    MigrationRequiredError,
)
from goncordia_conformance.servers.schemas import Roles
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver
from goncordia_driver_pg.psycopg_connections import PsycopgLibrary
from goncordia_sql import Op, Statement

NewJobs = Callable[..., NewJob]

NOWHERE = "postgresql://postgres@127.0.0.1:1/postgres"


def options(dsn: str, **settings: str) -> str:
    """The DSN, with settings for each connection."""
    said = "%20".join(f"-c%20{name}%3D{value}" for name, value in settings.items())
    return f"{dsn}{'&' if '?' in dsn else '?'}options={said}"


@contextlib.asynccontextmanager
async def locked(db: asyncpg.Connection, schema: str) -> AsyncIterator[None]:
    """Nobody may write jobs."""
    async with db.transaction():
        await db.execute(f'LOCK TABLE "{schema}".job IN EXCLUSIVE MODE')
        yield


async def waiting(db: asyncpg.Connection, task: asyncio.Task[Any]) -> list[int]:
    """The backends that wait for a lock of this connection; waits until the task's does."""
    query = "SELECT pid FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))"
    async with asyncio.timeout(60):
        found: list[asyncpg.Record] = []
        while not found:
            await asyncio.sleep(0.01)
            found = await db.fetch(query, db.get_server_pid())
            assert not task.done(), task
    return [row["pid"] for row in found]


# -------------------------------------------------------------------- at the opening


async def test_a_server_that_is_not_there(make: Any) -> None:
    driver = make(NOWHERE)
    began = time.monotonic()
    with pytest.raises(
        DriverUnavailableError, match=r"^could not connect to 127\.0\.0\.1:1: "
    ) as caught:
        await driver.open()
    assert caught.value.outcome == "not_applied"
    assert caught.value.__cause__ is not None
    assert time.monotonic() - began < 10
    await driver.aclose()


async def test_a_database_that_is_not_there(make: Any, pg_dsn: str) -> None:
    with pytest.raises(ConfigurationError, match=r"dsn: .*nonsense.* does not exist"):
        await make(pg_dsn.rpartition("/")[0] + "/nonsense").open()


async def test_a_server_without_a_free_connection_is_busy(
    make: Any, pg_roles: Roles, sync_db: psycopg.Connection
) -> None:
    role = urlsplit(pg_roles.worker).username
    sync_db.execute(f"ALTER ROLE {role} CONNECTION LIMIT 0".encode())
    with pytest.raises(DriverBusyError, match="too many connections for role") as caught:
        await make(pg_roles.worker).open()
    assert caught.value.outcome == "not_applied"


@pytest.mark.parametrize(
    "line",
    [
        "sorry, too many clients already",
        'too many connections for database "x"',
        "remaining connection slots are reserved for roles with the SUPERUSER attribute",
    ],
)
def test_libpqs_words_for_no_free_connection_are_known(line: str) -> None:
    said = psycopg.OperationalError(f"connection failed: FATAL:  {line}")
    assert PsycopgLibrary().failure(said, sent=False).code == "53300"


async def test_a_pool_of_yours_that_reaches_no_server(pg_schema: str) -> None:
    async with asyncpg.create_pool(NOWHERE, min_size=0) as pool:
        with pytest.raises(DriverUnavailableError, match=r"^could not connect to the server: "):
            await AsyncpgDriver(pool, schema=pg_schema).open()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-c%20nonsense%3D5", 'dsn: .* unrecognized configuration parameter "nonsense"'),
        ("-c%20lock_timeout%3Dlong", 'dsn: .* invalid value for parameter "lock_timeout"'),
        ("-c%20port%3D5", 'dsn: .* parameter "port" cannot be changed'),
    ],
)
async def test_a_setting_that_the_server_refuses(
    make: Any, pg_dsn: str, options: str, says: str
) -> None:
    driver = make(f"{pg_dsn}{'&' if '?' in pg_dsn else '?'}options={options}")
    with pytest.raises(ConfigurationError, match=says):
        await driver.open()
    await driver.aclose()


@pytest.mark.parametrize(
    ("cls", "word", "says"),
    [
        (AsyncpgDriver, "gsslib=nonesuch", "pool: gsslib parameter must be"),
        (PsycopgDriver, "sslnegotiation=nonesuch", "pool: invalid sslnegotiation value: "),
        (PsycopgDriver, "keepalives_idle=nonesuch", "pool: invalid integer value "),
        (PsycopgDriver, "connect_timeout=nonesuch", "pool: bad value for connect_timeout: "),
    ],
)
async def test_a_value_that_the_library_refuses(
    cls: Any, pg_dsn: str, word: str, says: str
) -> None:
    driver = cls(f"{pg_dsn}{'&' if '?' in pg_dsn else '?'}{word}")
    with pytest.raises(ConfigurationError, match=f"^{says}"):
        await driver.open()
    await driver.aclose()


async def test_a_schema_that_is_not_there(make: Any, new_job: NewJobs) -> None:
    async with make() as driver:
        with pytest.raises(MigrationRequiredError, match="run migrate"):
            await driver.ready()
        with pytest.raises(MigrationRequiredError, match="run migrate"):
            await driver.executor().insert_many([new_job()])


# -------------------------------------------------------------------- while it runs


async def test_connections_that_were_ended_are_made_anew(
    driver: Any, db: asyncpg.Connection, new_job: NewJobs
) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(driver.executor().insert_many([new_job()]))
    await db.execute("""
        SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
        WHERE application_name = 'goncordia' AND datname = current_database()
        """)
    job = new_job()
    for _ in range(20):
        try:
            await driver.executor().insert_many([job])
            break
        except DriverUnavailableError:
            pass
    assert await driver.executor().count(ListFilter()) == 6


@pytest.mark.parametrize("count", [1, 2])
async def test_a_connection_that_is_ended_in_the_middle(
    driver: Any, db: asyncpg.Connection, pg_dsn: str, pg_schema: str, new_job: NewJobs, count: int
) -> None:
    jobs = [new_job() for _ in range(count)]
    async with locked(db, pg_schema):
        inserting = asyncio.create_task(driver.executor().insert_many(jobs))
        (pid,) = await waiting(db, inserting)
        await db.execute("SELECT pg_terminate_backend($1)", pid)
        with pytest.raises(DriverUnavailableError) as caught:
            await inserting
    # It was a transaction of its own: who knows.
    assert caught.value.outcome == "unknown"
    assert caught.value.__cause__ is not None
    results = await driver.executor().insert_many(jobs)
    assert [each.status for each in results] == ["INSERTED"] * count


async def test_jobs_with_keys_are_one_transaction_which_did_not_come_to_its_commit(
    driver: Any, db: asyncpg.Connection, pg_schema: str, new_job: NewJobs
) -> None:
    jobs = [new_job(unique_key=bytes([n]) * 32) for n in range(2)]
    async with locked(db, pg_schema):
        inserting = asyncio.create_task(driver.executor().insert_many(jobs))
        (pid,) = await waiting(db, inserting)
        await db.execute("SELECT pg_terminate_backend($1)", pid)
        with pytest.raises(DriverUnavailableError) as caught:
            await inserting
    assert caught.value.outcome == "not_applied"
    assert await driver.executor().count(ListFilter()) == 0


async def test_before_its_commit_a_transaction_has_written_nothing(
    driver: Any, db: asyncpg.Connection, pg_schema: str, new_job: NewJobs
) -> None:
    job = new_job()
    await driver.executor().insert_many([job])
    async with locked(db, pg_schema):
        changing = asyncio.create_task(driver.executor().change_many([Change(job.id, "delete")]))
        (pid,) = await waiting(db, changing)
        await db.execute("SELECT pg_terminate_backend($1)", pid)
        with pytest.raises(DriverUnavailableError) as caught:
            await changing
    assert caught.value.outcome == "not_applied"


@pytest.mark.parametrize("setting", ["lock_timeout", "statement_timeout"])
async def test_a_timeout_of_the_server(
    make: Any, migrated: str, pg_dsn: str, db: asyncpg.Connection, new_job: NewJobs, setting: str
) -> None:
    async with make(options(pg_dsn, **{setting: "100"})) as driver:
        await driver.ready()
        async with locked(db, migrated):
            with pytest.raises(DriverBusyError) as caught:
                await driver.executor().insert_many([new_job()])
        assert caught.value.outcome == "not_applied"
        await driver.executor().insert_many([new_job()])


async def test_an_exhausted_pool(
    make: Any, migrated: str, db: asyncpg.Connection, new_job: NewJobs
) -> None:
    async with make(pool_size=1, timeout=0.2) as driver:
        await driver.ready()
        async with locked(db, migrated):
            inserting = asyncio.create_task(driver.executor().insert_many([new_job()]))
            await waiting(db, inserting)
            with pytest.raises(DriverBusyError, match="none of the pool's") as caught:
                await driver.executor().count(ListFilter())
            assert caught.value.outcome == "not_applied"
        await inserting


async def test_a_cancelled_call_leaves_the_pool_whole(
    make: Any, migrated: str, db: asyncpg.Connection, new_job: NewJobs
) -> None:
    async with make(pool_size=1, timeout=5) as driver:
        await driver.ready()
        job = new_job()
        await driver.executor().insert_many([job])
        executor = driver.executor()
        calls: list[Callable[[], Any]] = [
            lambda: executor.insert_many([new_job()]),
            lambda: executor.change_many([Change(job.id, "delete")]),
        ]
        for call in calls:
            async with locked(db, migrated):
                calling = asyncio.create_task(call())
                await waiting(db, calling)
                calling.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await calling
            # Whether it took effect all the same, nobody knows.
            assert await driver.executor().count(ListFilter()) in {0, 1, 2}


async def test_a_read_only_server(make: Any, migrated: str, pg_dsn: str, new_job: NewJobs) -> None:
    async with make(options(pg_dsn, default_transaction_read_only="on")) as driver:
        await driver.ready()
        with pytest.raises(DriverUnavailableError, match="the server is read-only") as caught:
            await driver.executor().insert_many([new_job()])
        assert caught.value.outcome == "not_applied"


@pytest.mark.parametrize("isolation", ["repeatable%20read", "serializable"])
async def test_another_isolation_level_by_default(
    make: Any, migrated: str, pg_dsn: str, new_job: NewJobs, claim_all: Any, isolation: str
) -> None:
    escaped = isolation.replace("%20", "%5C%20")
    dsn = options(pg_dsn, default_transaction_isolation=escaped)
    async with make(dsn) as driver:
        await driver.ready()
        executor = driver.executor()
        jobs = [new_job(unique_key=bytes([n]) * 32) for n in range(20)]
        answers = await asyncio.gather(*[executor.insert_many([job]) for job in jobs + jobs])
        assert sum(answer[0].status == "INSERTED" for answer in answers) == 20
        rows = await claim_all(driver)
        finishes = [Finish(row.claim, "complete") for row in rows]
        outcomes = await asyncio.gather(
            *[executor.finish_many(finishes[n:] + finishes[:n]) for n in range(8)]
        )
        done = sum(each.status == "DONE" for answer in outcomes for each in answer)
        assert done == 20


async def test_too_few_rights_are_said(make: Any, pg_roles: Any, new_job: NewJobs) -> None:
    async with make(pg_roles.migrator, schema=pg_roles.schema) as migrator:
        await migrator.migrate()
    async with make(pg_roles.enqueuer, schema=pg_roles.schema) as driver:
        with pytest.raises(DriverUnavailableError, match="too few rights in schema") as caught:
            await driver.executor().insert_many([new_job()])
        assert caught.value.outcome == "not_applied"
        assert "docs/postgresql/roles.md" in str(caught.value)


async def test_errors_are_translated_on_the_way_to_a_connection(make: Any) -> None:
    """A server that goes away after the opening: the pool's own error."""
    driver = make(NOWHERE, timeout=0.3)
    with pytest.raises(DriverError) as caught:
        await driver.executor().count(ListFilter())
    assert caught.value.outcome == "not_applied"
    await driver.aclose()


@pytest.mark.parametrize(("alone", "outcome"), [(True, "unknown"), (False, "not_applied")])
async def test_an_error_after_a_part_that_holds(
    driver: Any, new_job: NewJobs, alone: bool, outcome: str
) -> None:
    dialect, jobs = driver._dialect, [new_job()]

    def operation() -> Op[None]:
        insert = driver._operations.insert.insert_many(jobs)
        step = next(insert)
        assert isinstance(step, Statement)
        yield step._replace(alone=alone)
        yield dialect.sql("SELECT 1 / 0").alone()

    with pytest.raises(DriverError) as caught:
        await driver._runner.run(await driver._pool(), operation)
    assert caught.value.outcome == outcome
    assert await driver.executor().count(ListFilter()) == (1 if alone else 0)
