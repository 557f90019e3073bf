"""A network that carries nothing any more and says nothing of it: every wait has its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeAlias

import asyncpg
import psycopg
import psycopg_pool
import pytest

from goncordia.driver import AnyDriver, ListFilter, NewJob
from goncordia.errors import DriverUnavailableError
from goncordia.ids import new_session_id
from goncordia_conformance.proxy import ChaosProxy
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver
from goncordia_driver_pg.psycopg_bounds import Watchdog

NewJobs = Callable[..., NewJob]
Making: TypeAlias = Callable[[str, str], Any]

LONG = 9.0
"""Seconds that nothing here takes, nor waits for: our bounds below end everything within one.

Left to itself psycopg takes 10 to cancel a statement (5 and 5), which is what must not happen.
"""


@pytest.fixture
def proxy(pg_dsn: str) -> Iterator[ChaosProxy]:
    with ChaosProxy.of(pg_dsn) as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections on which something went wrong get less time than else."""
    for library in ("asyncpg", "psycopg"):
        monkeypatch.setattr(f"goncordia_driver_pg.{library}_connections._CLEAN_UP", 0.2)


@asynccontextmanager
async def own_asyncpg(dsn: str, schema: str) -> AsyncIterator[AnyDriver]:
    async with AsyncpgDriver(dsn, schema=schema, pool_size=1, timeout=5) as driver:
        yield driver


@asynccontextmanager
async def own_psycopg(dsn: str, schema: str) -> AsyncIterator[AnyDriver]:
    async with PsycopgDriver(dsn, schema=schema, pool_size=1, timeout=5) as driver:
        yield driver


@asynccontextmanager
async def given_asyncpg(dsn: str, schema: str) -> AsyncIterator[AnyDriver]:
    async with (
        asyncpg.create_pool(dsn, min_size=0, max_size=1) as pool,
        AsyncpgDriver(pool, schema=schema, timeout=5) as driver,
    ):
        yield driver


@asynccontextmanager
async def given_psycopg(dsn: str, schema: str) -> AsyncIterator[AnyDriver]:
    pool: psycopg_pool.AsyncConnectionPool[psycopg.AsyncConnection[Any]] = (
        psycopg_pool.AsyncConnectionPool(dsn, min_size=0, max_size=1, open=False)
    )
    async with pool, PsycopgDriver(pool, schema=schema, timeout=5) as driver:
        yield driver


every = pytest.mark.parametrize(
    "making",
    [own_asyncpg, given_asyncpg, own_psycopg, given_psycopg],
    ids=lambda made: made.__name__,
)


