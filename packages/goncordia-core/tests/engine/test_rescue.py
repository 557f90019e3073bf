"""Taking back the jobs of pools that died."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from goncordia import Job, JobState
from goncordia.driver import After, Change, Finish, JobRow, Mark
from goncordia.engine.events import JobRescued, ResultLost
from goncordia.errors import WorkerLostError

from .stand import Gate, Other, Stand, Work
from .wire import away

DEAD_BY = 60.0
"""Seconds after which a session that does not beat is ended, and its jobs are rescued."""


def worker(stand: Stand, **options: object) -> list[int]:
    """A worker that notes its attempts."""
    attempts: list[int] = []

    @stand.registry.worker(Work, **options)  # type: ignore[arg-type]  # whatever a test gives
    async def work(job: Job[Work]) -> None:
        attempts.append(job.attempt)

    return attempts


async def dead(stand: Stand, *, started: bool = False) -> list[JobRow]:
    """All due jobs are claimed by a pool that is never heard of again."""
    rows = await stand.hand(lease=30).claim(1000)
    if started:
        marks = [Mark(row.claim, started=True) for row in rows if row.claim]
        await stand.memory.executor().mark_many(marks)
    return rows


async def test_a_dead_pool_s_job_is_retried(stand: Stand) -> None:
    attempts = worker(stand, retry_policy=lambda _: 5)
    handle = await stand.enqueue()
    await dead(stand)
    async with stand.working():
        await stand.advance(29)
        assert await stand.state(handle) == "running"
        await stand.advance(DEAD_BY - 29)
    assert attempts == [2]
    row = await stand.row(handle)
    assert (row.state, row.attempt) == (JobState.COMPLETED, 2)
    (error,) = row.errors
    assert (error.type, error.attempt) == ("goncordia.errors.WorkerLostError", 1)
    assert (error.message, error.worker_id) == ("its worker hand is gone", "hand")
    (rescued,) = stand.seen(JobRescued)
    assert (rescued.row.id, rescued.row.worker_id, rescued.to) == (handle.id, "hand", "retry")


async def test_a_pool_that_beats_keeps_its_jobs(stand: Stand) -> None:
    worker(stand)
    handle = await stand.enqueue()
    hand = stand.hand(lease=30)
    (row,) = await hand.claim()
    async with stand.working():
        for _ in range(20):
            await stand.advance(10)
            assert await hand.beat()
    assert (await stand.row(handle)).claim == row.claim
    assert stand.seen(JobRescued) == []


async def test_the_worker_s_policy_decides(stand: Stand) -> None:
    asked: list[tuple[int, BaseException | None]] = []

    def policy(attempt: int, error: BaseException | None) -> float:
        asked.append((attempt, error))
        return 1000

    attempts = worker(stand, retry_policy=policy)
    handle = await stand.enqueue()
    await dead(stand)
    async with stand.working():
        await stand.advance(DEAD_BY)
    ((attempt, error),) = asked
    assert (attempt, type(error)) == (1, WorkerLostError)
    assert (await stand.state(handle), attempts) == ("retryable", [])


async def test_a_policy_without_another_attempt_discards(stand: Stand) -> None:
    worker(stand, retry_policy=lambda _: None)
    handle = await stand.enqueue()
    await dead(stand)
    async with stand.working():
        await stand.advance(DEAD_BY)
    assert await stand.state(handle) == "discarded"


async def test_a_last_attempt_that_was_started_is_discarded(stand: Stand) -> None:
    """A job that kills its pool each time has an end."""
    attempts = worker(stand, max_attempts=1)
    handle = await stand.enqueue()
    await dead(stand, started=True)
    async with stand.working():
        await stand.advance(DEAD_BY)
    row = await stand.row(handle)
    assert (row.state, row.attempt, attempts) == (JobState.DISCARDED, 1, [])
    assert [error.type for error in row.errors] == ["goncordia.errors.WorkerLostError"]
    assert [event.to for event in stand.seen(JobRescued)] == ["discard"]


async def test_a_last_attempt_that_never_started_is_released(stand: Stand) -> None:
    attempts = worker(stand, max_attempts=1)
    handle = await stand.enqueue()
    await dead(stand)
    async with stand.working():
        await stand.advance(DEAD_BY)
    row = await stand.row(handle)
    assert (row.state, row.attempt, row.errors) == (JobState.COMPLETED, 1, ())
    assert attempts == [1]
    assert [event.to for event in stand.seen(JobRescued)] == ["release"]


async def test_a_mark_that_races_the_rescue_wins(stand: Stand) -> None:
    """The rescuer saw it as not started; before its release came, the pool had marked it."""
    worker(stand, max_attempts=1)
    handle = await stand.enqueue()
    (row,) = await dead(stand)
    slow = stand.wire.hold("finish_many")
    async with stand.working():
        while not slow.reached:
            await stand.advance(0.5)
        assert row.claim is not None
        await stand.memory.executor().mark_many([Mark(row.claim, started=True)])
        slow.let_go()
        await stand.advance(1)
        assert (await stand.state(handle), stand.seen(JobRescued)) == ("running", [])
        await stand.advance(20)  # the next look sees it as started
    assert await stand.state(handle) == "discarded"


async def test_without_marks_a_last_attempt_is_discarded() -> None:
    stand = Stand(marks=False)
    attempts = worker(stand, max_attempts=1)
    handle = await stand.enqueue()
    await dead(stand)
    async with stand.working():
        await stand.advance(DEAD_BY)
    assert (await stand.state(handle), attempts) == ("discarded", [])


async def test_an_unknown_kind_is_rescued_by_the_pool_s_own_rules(stand: Stand) -> None:
    worker(stand)
    first, last = await stand.enqueue(Other(1)), await stand.enqueue(Other(2), max_attempts=1)
    await dead(stand, started=True)
    async with stand.working(retry_policy=lambda _: 1000, max_attempts=2):
        await stand.advance(DEAD_BY)
    assert (await stand.state(first), await stand.state(last)) == ("retryable", "discarded")
    row = await stand.row(first)
    assert row.run_at.timestamp() - stand.clock.now().timestamp() > 900


async def test_a_cancelled_job_of_a_dead_pool_ends_cancelled(stand: Stand) -> None:
    attempts = worker(stand)
    handle = await stand.enqueue()
    await dead(stand)
    await stand.client.cancel(handle)
    async with stand.working():
        await stand.advance(DEAD_BY)
    assert (await stand.state(handle), attempts) == ("cancelled", [])


async def test_a_dead_pool_s_group_is_free_again(stand: Stand) -> None:
    attempts = worker(stand, retry_policy=lambda _: 1000)
    await stand.enqueue(Work(1), pipeline_id="p")
    second = await stand.enqueue(Work(2), pipeline_id="p")
    await dead(stand)
    async with stand.working():
        await stand.advance(DEAD_BY)
    assert (attempts, await stand.state(second)) == ([1], "completed")


async def test_many_jobs_are_rescued_in_bounded_steps(stand: Stand) -> None:
    attempts = worker(stand, retry_policy=lambda _: 0)
    for n in range(350):
        await stand.enqueue(Work(n))
    await dead(stand)
    async with stand.working(concurrency=100):
        await stand.advance(DEAD_BY)
        batches = [len(args[0]) for args in stand.wire.given("finish_many")]
        assert max(batches) <= 100
        assert sum(batches) == 350
    assert attempts == [2] * 350
    assert len(stand.seen(JobRescued)) == 350


async def test_a_rescue_keeps_to_the_driver_s_batches() -> None:
    stand = Stand(max_batch=10)
    attempts = worker(stand, retry_policy=lambda _: 0)
    for n in range(35):
        await stand.enqueue(Work(n))
    await dead(stand)
    async with stand.working():
        await stand.advance(DEAD_BY)
        batches = [len(args[0]) for args in stand.wire.given("finish_many")]
        assert (max(batches), sum(batches)) == (10, 35)
    assert attempts == [2] * 35


async def test_two_rescuers_take_each_job_once(stand: Stand) -> None:
    attempts = worker(stand, retry_policy=lambda _: 0)
    for n in range(40):
        await stand.enqueue(Work(n))
    await dead(stand)
    async with stand.working(rescue_interval=7), stand.working(rescue_interval=7):
        await stand.advance(DEAD_BY)
    assert attempts == [2] * 40
    assert len(stand.seen(JobRescued)) == 40


async def test_an_outage_ends_nobody(stand: Stand) -> None:
    """All were cut off alike: after it nobody may take the others for dead."""
    worker(stand)
    handle = await stand.enqueue()
    hand = stand.hand(lease=30)
    await hand.claim()
    async with stand.working():
        await stand.advance(20)
        await hand.beat()
        with stand.wire.outage():
            await stand.advance(100)
        await stand.advance(20)  # the other one comes back a little later
        assert await hand.beat()
        assert await stand.state(handle) == "running"
        await stand.advance(200)  # now it is really dead
    assert await stand.state(handle) == "completed"


@pytest.mark.parametrize("name", ["expire", "finish_many"])
async def test_a_rescue_that_fails_is_made_again(stand: Stand, name: str) -> None:
    attempts = worker(stand, retry_policy=lambda _: 0)
    handle = await stand.enqueue()
    await dead(stand)
    async with stand.working(rescue_interval=10):
        await stand.advance(29)
        stand.wire.fail(name, away(), times=2)
        await stand.advance(45)
    assert (attempts, await stand.state(handle)) == ([2], "completed")


async def test_a_rescue_whose_answer_was_lost_counts_once(stand: Stand) -> None:
    attempts = worker(stand, retry_policy=lambda _: 1)
    handle = await stand.enqueue()
    await dead(stand)
    async with stand.working():
        await stand.advance(29)
        stand.wire.fail("finish_many", away(), after=True)
        await stand.advance(60)
    row = await stand.row(handle)
    assert (attempts, row.attempt, len(row.errors)) == ([2], 2, 1)


async def test_a_closed_session_leaves_nothing_to_rescue(stand: Stand) -> None:
    worker(stand)
    async with stand.working():
        pass
    async with stand.working():
        await stand.advance(DEAD_BY)
    assert stand.seen(JobRescued) == []


# -------------------------------------------------------------------- the one that was rescued


async def held_back(stand: Stand, gate: Gate, *, then: str) -> UUID:
    """A pool has a result in hand while its claim is taken back, and sends it after that."""
    handle = await stand.enqueue()
    async with stand.working(lanes=1):
        row = await stand.row(handle)
        sending = stand.wire.hold("exchange", only=lambda args: bool(args[0]))
        gate.open()
        await stand.advance(0.1)
        assert sending.reached == 1
        assert row.claim is not None
        executor = stand.memory.executor()
        if then == "applied":
            await executor.finish_many([Finish(row.claim, "complete")])
        else:
            to: Any = "discard" if then == "discarded" else "retry"
            await executor.finish_many([Finish(row.claim, to, After(1000), rescue=True)])
        if then == "deleted":
            await executor.change_many([Change(row.id, "delete")])
        elif then == "claimed again":
            await executor.change_many([Change(row.id, "retry")])
            await stand.hand().claim()
        elif then == "stale":
            await executor.change_many([Change(row.id, "retry")])
            hand = stand.hand()
            (again,) = await hand.claim()
            await hand.finish(again.claim, "retry", when=After(1000))
        sending.let_go()
        await stand.advance(0.1)
    return handle.id


@pytest.mark.parametrize(
    ("then", "state"),
    [
        ("retried", JobState.RETRYABLE),
        ("discarded", JobState.DISCARDED),
        ("claimed again", JobState.RUNNING),
        ("stale", JobState.RETRYABLE),
        ("deleted", None),
    ],
)
async def test_the_owner_is_told_that_its_result_was_lost(
    stand: Stand, caplog: pytest.LogCaptureFixture, then: str, state: JobState | None
) -> None:
    gate = stand.gated()
    job_id = await held_back(stand, gate, then=then)
    (lost,) = stand.seen(ResultLost)
    assert lost.certain
    assert (lost.row.id, lost.to, lost.state) == (job_id, "complete", state)
    (message,) = [each for each in caplog.messages if "was lost" in each]
    assert f"job {job_id} (work): its result (complete) was lost" in message
    assert message.endswith(f"the job is {state.value if state else 'gone'}")


async def test_a_result_that_was_stored_before_is_not_lost(stand: Stand) -> None:
    await held_back(stand, stand.gated(), then="applied")
    assert stand.seen(ResultLost) == []


async def test_a_result_that_is_repeated_may_have_been_stored(stand: Stand) -> None:
    """The first sending was applied, and the job ran again since: it looks as if it was late."""
    gate = stand.gated()
    handle = await stand.enqueue()
    async with stand.working(lanes=1):
        stand.wire.fail("exchange", away(), after=True, only=lambda args: bool(args[0]))
        repeat = stand.wire.hold("finish_many")
        gate.open()
        await stand.advance(0.1)
        assert (repeat.reached, await stand.state(handle)) == (1, "completed")
        await stand.memory.executor().change_many([Change(handle.id, "retry")])
        hand = stand.hand()
        (again,) = await hand.claim()
        await hand.finish(again.claim, "complete")
        repeat.let_go()
        await stand.advance(0.1)
    (event,) = stand.seen(ResultLost)
    assert (event.state, event.certain) == (JobState.COMPLETED, False)


async def test_a_job_given_back_too_late_has_lost_no_result(stand: Stand) -> None:
    stand.gated()
    handle = await stand.enqueue()
    async with stand.working(concurrency=1, max_pending=1):
        waiting = await stand.enqueue(Work(1))
        await stand.advance(1)
        row = await stand.row(waiting)
        assert row.claim is not None
        (outcome,) = await stand.memory.executor().finish_many([Finish(row.claim, "discard")])
        assert outcome.status == "DONE"
    assert await stand.state(waiting) == "discarded"
    assert await stand.state(handle) == "available"
    assert stand.seen(ResultLost) == []
