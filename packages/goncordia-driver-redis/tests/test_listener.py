"""Hearing of what others do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from goncordia.driver import After, Change, NewJob, Wake
from goncordia_conformance.servers.redis import RedisServer
from goncordia_driver_redis import RedisDriver

from .conftest import Make

NewJobs = Callable[..., NewJob]


class Ears:
    """What one listener hears."""

    def __init__(self, driver: RedisDriver) -> None:
        self.listener = driver.listener()
        self.heard: asyncio.Queue[Wake] = asyncio.Queue()
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for wake in self.listener.wakes():
            self.heard.put_nowait(wake)

    async def next(self) -> Wake:
        async with asyncio.timeout(60):
            return await self.heard.get()

    async def close(self) -> None:
        await self.listener.aclose()
        await self.task


async def until(condition: Callable[[], Awaitable[Any]]) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(60):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.01)


async def listening(driver: RedisDriver) -> None:
    """Wait until somebody listens."""

    async def is_so() -> int:
        command = (b"PUBSUB", b"SHARDNUMSUB", driver._keys.channel)
        answer: list[int] = await driver._runner.ask(await driver._pools.get(), command)
        return answer[1]

    await until(is_so)


@pytest.fixture
async def ears(driver: RedisDriver) -> AsyncIterator[Ears]:
    ears = Ears(driver)
    await listening(driver)
    yield ears
    await ears.close()


async def test_new_jobs(driver: RedisDriver, ears: Ears, new_job: NewJobs) -> None:
    await driver.executor().insert_many([new_job(queue="é")])
    assert await ears.next() == Wake("jobs", "é", 0.0)


async def test_jobs_of_later(driver: RedisDriver, ears: Ears, new_job: NewJobs) -> None:
    await driver.executor().insert_many([new_job(queue="a", run_at=After(60))])
    wake = await ears.next()
    assert (wake.what, wake.queue) == ("jobs", "a")
    assert wake.due_in is not None
    assert 50 < wake.due_in <= 60


async def test_cancels_of_running_jobs(
    driver: RedisDriver, ears: Ears, new_job: NewJobs, claim_all: Callable[..., Any]
) -> None:
    await driver.executor().insert_many([new_job()])
    assert (await ears.next()).what == "jobs"
    (row,) = await claim_all(driver)
    await driver.executor().change_many([Change(row.id, "cancel")])
    assert await ears.next() == Wake("cancel", job_ids=(row.id,))


@pytest.mark.parametrize("options", [{"protocol": 2}, {"protocol": 3}])
async def test_whatever_the_client_speaks(
    make: Make, redis_url: str, options: dict[str, int], new_job: NewJobs
) -> None:
    async with make(f"{redis_url}?protocol={options['protocol']}") as driver:
        await driver.migrate()
        await driver.ready()
        ears = Ears(driver)
        await listening(driver)
        await driver.executor().queue_pause("q")
        assert await ears.next() == Wake("queue", "q")
        await ears.close()


async def test_a_connection_that_is_cut(
    server: RedisServer, new_job: NewJobs, caplog: pytest.LogCaptureFixture
) -> None:
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        await driver.ready()
        ears = Ears(driver)
        await listening(driver)
        for queue in ("a", "b"):
            server.ask("CLIENT", "KILL", "TYPE", "pubsub")
            assert await ears.next() == Wake("gap")
            await driver.executor().queue_pause(queue)
            assert await ears.next() == Wake("queue", queue)
        await ears.close()
    warned = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert [each.name for each in warned] == ["goncordia.redis"]
    assert "broke the connection" in warned[0].message


def another_ping(server: RedisServer) -> Callable[[], Awaitable[bool]]:
    def pings() -> str:
        return server.info("commandstats").get("cmdstat_ping", "")

    before = pings()

    async def is_so() -> bool:
        return pings() != before

    return is_so


async def test_a_server_that_falls_silent(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A dead peer is noticed, though nothing is sent to it."""

    async def has_warned() -> bool:
        return bool(caplog.records)

    monkeypatch.setattr("goncordia.driver.connections.listener._KEEP_ALIVE", 0.05)
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        await driver.ready()
        ears = Ears(driver)
        await listening(driver)
        for _ in range(2):  # it is asked for a sign of life, and gives one
            await until(another_ping(server))
        assert ears.heard.empty()
        monkeypatch.setattr("goncordia.driver.connections.listener._BOUND", 0.1)
        server.freeze()
        await until(has_warned)
        monkeypatch.setattr("goncordia.driver.connections.listener._BOUND", 60)
        server.thaw()
        assert await ears.next() == Wake("gap")
        await ears.close()
    assert "did not answer in time" in caplog.text


async def test_it_waits_for_a_server_that_is_not_there(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goncordia.driver.connections.listener._FIRST_PAUSE", 0.01)
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        server.kill()
        ears = Ears(driver)
        await asyncio.sleep(0.05)
        server.start()
        assert await ears.next() == Wake("gap")
        await ears.close()


async def test_closed_before_it_was_used(driver: RedisDriver) -> None:
    listener = driver.listener()
    await listener.aclose()
    assert [wake async for wake in listener.wakes()] == []
