"""The driver as a whole: opening and closing, loops and threads, migration, transactions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis.asyncio

from goncordia import Client, Registry, SyncClient
from goncordia.clock import SystemClock
from goncordia.driver import NewJob
from goncordia.errors import MigrationRequiredError, UnsupportedError
from goncordia.gontest import MockClock
from goncordia_driver_redis import RedisDriver
from goncordia_driver_redis.clients.places import FixedPlace
from goncordia_driver_redis.operations import LAYOUT
from goncordia_driver_redis.runner import Runner

NewJobs = Callable[..., NewJob]
Make = Callable[..., RedisDriver]

registry = Registry()


@registry.task(kind="work")
async def work() -> None: ...


async def test_migration(make: Make) -> None:
    async with make() as driver:
        with pytest.raises(MigrationRequiredError, match="nothing of Goncordia is stored: run"):
            await driver.verify()
        with pytest.raises(MigrationRequiredError, match="run migrate"):
            await Client(driver).enqueue(work.args())
        with pytest.raises(MigrationRequiredError, match="run migrate"):
            SyncClient(driver).enqueue(work.args())
        assert await driver.migrate() == [f"version {LAYOUT} under the prefix {driver.prefix!r}"]
        assert await driver.migrate() == []
        assert driver.migrate_sync() == []
        await Client(driver).enqueue(work.args())


async def test_ten_migrate_at_once(make: Make) -> None:
    drivers = [make() for _ in range(10)]
    done = await asyncio.gather(*[driver.migrate() for driver in drivers])
    assert sorted(map(len, done)) == [0] * 9 + [1]
    for driver in drivers:
        await driver.aclose()


async def test_what_is_stored_is_of_another_version(make: Make, redis_url: str) -> None:
    async with make() as driver, redis.asyncio.Redis.from_url(redis_url) as client:
        await driver.migrate()
        key = driver._keys.tag + b"schema"
        await client.hset(key, mapping={"version": LAYOUT + 1, "oldest": LAYOUT})
        await driver.verify()  # a newer one that this code may work with
        await client.hset(key, mapping={"version": LAYOUT + 2, "oldest": LAYOUT + 1})
        for call in (driver.verify, driver.migrate):
            with pytest.raises(MigrationRequiredError, match="needs code that knows version"):
                await call()
        await client.hset(key, mapping={"version": 0, "oldest": 0})
        with pytest.raises(
            MigrationRequiredError, match=f"version 0, and this code needs {LAYOUT}"
        ):
            await driver.verify()


async def test_the_script_for_redis_cli_migrates(make: Make, redis_url: str) -> None:
    driver = make()
    words = driver.migration_script().split()
    assert words[0] == "HSET"
    client: Any = redis.asyncio.Redis.from_url(redis_url)
    async with driver, client:
        await client.execute_command(*words)
        await driver.verify()
        assert await driver.migrate() == []


async def test_it_may_be_opened_again(make: Make, new_job: NewJobs) -> None:
    driver = make()
    for _ in range(3):
        async with driver:
            await driver.migrate()
            await driver.ready()
            await driver.executor().insert_many([new_job()])
        with driver:
            driver.sync_executor().insert_many([new_job()])
    await driver.aclose()


async def test_closing_closes_the_connections(server: Any, new_job: NewJobs) -> None:
    driver = RedisDriver(server.url)
    async with driver:
        await driver.migrate()
        await asyncio.gather(*[driver.executor().insert_many([new_job()]) for _ in range(5)])
        driver.sync_executor().insert_many([new_job()])
        assert len(server.ask("CLIENT", "LIST").splitlines()) > 2

    async with asyncio.timeout(60):
        while True:
            if len(server.ask("CLIENT", "LIST").splitlines()) == 1:  # who asks
                return
            await asyncio.sleep(0.01)


def test_several_loops_and_threads(make: Make, new_job: NewJobs) -> None:
    driver = make()
    driver.migrate_sync()
    jobs = [new_job() for _ in range(24)]
    closed = threading.Event()

    def some(number: int) -> None:
        async def insert() -> None:
            await driver.ready()
            await asyncio.gather(*[driver.executor().insert_many([job]) for job in jobs[number::6]])
            done.release()
            await asyncio.to_thread(closed.wait)

        if number % 2:
            asyncio.run(insert())
        else:
            for job in jobs[number::6]:
                driver.sync_executor().insert_many([job])
            done.release()

    done = threading.Semaphore(0)
    with ThreadPoolExecutor(6) as threads:
        working = threads.map(some, range(6))
        for _ in range(6):
            assert done.acquire(timeout=60)
        rows = driver.sync_executor().get_many([job.id for job in jobs])
        driver.close()  # on all loops
        closed.set()
        list(working)
    assert all(row is not None for row in rows)


async def test_transactions_are_refused_with_what_to_do(driver: RedisDriver) -> None:
    says = "enqueue after your commit.*an outbox"
    with pytest.raises(UnsupportedError, match=says):
        await Client(driver).enqueue_tx(object(), work.args())  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=says):
        SyncClient(driver).enqueue_tx(object(), work.args())  # type: ignore[arg-type]


async def test_a_clock_that_is_given(make: Make, new_job: NewJobs) -> None:
    clock = MockClock()
    async with make(clock=clock) as driver:
        await driver.migrate()
        assert await driver.executor().now() == clock.now()
        assert driver.sync_executor().now() == clock.now()
        await clock.advance(3600)
        assert await driver.executor().now() == clock.now()


async def test_the_servers_clock(driver: RedisDriver) -> None:
    now = await driver.executor().now()
    assert abs((now - SystemClock().now()).total_seconds()) < 60
    assert driver.sync_executor().now() >= now


async def test_one_enqueue_is_one_command(
    driver: RedisDriver, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(driver._place, FixedPlace)
    sent: list[str] = []
    on = Runner.on

    async def counted(self: Runner, link: Any, call: Any, *, durable: bool = False) -> Any:
        sent.append(call.script.name)
        return await on(self, link, call, durable=durable)

    monkeypatch.setattr(Runner, "on", counted)
    await driver.executor().insert_many([new_job()])
    assert sent == ["insert"]
