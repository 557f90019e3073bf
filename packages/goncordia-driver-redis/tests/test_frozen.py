"""Servers that stand still, connections that are cut, and calls that are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from goncordia.driver import NewJob
from goncordia.errors import DriverBusyError, DriverUnavailableError
from goncordia.ids import new_session_id
from goncordia_conformance.servers.redis import RedisServer
from goncordia_driver_redis import RedisDriver

NewJobs = Callable[..., NewJob]
Servers = Callable[..., AbstractContextManager[RedisServer]]


class Frozen:
    """A driver and its server, which stands still inside of a ``with`` block.

    Only there the driver has little patience: what has to succeed may take its time.
    """

    def __init__(self, driver: RedisDriver, server: RedisServer) -> None:
        self.driver = driver
        self.server = server

    def __enter__(self) -> None:
        self._be_patient(0.3, 0.3)
        self.server.freeze()

    def __exit__(self, *exc: object) -> None:
        self._be_patient(10.0, 5.0)
        self.server.thaw()

    def _be_patient(self, answer: float, connect: float) -> None:
        place: Any = self.driver._place
        place.parameters = place.parameters._replace(answer=answer, connect=connect)
        place.doubt()
        for pool in self.driver._pools._made.values():
            for link in pool._idle:
                link._bound = answer
        if self.driver._sync_pool is not None:
            for sync in self.driver._sync_pool._idle:
                sync.connection._sock.settimeout(answer)


@pytest.fixture
async def frozen(server: RedisServer) -> AsyncIterator[Frozen]:
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        await driver.ready()
        yield Frozen(driver, server)


async def test_a_frozen_server_is_not_waited_for(frozen: Frozen, new_job: NewJobs) -> None:
    executor, job = frozen.driver.executor(), new_job()
    await executor.insert_many([new_job()])
    with frozen:
        async with asyncio.timeout(60):
            with pytest.raises(DriverUnavailableError, match="did not answer in time") as failed:
                await executor.insert_many([job])
            assert failed.value.outcome == "unknown"
            # The next one has to connect: the kernel takes the connection, and nobody answers.
            with pytest.raises(DriverUnavailableError, match="could not connect to") as failed:
                await executor.insert_many([job])
            assert failed.value.outcome == "not_applied"
    (result,) = await executor.insert_many([job])
    assert result.status in {"INSERTED", "REPLAYED"}


async def test_readers_ask_again_when_cut_off_but_not_when_nobody_answers(
    frozen: Frozen, new_job: NewJobs
) -> None:
    executor, job = frozen.driver.executor(), new_job()
    await executor.insert_many([job])
    with frozen:
        with pytest.raises(DriverUnavailableError, match="did not answer in time") as failed:
            await executor.get_many([job.id])
        assert failed.value.outcome == "not_applied"
    (row,) = await executor.get_many([job.id])
    assert row is not None
    pool = await frozen.driver._pools.get()
    for _ in range(5):
        link: Any = await pool.acquire()
        link.is_usable = lambda: True  # it is not looked at before it is used
        pool.release(link, clean=True)
        frozen.server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        (row,) = await executor.get_many([job.id])
        assert row is not None


async def test_nor_by_synchronous_code(frozen: Frozen, new_job: NewJobs) -> None:
    executor, job = frozen.driver.sync_executor(), new_job()
    executor.insert_many([new_job()])
    with frozen:
        with pytest.raises(DriverUnavailableError, match="did not answer in time") as failed:
            await asyncio.to_thread(executor.insert_many, [job])
        assert failed.value.outcome == "unknown"
        with pytest.raises(DriverUnavailableError, match="could not connect to"):
            await asyncio.to_thread(executor.insert_many, [job])
    (result,) = executor.insert_many([job])
    assert result.status in {"INSERTED", "REPLAYED"}


async def test_nor_by_the_heartbeat(frozen: Frozen, monkeypatch: pytest.MonkeyPatch) -> None:
    heart: Any = frozen.driver.heartbeater()
    session = new_session_id()
    await frozen.driver.executor().session_open(session, "w", 600)
    assert (await asyncio.to_thread(heart.beat, session, 600)).held
    with frozen:
        heart._link.connection._sock.settimeout(0.3)
        with pytest.raises(DriverUnavailableError, match="did not answer in time"):
            await asyncio.to_thread(heart.beat, session, 600)
        monkeypatch.setattr("goncordia_driver_redis.heartbeat._BOUND", 0.3)
        with pytest.raises(DriverUnavailableError, match="could not connect to"):
            await asyncio.to_thread(heart.beat, session, 600)
        monkeypatch.undo()
    assert (await asyncio.to_thread(heart.beat, session, 600)).held
    heart.close()


async def test_a_cancelled_call_leaves_no_answer_behind(frozen: Frozen, new_job: NewJobs) -> None:
    """Whoever uses the connection next would get it."""
    executor = frozen.driver.executor()
    jobs = [new_job(args=b"%d" % number) for number in range(20)]
    await executor.insert_many(jobs)
    for number in range(60):
        # Cancelled after so many turns of the loop: before, while and after it is answered.
        call = asyncio.ensure_future(executor.get_many([jobs[0].id]))
        for _ in range(number % 6):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        wanted = jobs[number % 20]
        (row,) = await executor.get_many([wanted.id])
        assert row is not None
        assert row.args == wanted.args


async def test_a_storm_of_cancellations_uses_nothing_up(
    server: RedisServer, new_job: NewJobs
) -> None:
    async with RedisDriver(server.url, pool_size=3, timeout=5) as driver:
        await driver.migrate()
        await driver.ready()
        executor, job = driver.executor(), new_job()
        await executor.insert_many([job])

        async def one(turns: int) -> None:
            call = asyncio.ensure_future(executor.get_many([job.id]))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)

        for _ in range(10):
            await asyncio.gather(*[one(number % 9) for number in range(30)])
        rows = await asyncio.gather(*[executor.get_many([job.id]) for _ in range(10)])
        assert all(row is not None and row.id == job.id for (row,) in rows)


async def test_connections_that_are_all_in_use(server: RedisServer, new_job: NewJobs) -> None:
    async with RedisDriver(server.url, pool_size=1, timeout=0.2) as driver:
        await driver.migrate()
        await driver.ready()
        server.freeze()
        first = asyncio.ensure_future(driver.executor().insert_many([new_job()]))
        await asyncio.sleep(0)
        with pytest.raises(DriverBusyError, match="none of the pool's 1 connections") as failed:
            await driver.executor().insert_many([new_job()])
        assert failed.value.outcome == "not_applied"
        server.thaw()
        assert (await first)[0].status == "INSERTED"


async def test_connections_that_the_server_has_closed(
    server: RedisServer, new_job: NewJobs
) -> None:
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        await driver.ready()
        executor, sync = driver.executor(), driver.sync_executor()
        for _ in range(5):
            await executor.insert_many([new_job()])
            sync.insert_many([new_job()])
            server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            for _ in range(3):
                await asyncio.sleep(0)  # the loop hears of it
            (result,) = sync.insert_many([new_job()])
            assert result.status == "INSERTED"


async def test_after_a_restart_it_goes_on(new_job: NewJobs, a_server: Servers) -> None:
    safe = a_server(appendonly="yes", appendfsync="always")
    with safe as server:
        driver = RedisDriver(server.url)
        await driver.migrate()
        await driver.ready()
        executor = driver.executor()
        await asyncio.gather(*[executor.insert_many([new_job()]) for _ in range(5)])
        server.kill()
        with pytest.raises(DriverUnavailableError):
            await executor.insert_many([new_job()])
        server.start()
        (result,) = await executor.insert_many([new_job()])
        assert result.status == "INSERTED"
        (result,) = driver.sync_executor().insert_many([new_job()])
        assert result.status == "INSERTED"
        await driver.aclose()


async def test_scripts_that_are_forgotten_again_and_again(
    server: RedisServer, new_job: NewJobs
) -> None:
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        await driver.ready()
        executor = driver.executor()

        async def forget() -> None:
            pool = await driver._pools.get()
            for _ in range(25):  # fewer than one call puts up with
                await driver._runner.ask(pool, (b"SCRIPT", b"FLUSH"))
                await asyncio.sleep(0.001)

        forgetting = asyncio.create_task(forget())
        jobs = [new_job() for _ in range(200)]
        results: list[Any] = await asyncio.gather(*[executor.insert_many([job]) for job in jobs])
        rows = await executor.get_many([job.id for job in jobs])
        await forgetting
        assert all(result.status == "INSERTED" for (result,) in results)
        assert all(row is not None for row in rows)
