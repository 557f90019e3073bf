"""Claims that wait for a slot: as many as help, and not one more."""

from __future__ import annotations

import asyncio

import pytest

from goncordia import Job
from goncordia.driver import QueueStats

from .stand import Gate, Stand, Work


async def stats(stand: Stand) -> QueueStats:
    (found,) = await stand.memory.executor().queue_stats()
    return found


async def test_slow_handlers_leave_nothing_waiting_in_the_pool(stand: Stand) -> None:
    """What one pool hoards another, idle one cannot run."""

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await stand.clock.sleep(5)

    for n in range(100):
        await stand.enqueue(Work(n))
    most = 0
    async with stand.working(concurrency=4):
        for _ in range(60):
            await stand.advance(0.5)
            most = max(most, (await stats(stand)).running)
    assert most == 4


async def test_quick_handlers_claim_ahead_what_was_just_finished(stand: Stand) -> None:
    """Under load a batch is as large as what the pool finished in the last tenth of a second."""
    done: list[int] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await asyncio.sleep(0)
        done.append(job.args.n)

    for n in range(2000):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=10):
        for _ in range(100):
            await stand.advance(0)
        assert len(done) == 2000
        limits = [args[1].limit for args in stand.wire.given("exchange") if args[1]]
    assert limits[0] == 10
    assert max(limits) > 20


async def test_claiming_ahead_ends_when_handlers_become_slow(stand: Stand) -> None:
    gate = stand.gated()
    gate.open()
    for n in range(500):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=10):
        await stand.advance(0)
        assert gate.came == 500
        gate.close()
        await stand.advance(0.2)
        for n in range(100):
            await stand.enqueue(Work(n))
        await stand.advance(5)
        found = await stats(stand)
        assert (found.running, found.available) == (10, 90)
        gate.open()


@pytest.mark.parametrize("number", [0, 1, 7])
async def test_a_number_fixes_it(stand: Stand, number: int) -> None:
    gate = stand.gated()
    for n in range(50):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=5, max_pending=number) as pool:
        await stand.advance(5)
        assert ((await stats(stand)).running, pool.running) == (5 + number, 5)
        gate.open()
        await stand.advance(5)
    assert gate.came == 50


async def test_without_marks_nothing_is_claimed_beyond_the_free_slots() -> None:
    """Who rescues could not tell what had started from what had not."""
    stand = Stand(marks=False)
    gate = stand.gated()
    gate.open()
    for n in range(200):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=5, max_pending=50):
        await stand.advance(5)
        limits = [args[1].limit for args in stand.wire.given("exchange") if args[1]]
        assert max(limits) == 5
    assert gate.came == 200


async def test_what_waits_in_the_pool_starts_in_order(stand: Stand) -> None:
    order: list[int] = []
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        order.append(job.args.n)
        await gate.pass_through()

    for n in range(10):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=1, max_pending=9):
        assert ((await stats(stand)).running, order) == (10, [0])
        gate.open()
        await stand.advance(0)
    assert order == list(range(10))
