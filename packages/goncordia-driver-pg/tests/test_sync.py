"""Synchronous code, and several event loops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import asyncpg
import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from goncordia import Client, SyncClient
from goncordia.driver import ListFilter, NewJob, Wake
from goncordia.errors import (
    ConfigurationError,
    DriverBusyError,
    DriverUnavailableError,
    MigrationRequiredError,
    UnsupportedError,
)
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver


@dataclass
class Note:
    kind: ClassVar[str] = "note"
    text: str = ""


# -------------------------------------------------------------------- either library, by a DSN


def test_by_a_dsn(make: Any) -> None:
    with make() as driver:
        assert driver.migrate_sync()
        client = SyncClient(driver)
        handle = client.enqueue(Note())
        assert client.get(handle.id).kind == "note"
        assert client.count() == 1


def test_without_opening_and_twice(make: Any) -> None:
    driver = make()
    driver.migrate_sync()
    SyncClient(driver).enqueue(Note())
    driver.close()
    assert SyncClient(driver).count() == 1
    driver.close()


def test_an_unmigrated_schema_is_said(make: Any) -> None:
    with make() as driver, pytest.raises(MigrationRequiredError):
        SyncClient(driver).enqueue(Note())


def test_a_server_that_is_not_there(make: Any) -> None:
    driver = make("postgresql://postgres@127.0.0.1:1/postgres")
    with pytest.raises(DriverUnavailableError, match=r"^could not connect to 127\.0\.0\.1:1: "):
        SyncClient(driver, replays=0).enqueue(Note())
    driver.close()


def test_a_database_that_is_not_there(make: Any, pg_dsn: str) -> None:
    driver = make(pg_dsn.rpartition("/")[0] + "/nonsense")
    with pytest.raises(ConfigurationError, match=r'^dsn: .*"nonsense" does not exist'):
        SyncClient(driver).enqueue(Note())
    driver.close()


def test_from_many_threads(make: Any) -> None:
    with make(pool_size=3) as driver:
        driver.migrate_sync()
        client = SyncClient(driver)
        threads = [
            threading.Thread(target=lambda: [client.enqueue(Note()) for _ in range(20)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.count() == 160


async def test_beside_asynchronous_code(driver: Any) -> None:
    await Client(driver).enqueue(Note())
    await asyncio.to_thread(SyncClient(driver).enqueue, Note())
    assert await Client(driver).count() == 2


def test_one_event_loop_after_another(make: Any) -> None:
    driver = make()

    async def use() -> int:
        await driver.migrate()
        await Client(driver).enqueue(Note())
        count = await Client(driver).count()
        await driver.aclose()
        return count

    assert [asyncio.run(use()), asyncio.run(use())] == [1, 2]


# -------------------------------------------------------------------- pools that were passed in


async def test_a_pool_of_asyncpg_serves_synchronous_code_by_its_parameters(
    pg_dsn: str, migrated: str
) -> None:
    async with asyncpg.create_pool(pg_dsn, min_size=1, max_size=1) as pool:
        driver = AsyncpgDriver(pool, schema=migrated)
        await asyncio.to_thread(SyncClient(driver).enqueue, Note())
        assert await Client(driver).count() == 1
        await driver.aclose()
        assert await pool.fetchval("SELECT 1") == 1


async def test_a_pool_of_psycopg_serves_synchronous_code_by_its_parameters(
    pg_dsn: str, migrated: str
) -> None:
    async with AsyncConnectionPool(pg_dsn, min_size=1, open=False) as pool:
        driver = PsycopgDriver(pool, schema=migrated)
        await asyncio.to_thread(SyncClient(driver).enqueue, Note())
        assert await Client(driver).count() == 1
        await driver.aclose()
        async with pool.connection() as connection:
            await connection.execute("SELECT 1")


def test_a_synchronous_pool_of_psycopg(pg_dsn: str, pg_schema: str) -> None:
    with ConnectionPool(pg_dsn, min_size=2, open=True) as pool:
        with PsycopgDriver(pool, schema=pg_schema) as driver:
            assert driver.migrate_sync()
            client = SyncClient(driver)
            client.enqueue(Note())
            with pool.connection() as connection:
                client.enqueue_tx(connection, Note())
                assert client.count() == 1
            assert client.count() == 2
        with pool.connection() as connection:
            assert not connection.autocommit
            assert connection.info.transaction_status.name == "IDLE"


async def test_a_synchronous_pool_serves_nothing_else(pg_dsn: str, migrated: str) -> None:
    with ConnectionPool(pg_dsn, min_size=0, max_size=2, open=True) as pool:
        driver = PsycopgDriver(pool, schema=migrated)
        for call in (
            driver.open,
            driver.migrate,
            driver.check,
            driver.ready,
            lambda: driver.executor().count(ListFilter()),
        ):
            with pytest.raises(ConfigurationError, match="serves SyncClient only"):
                await call()
        assert driver.listener() is None
        assert driver.heartbeater() is None
        assert driver.capabilities.native_tx == "none"
        async with await psycopg.AsyncConnection.connect(pg_dsn) as connection:
            with pytest.raises(UnsupportedError, match=r"native_tx: .* serves SyncClient only"):
                driver.unwrap_tx(connection)
        await driver.aclose()


def test_a_synchronous_pool_that_is_exhausted(pg_dsn: str, migrated: str) -> None:
    with ConnectionPool(pg_dsn, min_size=1, max_size=1, open=True) as pool:
        driver = PsycopgDriver(pool, schema=migrated, timeout=0.2)
        client = SyncClient(driver)
        with pool.connection(), pytest.raises(DriverBusyError, match="none of the pool's"):
            client.count()
        assert client.count() == 0


async def test_asynchronous_pools_that_are_exhausted(pg_dsn: str, migrated: str) -> None:
    async with asyncpg.create_pool(pg_dsn, min_size=1, max_size=1) as pool, pool.acquire():
        driver: Any = AsyncpgDriver(pool, schema=migrated, timeout=0.2)
        with pytest.raises(DriverBusyError, match="none of the pool's 1 connections"):
            await driver.executor().count(ListFilter())
        await driver.aclose()
    async with AsyncConnectionPool(pg_dsn, min_size=1, max_size=1, open=False) as other:
        driver = PsycopgDriver(other, schema=migrated, timeout=0.2)
        async with other.connection():
            with pytest.raises(DriverBusyError, match="none of the pool's connections"):
                await driver.executor().count(ListFilter())
        await driver.aclose()


async def test_pools_that_are_not_open_are_said(pg_dsn: str, migrated: str) -> None:
    async def executed(driver: Any) -> None:
        await driver.executor().count(ListFilter())

    unopened = asyncpg.create_pool(pg_dsn, min_size=0)
    with pytest.raises(ConfigurationError, match=r"pool: .*not initialized"):
        await executed(AsyncpgDriver(unopened, schema=migrated))
    other: AsyncConnectionPool[Any] = AsyncConnectionPool(pg_dsn, open=False)
    with pytest.raises(ConfigurationError, match=r"pool: .*not open yet"):
        await executed(PsycopgDriver(other, schema=migrated))
    await unopened
    await unopened.close()
    with pytest.raises(DriverUnavailableError, match="pool is clos"):
        await executed(AsyncpgDriver(unopened, schema=migrated))


async def test_of_a_pool_a_connection_is_kept_for_a_moment_only(
    pg_dsn: str, migrated: str, new_job: Callable[..., NewJob]
) -> None:
    async with asyncpg.create_pool(pg_dsn, min_size=2, max_size=2) as pool:
        driver = AsyncpgDriver(pool, schema=migrated)
        await driver.executor().insert_many([new_job()])
        assert pool.get_idle_size() == 1
        async with asyncio.timeout(60):
            while pool.get_idle_size() == 1:  # noqa: ASYNC110  # the pool tells nobody
                await asyncio.sleep(0.001)
        await driver.aclose()


async def until_so_many_wait(pool: AsyncConnectionPool[Any], number: int) -> None:
    async with asyncio.timeout(60):
        while pool.get_stats().get("requests_waiting") != number:  # noqa: ASYNC110  # as above
            await asyncio.sleep(0.001)


async def test_of_a_pool_nothing_is_kept_that_others_wait_for(
    pg_dsn: str, migrated: str, new_job: Callable[..., NewJob]
) -> None:
    async with AsyncConnectionPool(pg_dsn, min_size=1, max_size=1, open=False) as pool:
        driver = PsycopgDriver(pool, schema=migrated)
        async with pool.connection():
            inserting = asyncio.create_task(driver.executor().insert_many([new_job()]))
            await until_so_many_wait(pool, 1)
            waiting = asyncio.create_task(pool.getconn(60))
            await until_so_many_wait(pool, 2)
        await inserting
        await pool.putconn(await waiting)
        await driver.aclose()


async def test_synchronous_code_tells_too(
    psycopg_driver: PsycopgDriver, pg_dsn: str, new_job: Callable[..., NewJob]
) -> None:
    listener = psycopg_driver.listener()
    assert listener is not None
    heard: asyncio.Queue[Wake] = asyncio.Queue()

    async def listen() -> None:
        async for wake in listener.wakes():
            heard.put_nowait(wake)

    task = asyncio.create_task(listen())
    executor = psycopg_driver.sync_executor()
    async with asyncio.timeout(60):
        while heard.empty():
            await asyncio.to_thread(executor.queue_pause, "a")
            await asyncio.sleep(0.05)
        await asyncio.to_thread(executor.insert_many, [new_job(queue="b")])
        while (await heard.get()) != Wake("jobs", "b", 0.0):
            pass

        def in_a_transaction() -> None:
            with psycopg.connect(pg_dsn) as connection:
                psycopg_driver.unwrap_sync_tx(connection).insert_many([new_job(queue="c")])

        await asyncio.to_thread(in_a_transaction)
        while (await heard.get()) != Wake("jobs", "c", 0.0):
            pass
    await listener.aclose()
    await task
