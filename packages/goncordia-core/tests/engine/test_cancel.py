"""Cancelling jobs: waiting, claimed and running ones, by their claim and not by their id."""

from __future__ import annotations

import asyncio

from goncordia import ChangeResult, Job, JobState, RetryAfter
from goncordia.driver import Claim
from goncordia.engine.events import JobFinished, JobStarted

from .stand import Gate, Stand, Work


def waiting(stand: Stand, gate: Gate) -> list[str]:
    """A worker that waits; how its runs ended."""
    ends: list[str] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        try:
            await gate.pass_through()
        except asyncio.CancelledError:
            ends.append(f"interrupted, {job.cancelled}")
            raise
        ends.append("returned")

    return ends


async def test_a_running_job_is_interrupted_at_once_by_the_listener(stand: Stand) -> None:
    gate = Gate()
    ends = waiting(stand, gate)
    handle = await stand.enqueue()
    async with stand.working():
        assert gate.waiting == 1
        await stand.client.cancel(handle)
        assert await stand.state(handle) == "running"
        await stand.advance(0)
        assert ends == ["interrupted, True"]
        row = await stand.row(handle)
    assert (row.state, row.attempt, row.errors) == (JobState.CANCELLED, 1, ())
    (finished,) = stand.seen(JobFinished)
    assert (finished.to, finished.error) == ("cancel", None)


async def test_without_a_listener_it_comes_with_the_next_beat() -> None:
    stand, gate = Stand(wakes=False), Gate()
    ends = waiting(stand, gate)
    handle = await stand.enqueue()
    async with stand.working(heartbeat_interval=5):
        await stand.client.cancel(handle)
        await stand.advance(4.9)
        assert ends == []
        await stand.advance(0.1)
        assert ends == ["interrupted, True"]
    assert await stand.state(handle) == "cancelled"


async def test_a_waiting_job_that_was_cancelled_is_not_run(stand: Stand) -> None:
    gate = Gate()
    waiting(stand, gate)
    handle = await stand.enqueue()
    await stand.client.cancel(handle)
    async with stand.working():
        await stand.advance(5)
    assert (gate.came, await stand.state(handle)) == (0, "cancelled")


async def test_a_claimed_job_that_waits_for_a_slot_is_not_run(stand: Stand) -> None:
    gate = Gate()
    waiting(stand, gate)
    first, second = await stand.enqueue(Work(1)), await stand.enqueue(Work(2))
    async with stand.working(concurrency=1, max_pending=5) as pool:
        assert await stand.state(second) == "running"  # claimed
        await stand.client.cancel(second)
        await stand.advance(0)
        assert (await stand.state(second), pool.running) == ("cancelled", 1)
        gate.open()
        await stand.advance(0)
    assert (gate.came, await stand.state(first)) == (1, "completed")
    assert [event.row.id for event in stand.seen(JobStarted)] == [first.id]


async def test_a_handler_that_returns_all_the_same_completes(stand: Stand) -> None:
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> str:
        try:
            await gate.pass_through()
        except asyncio.CancelledError:
            return "half"
        return "whole"

    handle = await stand.enqueue()
    async with stand.working():
        await stand.client.cancel(handle)
        await stand.advance(0)
    row = await stand.row(handle)
    assert (row.state, row.output) == (JobState.COMPLETED, b'"half"')


async def test_a_failure_with_a_cancel_requested_ends_cancelled(stand: Stand) -> None:
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        try:
            await gate.pass_through()
        except asyncio.CancelledError:
            raise RetryAfter(5, "not now") from None

    handle = await stand.enqueue()
    async with stand.working():
        await stand.client.cancel(handle)
        await stand.advance(60)
    row = await stand.row(handle)
    assert (row.state, gate.came) == (JobState.CANCELLED, 1)
    assert [error.message for error in row.errors] == ["not now"]


async def test_a_stale_cancel_does_not_hit_a_newer_claim(stand: Stand) -> None:
    """A cancel names a claim: the same job, claimed again since, is left alone."""
    gate = Gate()
    ends = waiting(stand, gate)
    handle = await stand.enqueue()
    async with stand.working() as pool:
        assert gate.waiting == 1
        claim = (await stand.row(handle)).claim
        assert claim is not None
        dispatcher = stand.engine(pool).dispatcher
        dispatcher.cancel_requested((Claim(claim.job_id, claim.session, claim.fetch_no - 1),))
        dispatcher.cancel_requested((Claim(claim.job_id, handle.id, claim.fetch_no),))
        await stand.advance(1)
        assert (gate.waiting, ends) == (1, [])
        dispatcher.cancel_requested((claim,))
        await stand.advance(0)
        assert ends == ["interrupted, True"]


async def test_a_late_answer_to_a_beat_does_not_hit_a_newer_claim(stand: Stand) -> None:
    """The beat's answer was on its way while the job was given back, and claimed anew."""
    gate = Gate()
    runs: list[int] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        runs.append(len(runs))
        if len(runs) == 1:
            await gate.pass_through()
            raise ValueError  # ends cancelled, for the cancel was requested
        await stand.clock.sleep(50)

    handle = await stand.enqueue()
    async with stand.working(heartbeat_interval=5, retry_policy=lambda _: 0):
        late = stand.wire.hold("session_beat", after=True)
        await stand.client.cancel(handle)
        await stand.advance(0.1)
        assert late.reached == 1  # the cancel is on its way
        gate.open()
        await stand.advance(0.1)
        assert await stand.state(handle) == "cancelled"
        await stand.client.retry(handle)
        await stand.advance(0.1)
        assert (runs, await stand.state(handle)) == ([0, 1], "running")
        late.let_go()
        await stand.advance(1)
        assert await stand.state(handle) == "running"
        await stand.advance(60)
    assert await stand.state(handle) == "completed"


async def test_many_are_cancelled_at_once(stand: Stand) -> None:
    gate = Gate()
    ends = waiting(stand, gate)
    handles = [await stand.enqueue(Work(n)) for n in range(30)]
    async with stand.working(concurrency=20, max_pending=10):
        assert gate.waiting == 20
        results: list[ChangeResult] = [await stand.client.cancel(each) for each in handles]
        await stand.advance(1)
        assert gate.waiting == 0
    assert len(results) == 30
    assert len(ends) == 20
    assert {await stand.state(handle) for handle in handles} == {"cancelled"}


async def test_cancelled_while_it_was_being_finished_changes_nothing(stand: Stand) -> None:
    gate = Gate()
    ends = waiting(stand, gate)
    handle = await stand.enqueue()
    async with stand.working():
        hold = stand.wire.hold("exchange")
        gate.open()
        await stand.advance(0.1)
        assert ends == ["returned"]
        await stand.client.cancel(handle)
        await stand.advance(0.1)
        hold.let_go()
        await stand.advance(0.1)
        assert await stand.state(handle) == "completed"
