"""Wake-ups are hints, polling is the truth."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from goncordia import Job
from goncordia.driver import Wake

from .stand import Gate, Stand, Work


def worker(stand: Stand) -> list[float]:
    times: list[float] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        times.append(round(stand.clock.monotonic(), 3))

    return times


async def test_a_new_job_starts_at_once(stand: Stand) -> None:
    times = worker(stand)
    async with stand.working(poll_interval=1000):
        await stand.advance(33)
        await stand.enqueue()
        await stand.advance(0)
        assert times == [33.0]


async def test_without_a_listener_it_is_found_by_the_next_look() -> None:
    stand = Stand(wakes=False)
    times = worker(stand)
    async with stand.working(poll_interval=10):
        await stand.advance(33)
        await stand.enqueue()
        await stand.advance(0)
        assert times == []
        await stand.advance(10)
        assert len(times) == 1


@pytest.mark.parametrize("wakes", [True, False])
async def test_a_job_due_later_starts_when_it_is_due(wakes: bool) -> None:
    """The fetch before said when the next one is due, or a wake did."""
    stand = Stand(wakes=wakes)
    times = worker(stand)
    await stand.enqueue(delay=40)
    async with stand.working(poll_interval=1000):
        await stand.advance(100)
    assert times == [40.0]


async def test_a_job_that_becomes_due_earlier_than_was_known(stand: Stand) -> None:
    times = worker(stand)
    await stand.enqueue(delay=400)
    async with stand.working(poll_interval=1000):
        await stand.advance(10)
        await stand.enqueue(delay=5)
        await stand.advance(100)
    assert times == [15.0]


async def test_a_rescheduled_job(stand: Stand) -> None:
    times = worker(stand)
    handle = await stand.enqueue(delay=400)
    async with stand.working(poll_interval=1000):
        await stand.advance(10)
        await stand.client.reschedule(handle, run_at=stand.clock.now() + timedelta(seconds=7))
        await stand.advance(100)
    assert times == [17.0]


async def test_a_retried_job(stand: Stand) -> None:
    attempts: list[float] = []

    @stand.registry.worker(Work, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        attempts.append(stand.clock.monotonic())
        if len(attempts) == 1:
            raise ValueError

    handle = await stand.enqueue()
    async with stand.working(poll_interval=1000):
        await stand.advance(10)
        await stand.client.retry(handle)
        await stand.advance(0)
        assert attempts == [0.0, 10.0]


async def test_wakes_of_other_queues_are_not_looked_after(stand: Stand) -> None:
    worker(stand)
    async with stand.working(poll_interval=1000):
        await stand.advance(1)
        stand.wire.forget()
        for _ in range(50):
            await stand.enqueue(queue="others")
        await stand.advance(1)
        assert stand.wire.count("exchange") == 0


async def test_a_burst_of_wakes_is_one_look(stand: Stand) -> None:
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    async with stand.working(concurrency=100):
        await stand.advance(0.5)
        stand.wire.forget()
        for n in range(100):
            await stand.enqueue(Work(n))
        await stand.advance(0.1)
        assert gate.waiting == 100
        assert stand.wire.count("exchange") <= 10
        gate.open()


class Heard:
    """A listener that says what the test tells it."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Wake] = asyncio.Queue()
        self.closed = False

    async def wakes(self) -> AsyncIterator[Wake]:
        while True:
            yield await self.queue.get()

    async def aclose(self) -> None:
        self.closed = True


class Deaf(Stand):
    """A stand whose driver hears only what it is told."""

    def __init__(self) -> None:
        super().__init__(wakes=False)
        self.heard = Heard()
        vars(self.driver)["listener"] = lambda: self.heard


@pytest.mark.parametrize(
    ("wake", "looks", "beats"),
    [
        (Wake("jobs", "default"), 1, 0),
        (Wake("jobs"), 1, 0),
        (Wake("jobs", "others"), 0, 0),
        (Wake("jobs", "default", due_in=50), 0, 0),
        (Wake("queue", "default"), 1, 0),
        (Wake("queue", "others"), 0, 0),
        (Wake("cancel"), 0, 1),
        (Wake("gap"), 1, 1),
    ],
)
async def test_each_wake_makes_the_pool_look_where_it_should(
    wake: Wake, looks: int, beats: int
) -> None:
    stand = Deaf()
    worker(stand)
    async with stand.working(poll_interval=1000):
        await stand.advance(1)
        stand.wire.forget()
        await stand.heard.queue.put(wake)
        await stand.advance(0)
        assert (stand.wire.count("exchange"), stand.wire.count("session_beat")) == (looks, beats)
        if wake.due_in:
            await stand.advance(wake.due_in)
            assert stand.wire.count("exchange") == 1
    assert stand.heard.closed


async def test_a_listener_that_broke_is_replaced_and_all_is_looked_at(stand: Stand) -> None:
    """Between the two there may have been wakes."""
    times = worker(stand)
    make, made = stand.driver.listener, [0]

    class Broken:
        async def wakes(self) -> AsyncIterator[Wake]:
            if made[0] < 3:
                raise OSError("the connection is gone")
            yield Wake("gap")

        async def aclose(self) -> None:
            raise OSError("it is gone already")

    def listener() -> Any:
        made[0] += 1
        return Broken() if made[0] < 3 else make()

    vars(stand.driver)["listener"] = listener
    await stand.enqueue(Work(1), delay=0.01)
    async with stand.working(poll_interval=1000):
        await stand.advance(5)
        assert (made[0], len(times)) == (3, 1)
        await stand.enqueue()
        await stand.advance(0)
        assert len(times) == 2


async def test_a_listener_that_breaks_leaves_polling(caplog: pytest.LogCaptureFixture) -> None:
    stand = Deaf()
    times = worker(stand)

    async def broken() -> AsyncIterator[Wake]:
        if not times:
            raise OSError("the connection is gone")
        yield Wake("gap")

    vars(stand.heard)["wakes"] = broken
    async with stand.working(poll_interval=10):
        await stand.advance(1)
        await stand.enqueue()
        await stand.advance(20)
        assert len(times) == 1
    assert "the connection is gone" in caplog.text