@contextmanager
def soon() -> Iterator[None]:
    """What is done here has its end."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < LONG


@every
@pytest.mark.parametrize("keys", [False, True], ids=["alone", "in a transaction"])
async def test_a_call_that_is_given_up(
    making: Making, proxy: ChaosProxy, pg_dsn: str, migrated: str, new_job: NewJobs, keys: bool
) -> None:
    async with making(proxy.before(pg_dsn), migrated) as driver:
        await driver.ready()
        executor = driver.executor()
        await executor.count(ListFilter())
        jobs = [new_job(unique_key=bytes([n]) * 32 if keys else None) for n in range(2)]
        proxy.freeze()
        with soon(), pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await executor.insert_many(jobs)
        # Its connection was the only one.
        with soon(), pytest.raises((TimeoutError, DriverUnavailableError)):
            async with asyncio.timeout(0.2):
                await executor.count(ListFilter())
        proxy.thaw()
        proxy.cut()
        await executor.insert_many(jobs)
        assert await executor.count(ListFilter()) == 2


@every
async def test_closing(making: Making, proxy: ChaosProxy, pg_dsn: str, migrated: str) -> None:
    async with making(proxy.before(pg_dsn), migrated) as driver:
        await driver.ready()
        proxy.freeze()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await driver.executor().count(ListFilter())
        with soon():
            await driver.aclose()
        proxy.thaw()


@every
async def test_a_heartbeat(making: Making, proxy: ChaosProxy, pg_dsn: str, migrated: str) -> None:
    async with making(proxy.before(pg_dsn), migrated) as driver:
        heart = driver.heartbeater()
        assert heart is not None
        session = new_session_id()
        await asyncio.to_thread(heart.beat, session, 30.0)
        proxy.freeze()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("goncordia_driver_pg.heart.BOUND", 0.2)
            with soon(), pytest.raises(DriverUnavailableError, match="did not answer in time"):
                await asyncio.to_thread(heart.beat, session, 30.0)
        proxy.thaw()
        proxy.cut()
        await asyncio.to_thread(heart.beat, session, 30.0)
        proxy.freeze()
        with soon():
            await asyncio.to_thread(heart.close)
        proxy.thaw()


@pytest.mark.parametrize("making", [own_psycopg, given_psycopg], ids=lambda made: made.__name__)
async def test_a_statement_of_psycopg_has_a_bound_of_its_own(
    making: Making,
    proxy: ChaosProxy,
    pg_dsn: str,
    migrated: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with making(proxy.before(pg_dsn), migrated) as driver:
        await driver.ready()
        monkeypatch.setattr("goncordia_driver_pg.psycopg_connections.STATEMENT", 0.2)
        proxy.freeze()
        with soon(), pytest.raises(DriverUnavailableError, match=r"answer within 0\.2 s"):
            await driver.executor().count(ListFilter())
        proxy.thaw()


@every
async def test_the_server_ends_a_transaction_whose_client_fell_silent(
    making: Making, pg_dsn: str, migrated: str
) -> None:
    """Its locks would hold up those who are to take the jobs of a frozen pool back."""
    async with making(pg_dsn, migrated) as driver:
        pool = await driver._pool()
        name = "idle_in_transaction_session_timeout"
        show = driver._dialect.sql(f"SELECT current_setting('{name}')").alone()
        for _ in range(10):  # psycopg prepares what comes often
            connection = await pool.acquire()
            await connection.begin()
            assert [tuple(row) for row in (await connection.execute(show)).rows] == [("10s",)]
            await connection.commit()
            assert [tuple(row) for row in (await connection.execute(show)).rows] == [("0",)]
            pool.release(connection, clean=True)


# -------------------------------------------------------------------- synchronous


@contextmanager
def own_sync(dsn: str, schema: str) -> Iterator[PsycopgDriver]:
    with PsycopgDriver(dsn, schema=schema, pool_size=1, timeout=5) as driver:
        yield driver


@contextmanager
def given_sync(dsn: str, schema: str) -> Iterator[PsycopgDriver]:
    pool: psycopg_pool.ConnectionPool[psycopg.Connection[Any]] = psycopg_pool.ConnectionPool(
        dsn, min_size=0, max_size=1, open=True
    )
    with pool, PsycopgDriver(pool, schema=schema, timeout=5) as driver:
        yield driver


@pytest.mark.parametrize("making", [own_sync, given_sync], ids=lambda made: made.__name__)
def test_synchronous_code(
    making: Making,
    proxy: ChaosProxy,
    pg_dsn: str,
    migrated: str,
    new_job: NewJobs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with making(proxy.before(pg_dsn), migrated) as driver:
        executor = driver.sync_executor()
        assert executor.count(ListFilter()) == 0
        jobs = [new_job(unique_key=bytes([n]) * 32) for n in range(2)]
        with monkeypatch.context() as patch:
            patch.setattr(driver._ready_pool(), "_watchdog", Watchdog(0.2))
            proxy.freeze()
            with soon(), pytest.raises(DriverUnavailableError, match=r"within 0\.2 s") as caught:
                executor.insert_many(jobs)
        assert caught.value.outcome == "not_applied"  # it did not come to its commit
        proxy.thaw()
        executor.insert_many(jobs)
        assert executor.count(ListFilter()) == 2


def test_the_watchdog_watches_one_statement_after_another(pg_dsn: str) -> None:
    watchdog = Watchdog(0.5)
    with psycopg.connect(pg_dsn, autocommit=True) as first:
        with psycopg.connect(pg_dsn, autocommit=True) as second:
            for _ in range(3):
                for connection in (first, second):
                    with watchdog.watching(connection):
                        connection.execute("SELECT 1")
            with pytest.raises(TimeoutError), watchdog.watching(second):
                # Else the server sleeps on, in a transaction that vacuum goes by.
                second.execute("SET client_connection_check_interval = 100")
                second.execute("SELECT pg_sleep(60)")
            assert first.execute("SELECT 2").fetchone() == (2,)
        # It sleeps no longer than there is something to watch.
        thread = watchdog._thread
        if thread is not None:
            thread.join(30)
        with watchdog.watching(first):
            first.execute("SELECT 1")
        with pytest.raises(psycopg.errors.DivisionByZero), watchdog.watching(first):
            first.execute("SELECT 1 / 0")
