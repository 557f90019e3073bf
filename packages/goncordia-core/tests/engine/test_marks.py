"""Marks on claims: started, before a last attempt, and checkpoints."""

from __future__ import annotations

import pytest

from goncordia import DriverError, Job
from goncordia.engine.events import JobFinished, JobStarted

from .stand import Stand, Work
from .wire import away


@pytest.mark.parametrize(("max_attempts", "marked"), [(1, True), (2, False)])
async def test_a_last_attempt_is_marked_before_it_starts(
    stand: Stand, max_attempts: int, marked: bool
) -> None:
    gate = stand.gated()
    slow = stand.wire.hold("mark_many")
    handle = await stand.enqueue(max_attempts=max_attempts)
    async with stand.working():
        assert slow.reached == marked
        assert gate.came == (not marked)
        slow.let_go()
        await stand.advance(0)
        assert gate.came == 1
        assert (await stand.row(handle)).started is marked
        gate.open()
        await stand.advance(0)
    assert await stand.state(handle) == "completed"


async def test_the_last_of_several_attempts_is_marked(stand: Stand) -> None:
    started: list[bool] = []

    @stand.registry.worker(Work, max_attempts=3, retry_policy=lambda _: 1)
    async def work(job: Job[Work]) -> None:
        started.append((await stand.row(job.id)).started)
        raise ValueError

    await stand.enqueue()
    async with stand.working():
        await stand.advance(10)
    assert started == [False, False, True]


async def test_a_stale_mark_means_that_the_job_is_not_run(stand: Stand) -> None:
    gate = stand.gated(max_attempts=1)
    slow = stand.wire.hold("mark_many")
    handle = await stand.enqueue()
    async with stand.working() as pool:
        hand = stand.hand()
        row = await stand.row(handle)
        assert (await hand.finish(row.claim, "release")).status == "DONE"
        (taken,) = await hand.claim()
        slow.let_go()
        await stand.advance(1)
        assert (gate.came, pool.running, len(stand.engine(pool).claims)) == (0, 0, 0)
        assert (await stand.row(handle)).claim == taken.claim
        assert stand.seen(JobStarted) == []
        assert stand.seen(JobFinished) == []


@pytest.mark.parametrize("after", [False, True])
async def test_a_mark_is_repeated_until_it_is_answered(stand: Stand, after: bool) -> None:
    gate = stand.gated(max_attempts=1)
    stand.wire.fail("mark_many", away(), after=after, times=4)
    await stand.enqueue()
    async with stand.working():
        await stand.advance(10)
        assert (gate.came, len(stand.marks())) == (1, 5)
        gate.open()


async def test_a_mark_that_is_answered_after_the_lease_starts_nothing(stand: Stand) -> None:
    gate = stand.gated(max_attempts=1)
    async with stand.working(lease=30, poll_interval=0.5):
        stand.wire.fail("session_beat", times=10_000)
        await stand.advance(24)
        slow = stand.wire.hold("mark_many", after=True)
        handle = await stand.enqueue()
        await stand.advance(1)
        assert slow.reached == 1
        await stand.advance(6)  # the lease is over
        slow.let_go()
        await stand.advance(1)
        assert ((await stand.row(handle)).started, gate.came) == (True, 0)
        stand.wire.heal()
        await stand.advance(1)
        assert gate.came == 1
        gate.open()


async def test_marks_that_come_together_go_together(stand: Stand) -> None:
    gate = stand.gated(max_attempts=1)
    for n in range(100):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=100):
        await stand.advance(1)
        assert gate.waiting == 100
        assert len(stand.marks()) == 100
        assert stand.wire.count("mark_many") <= 3
        gate.open()


async def test_marks_keep_to_the_driver_s_batches() -> None:
    stand = Stand(max_batch=7)
    gate = stand.gated(max_attempts=1)
    for n in range(30):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=100):
        await stand.advance(5)
        assert gate.waiting == 30
        assert max(len(batch) for (batch,) in stand.wire.given("mark_many")) <= 7
        gate.open()
        await stand.advance(5)
    exchanged = stand.wire.given("exchange")
    assert max(len(finishes) for finishes, _ in exchanged) <= 7
    assert max(request.limit for _, request in exchanged if request) <= 7


async def test_without_marks_nothing_is_marked() -> None:
    stand = Stand(marks=False)
    gate = stand.gated(max_attempts=1)
    gate.open()
    handle = await stand.enqueue()
    async with stand.working():
        await stand.advance(1)
    assert stand.wire.count("mark_many") == 0
    assert await stand.state(handle) == "completed"


async def test_a_refused_mark_fails_only_its_own_attempt(stand: Stand) -> None:
    gate = stand.gated(max_attempts=1)
    gate.open()
    bad, good = await stand.enqueue(Work(1)), await stand.enqueue(Work(2))
    stand.wire.fail(
        "mark_many",
        DriverError("no", outcome="not_applied"),
        times=100,
        only=lambda args: bad.id in {mark.claim.job_id for mark in args[0]},
    )
    async with stand.working():
        await stand.advance(5)
    assert (await stand.state(bad), await stand.state(good)) == ("discarded", "completed")
