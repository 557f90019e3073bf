"""What the clients tell of queues: depth by state, and how long the oldest job has been due."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from goncordia import Client, QueueInfo, SyncClient
from goncordia.driver import After, BaseExecutor, QueueStats
from goncordia.errors import DriverUnavailableError
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver, MemoryTx

from .kit import Hand, Mail, ShakyDriver
from .test_sync import OnlyAsync

START = datetime(2026, 1, 1, tzinfo=UTC)


def empty(name: str, **fields: Any) -> QueueInfo:
    """A queue with nothing in it, but for these fields."""
    queue = QueueInfo(
        name=name,
        paused=False,
        available=0,
        scheduled=0,
        retryable=0,
        running=0,
        oldest_due=None,
        oldest_due_seconds=None,
        exact=True,
    )
    return msgspec.structs.replace(queue, **fields)


async def test_depth_by_state_and_the_oldest_that_is_due(
    client: Client[MemoryTx], sync: SyncClient[MemoryTx], hand: Hand, clock: MockClock
) -> None:
    assert await client.queue_stats() == []
    await client.enqueue(Mail("a"), priority=9)
    await hand.finish(await hand.claim(), "retry", when=After(600))
    await client.enqueue(Mail("b"))
    await hand.claim()
    await clock.advance(5)
    await client.enqueue_many([Mail("c")] * 2)
    await clock.advance(20)
    await client.enqueue(Mail("d"))
    await client.enqueue(Mail("e"), queue="post", delay=3600)
    await client.queue_pause("idle")
    expected = [
        empty(
            "default",
            available=3,
            retryable=1,
            running=1,
            oldest_due=START + timedelta(seconds=5),
            oldest_due_seconds=20.0,
        ),
        empty("idle", paused=True),
        empty("post", scheduled=1),
    ]
    assert await client.queue_stats() == expected
    assert sync.queue_stats() == expected


async def test_a_job_counts_as_due_from_its_time_on(
    client: Client[MemoryTx], clock: MockClock
) -> None:
    await client.enqueue(Mail("a"), delay=60)
    await clock.advance(90)
    (queue,) = await client.queue_stats()
    assert (queue.available, queue.scheduled, queue.oldest_due_seconds) == (1, 0, 30.0)


def test_through_the_thread_before_an_asynchronous_driver() -> None:
    with OnlyAsync() as driver:
        client: SyncClient[Any] = SyncClient(driver)
        client.enqueue(Mail("a"))
        client.queue_pause("idle")
        default, idle = client.queue_stats()
        assert (default.name, default.available, idle) == ("default", 1, empty("idle", paused=True))


async def test_a_queue_that_begins_or_runs_empty_between_two_looks(
    client: Client[MemoryTx], driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.enqueue(Mail("a"), queue="ends")

    async def queue_stats() -> list[QueueStats]:
        return [QueueStats("begins", scheduled=1, exact=False)]

    monkeypatch.setattr(driver.executor(), "queue_stats", queue_stats)
    assert await client.queue_stats() == [empty("begins", scheduled=1, exact=False), empty("ends")]


async def test_the_age_goes_by_the_backends_clock_and_is_never_negative(
    client: Client[MemoryTx], driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.enqueue(Mail("a"))
    ahead = 40.0

    async def now() -> datetime:
        return START + timedelta(seconds=ahead)

    monkeypatch.setattr(driver.executor(), "now", now)
    assert [queue.oldest_due_seconds for queue in await client.queue_stats()] == [40.0]
    ahead = -1.0
    assert [queue.oldest_due_seconds for queue in await client.queue_stats()] == [0.0]


async def test_a_lost_answer_is_asked_for_again(shaky: ShakyDriver, clock: MockClock) -> None:
    client: Client[MemoryTx] = Client(shaky)
    await client.enqueue(Mail("a"))
    shaky.faults.calls.clear()
    shaky.faults.after.append(DriverUnavailableError("cut"))
    asked = asyncio.ensure_future(client.queue_stats())
    await clock.advance(10)
    assert [queue.available for queue in await asked] == [1]
    assert shaky.faults.calls == ["queue_list", "queue_list", "queue_stats", "now"]


async def test_a_driver_that_counts_by_reading(
    client: Client[MemoryTx], driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.enqueue_many([Mail("a")] * 3)
    await client.enqueue(Mail("b"), queue="post", delay=60)
    counted = await client.queue_stats()
    executor = driver.executor()

    async def queue_stats() -> list[QueueStats]:
        return await BaseExecutor.queue_stats(executor)

    monkeypatch.setattr(executor, "queue_stats", queue_stats)
    assert await client.queue_stats() == counted
