"""Through a real PgBouncer in transaction mode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

import asyncpg
import psycopg
import psycopg_pool
import pytest

from goncordia import Client, Job, Registry, SyncClient, WorkerPool
from goncordia.driver import Change, Finding, ListFilter, NewJob
from goncordia.errors import ConfigurationError
from goncordia.ids import new_session_id
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver

NewJobs = Callable[..., NewJob]


@pytest.fixture
def bouncer(pgbouncer_dsn: str, pg_dsn: str) -> str:
    """The database of the test, through PgBouncer."""
    return urlsplit(pgbouncer_dsn)._replace(path=urlsplit(pg_dsn).path).geturl()


@pytest.fixture
async def driver(make: Any, migrated: str, bouncer: str) -> AsyncIterator[Any]:
    async with make(bouncer, prepare=False) as driver:
        await driver.ready()
        yield driver


@dataclass
class Note:
    kind: ClassVar[str] = "note"
    number: int


async def test_a_pool_works(driver: Any) -> None:
    registry = Registry()
    seen: list[int] = []

    @registry.worker(Note)
    async def note(job: Job[Note]) -> None:
        seen.append(job.args.number)

    client = Client(driver)
    await client.enqueue_many([Note(n) for n in range(200)])
    async with WorkerPool(driver, registry, queues=["default"], concurrency=20) as pool:
        await asyncio.gather(*[client.enqueue(Note(n)) for n in range(200, 250)])
        await pool.drain()
    assert sorted(seen) == list(range(250))


async def test_everything_at_once(driver: Any, new_job: NewJobs) -> None:
    executor = driver.executor()
    jobs = [new_job(unique_key=bytes([n]) * 32) for n in range(50)]

    async def one(job: NewJob) -> None:
        await executor.insert_many([job])
        await executor.get_many([job.id])
        await executor.change_many([Change(job.id, "cancel")])
        await executor.queue_stats()

    await asyncio.gather(*[one(job) for job in jobs])
    assert await executor.count(ListFilter()) == 50


async def test_it_beats_and_polls(driver: Any) -> None:
    assert driver.listener() is None
    assert driver.capabilities.wakeups == "none"
    session = new_session_id()
    await driver.executor().session_open(session, "w", 60)
    heart = driver.heartbeater()
    assert (await asyncio.to_thread(heart.beat, session, 60)).held
    await asyncio.to_thread(heart.close)
    (finding,) = [each for each in await driver.check() if "LISTEN" in each.message]
    assert finding.level == "warning"


async def test_with_a_side_it_listens(make: Any, migrated: str, bouncer: str, pg_dsn: str) -> None:
    async with make(bouncer, prepare=False, side=pg_dsn) as driver:
        assert driver.capabilities.wakeups == "all"
        listener = driver.listener()
        wakes = listener.wakes()
        first = asyncio.ensure_future(anext(wakes))
        while not first.done():
            await driver.executor().queue_pause("a")
            await asyncio.sleep(0.02)
        assert (await first).queue == "a"
        await listener.aclose()
        assert not [each for each in await driver.check() if "LISTEN" in each.message]


async def test_in_transactions_of_the_callers(driver: Any, bouncer: str, new_job: NewJobs) -> None:
    if isinstance(driver, AsyncpgDriver):
        mine = await asyncpg.connect(bouncer, statement_cache_size=0)
        async with mine.transaction():
            await driver.unwrap_tx(mine).insert_many([new_job(), new_job()])
        await mine.close()
    else:
        async with await psycopg.AsyncConnection.connect(
            bouncer, prepare_threshold=None
        ) as connection:
            await driver.unwrap_tx(connection).insert_many([new_job(), new_job()])
    assert await driver.executor().count(ListFilter()) == 2


def test_synchronous_code(make: Any, migrated: str, bouncer: str) -> None:
    with make(bouncer, prepare=False) as driver:
        client = SyncClient(driver)
        for n in range(20):
            client.enqueue(Note(n))
        assert client.count() == 20


async def test_pools_say_by_themselves_that_nothing_is_prepared(
    migrated: str, bouncer: str, new_job: NewJobs
) -> None:
    async with asyncpg.create_pool(bouncer, statement_cache_size=0, min_size=0) as pool:
        driver = AsyncpgDriver(pool, schema=migrated)
        assert driver.listener() is None
        for _ in range(10):
            await asyncio.gather(*[driver.executor().insert_many([new_job()]) for _ in range(10)])
        assert await driver.executor().count(ListFilter()) == 100
        await driver.aclose()
    kwargs = {"prepare_threshold": None}
    async with psycopg_pool.AsyncConnectionPool(bouncer, kwargs=kwargs, open=False) as other:
        assert PsycopgDriver(other, schema=migrated).listener() is None


def of_poolers(findings: list[Finding]) -> list[str]:
    return [each.message for each in findings if "a pooler in transaction mode is" in each.message]


async def checked(driver: Any) -> list[Finding]:
    """What it says without being opened before: that may fail already."""
    try:
        return list(await driver.check())
    finally:
        await driver.aclose()


async def test_prepared_statements_are_warned_of(make: Any, migrated: str, bouncer: str) -> None:
    for _ in range(2):  # the second time those of the first may be in the way
        (finding,) = [each for each in await checked(make(bouncer)) if "pooler" in each.message]
        assert finding.level == "warning"
        assert "(prepare=False, or your pool's own setting) and give side=" in finding.message


async def test_and_in_a_pool_of_the_callers(migrated: str, bouncer: str) -> None:
    async with asyncpg.create_pool(bouncer, min_size=0, max_size=2) as pool:
        assert len(of_poolers(await checked(AsyncpgDriver(pool, schema=migrated)))) == 1
    async with psycopg_pool.AsyncConnectionPool(
        bouncer, min_size=0, max_size=2, open=False
    ) as other:
        assert len(of_poolers(await checked(PsycopgDriver(other, schema=migrated)))) == 1


async def test_of_the_server_itself_and_without_prepared_statements_nothing_is_said(
    make: Any, driver: Any, migrated: str, pg_dsn: str
) -> None:
    assert of_poolers(await driver.check()) == []
    async with make(pg_dsn) as direct:
        assert of_poolers(await direct.check()) == []
    async with make(pg_dsn, pool_size=1) as direct:  # it does not wait for a second
        assert of_poolers(await direct.check()) == []


async def test_a_parameter_that_the_pooler_does_not_know(make: Any, bouncer: str) -> None:
    dsn = f"{bouncer}{'&' if '?' in bouncer else '?'}options=-c%20lock_timeout%3D100"
    driver = make(dsn, prepare=False)
    with pytest.raises(
        ConfigurationError,
        match=r"dsn: .*unsupported startup parameter.*; leave it out, or add it to ignore_startup",
    ):
        await driver.open()
    await driver.aclose()
