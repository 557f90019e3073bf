"""Hearing of what others do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from goncordia.driver import After, Change, NewJob, Wake
from goncordia_conformance.servers.redis import RedisServer
from goncordia_driver_redis import RedisDriver

NewJobs = Callable[..., NewJob]
Hearing = Callable[..., AbstractAsyncContextManager[Any]]
Make = Callable[..., RedisDriver]


async def until(condition: Callable[[], Awaitable[Any]]) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(60):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.01)


@pytest.fixture
async def ears(driver: RedisDriver, hearing: Hearing) -> AsyncIterator[Any]:
    async with hearing(driver) as ears:
        yield ears


async def test_new_jobs(driver: RedisDriver, ears: Any, new_job: NewJobs) -> None:
    await driver.executor().insert_many([new_job(queue="é")])
    assert await ears.next() == Wake("jobs", "é", 0.0)


@pytest.mark.parametrize("protocol", ["2", "3"])
async def test_a_password_for_a_server_that_asks_for_none(
    make: Make, redis_url: str, hearing: Hearing, new_job: NewJobs, protocol: str
) -> None:
    """Such a server takes any. So it must in both protocols: a listener speaks the older one."""
    url = redis_url.replace("//", "//:any@") + f"?protocol={protocol}"
    async with make(url) as driver:
        await driver.migrate()
        assert driver.sync_executor().insert_many([new_job(queue="a")])
        async with hearing(driver) as ears:
            await driver.executor().insert_many([new_job(queue="b")])
            assert await ears.next() == Wake("jobs", "b", 0.0)


async def test_jobs_of_later(driver: RedisDriver, ears: Any, new_job: NewJobs) -> None:
    await driver.executor().insert_many([new_job(queue="a", run_at=After(60))])
    wake = await ears.next()
    assert (wake.what, wake.queue) == ("jobs", "a")
    assert wake.due_in is not None
    assert 50 < wake.due_in <= 60


async def test_what_was_said_before_anybody_listened_is_said_again(
    driver: RedisDriver, hearing: Hearing, new_job: NewJobs
) -> None:
    """A queue that was called out is not called out again, but for those who came later."""
    await driver.executor().insert_many([new_job()])

    async with hearing(driver) as late:

        async def is_heard() -> bool:
            await driver.executor().insert_many([new_job()])
            return not late.heard.empty()

        await until(is_heard)  # it subscribes first, and says so then
        assert await late.next() == Wake("jobs", "default", 0.0)


async def test_cancels_of_running_jobs(
    driver: RedisDriver, ears: Any, new_job: NewJobs, claim_all: Callable[..., Any]
) -> None:
    await driver.executor().insert_many([new_job()])
    assert (await ears.next()).what == "jobs"
    (row,) = await claim_all(driver)
    await driver.executor().change_many([Change(row.id, "cancel")])
    assert await ears.next() == Wake("cancel", job_ids=(row.id,))


@pytest.mark.parametrize("options", [{"protocol": 2}, {"protocol": 3}])
async def test_whatever_the_client_speaks(
    hearing: Hearing, make: Make, redis_url: str, options: dict[str, int], new_job: NewJobs
) -> None:
    async with make(f"{redis_url}?protocol={options['protocol']}") as driver:
        await driver.migrate()
        await driver.ready()
        async with hearing(driver) as ears:
            await driver.executor().queue_pause("q")
            assert await ears.next() == Wake("queue", "q")


async def test_a_connection_that_is_cut(
    hearing: Hearing, server: RedisServer, new_job: NewJobs, caplog: pytest.LogCaptureFixture
) -> None:
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        await driver.ready()
        async with hearing(driver) as ears:
            for queue in ("a", "b"):
                server.ask("CLIENT", "KILL", "TYPE", "pubsub")
                assert await ears.next() == Wake("gap")
                await driver.executor().queue_pause(queue)
                assert await ears.next() == Wake("queue", queue)
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
    hearing: Hearing,
    server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A dead peer is noticed, though nothing is sent to it."""

    async def has_warned() -> bool:
        return bool(caplog.records)

    monkeypatch.setattr("goncordia.driver.connections.listener._KEEP_ALIVE", 0.05)
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        await driver.ready()
        async with hearing(driver) as ears:
            for _ in range(2):  # it is asked for a sign of life, and gives one
                await until(another_ping(server))
            assert ears.heard.empty()
            monkeypatch.setattr("goncordia.driver.connections.listener._BOUND", 0.1)
            server.freeze()
            await until(has_warned)
            monkeypatch.setattr("goncordia.driver.connections.listener._BOUND", 60)
            server.thaw()
            assert await ears.next() == Wake("gap")
    assert "did not answer in time" in caplog.text


async def test_it_waits_for_a_server_that_is_not_there(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goncordia.driver.connections.listener._FIRST_PAUSE", 0.01)
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        server.kill()
        listener = driver.listener()
        wake = asyncio.ensure_future(anext(aiter(listener.wakes())))
        await asyncio.sleep(0.05)
        server.start()
        assert await wake == Wake("gap")
        await listener.aclose()


async def test_closed_before_it_was_used(driver: RedisDriver) -> None:
    listener = driver.listener()
    await listener.aclose()
    assert [wake async for wake in listener.wakes()] == []
