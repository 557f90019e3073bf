"""Marks on claims: started, before a last attempt, and checkpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from goncordia import DriverError, Job
from goncordia.driver import Mark, Outcome
from goncordia.engine.events import JobFinished, JobStarted
from goncordia.memory.executor import MemoryExecutor

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


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> set[UUID]:
    """Jobs that somebody's transaction holds."""
    held: set[UUID] = set()
    mark_many = MemoryExecutor.mark_many

    async def holding(self: MemoryExecutor, marks: Sequence[Mark], /) -> list[Outcome]:
        free = [mark for mark in marks if mark.claim.job_id not in held]
        answers = iter(await mark_many(self, free))
        return [Outcome("BUSY") if m.claim.job_id in held else next(answers) for m in marks]

    monkeypatch.setattr(MemoryExecutor, "mark_many", holding)
    return held


async def test_a_mark_whose_job_a_transaction_holds_holds_up_no_other(
    stand: Stand, held: set[UUID]
) -> None:
    stored: list[int] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await job.checkpoint({"at": job.args.n})
        stored.append(job.args.n)

    handles = [await stand.enqueue(Work(n)) for n in range(3)]
    held.add(handles[0].id)
    async with stand.working():
        await stand.advance(30)
        assert stored == [1, 2]
        times = sum(mark.claim.job_id == handles[0].id for mark in stand.marks())
        assert 30 / 0.3 < times < 30 / 0.1 + 10  # now and then
        held.clear()
        await stand.advance(1)
        assert stored == [1, 2, 0]
    assert (await stand.row(handles[0])).checkpoint == b'{"at":0}'


async def test_marks_of_one_claim_stay_in_order(stand: Stand, held: set[UUID]) -> None:
    """Those that come after one that is held wait behind it, however they came together."""

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        together = [asyncio.create_task(job.checkpoint({"at": n})) for n in range(3)]
        await stand.clock.sleep(0.001)
        later = [asyncio.create_task(job.checkpoint({"at": n})) for n in range(3, 5)]
        await asyncio.gather(*together, *later)

    handle = await stand.enqueue()
    held.add(handle.id)
    slow = stand.wire.hold("mark_many")
    async with stand.working():
        await stand.advance(0.01)
        slow.let_go()
        await stand.advance(3)
        held.clear()
        await stand.advance(1)
    assert await stand.state(handle) == "completed"
    assert [mark.checkpoint for mark in stand.marks()][-5:] == [b'{"at":%d}' % n for n in range(5)]


async def test_a_last_attempt_starts_once_its_mark_is_stored(stand: Stand, held: set[UUID]) -> None:
    gate = stand.gated(max_attempts=1)
    gate.open()
    handle = await stand.enqueue()
    held.add(handle.id)
    async with stand.working():
        await stand.advance(5)
        assert gate.came == 0
        held.clear()
        await stand.advance(1)
        assert gate.came == 1
    assert await stand.state(handle) == "completed"


async def test_a_shutdown_gives_a_held_mark_up(stand: Stand, held: set[UUID]) -> None:
    gate = stand.gated(max_attempts=1)
    handle = await stand.enqueue()
    held.add(handle.id)
    async with stand.working():
        await stand.advance(1)
    assert gate.came == 0
    assert await stand.state(handle) == "available"
