"""What a worker raises to say how its job goes on, and what that costs in attempts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from goncordia import Cancel, Discard, Job, JobState, RetryAfter, RetryAt, Snooze, SyncJob
from goncordia.driver import JobRow
from goncordia.engine.events import JobFinished

from .stand import Stand, Work

Raises = Callable[[Stand], Exception]


async def raised(stand: Stand, error: Raises, **options: Any) -> JobRow:
    """The row after a first attempt that raised this."""

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        raise error(stand)

    handle = await stand.enqueue(**options)
    async with stand.working():
        pass
    return await stand.row(handle)


async def test_discard_ends_the_job_whatever_max_attempts_says(stand: Stand) -> None:
    row = await raised(stand, lambda _: Discard("no such user"), max_attempts=9)
    assert (row.state, row.attempt) == (JobState.DISCARDED, 1)
    (error,) = row.errors
    assert (error.type, error.message) == ("goncordia.directives.Discard", "no such user")
    assert (error.attempt, error.worker_id) == (1, "pool-0")


async def test_cancel_ends_the_job_and_is_no_failure(stand: Stand) -> None:
    row = await raised(stand, lambda _: Cancel("not needed"))
    assert (row.state, row.attempt, row.errors) == (JobState.CANCELLED, 1, ())


async def test_snooze_takes_the_attempt_back(stand: Stand) -> None:
    row = await raised(stand, lambda _: Snooze(60))
    assert (row.state, row.attempt, row.errors) == (JobState.SCHEDULED, 0, ())
    assert row.run_at == stand.clock.now() + timedelta(seconds=60)


async def test_retry_after_uses_the_attempt(stand: Stand) -> None:
    row = await raised(stand, lambda _: RetryAfter(5, "rate limited"))
    assert (row.state, row.attempt) == (JobState.RETRYABLE, 1)
    assert row.run_at == stand.clock.now() + timedelta(seconds=5)
    assert [error.message for error in row.errors] == ["rate limited"]


async def test_retry_at_uses_the_attempt(stand: Stand) -> None:
    at = stand.clock.now() + timedelta(hours=30)
    row = await raised(stand, lambda _: RetryAt(at, "tomorrow"))
    assert (row.state, row.attempt, row.run_at) == (JobState.RETRYABLE, 1, at)
    assert [error.message for error in row.errors] == ["tomorrow"]


async def test_retry_at_in_the_past_is_due_at_once(stand: Stand) -> None:
    row = await raised(stand, lambda s: RetryAt(s.clock.now() - timedelta(1)), max_attempts=4)
    # All its attempts were used within this moment.
    assert (row.state, row.attempt, len(row.errors)) == (JobState.DISCARDED, 4, 4)


@pytest.mark.parametrize(
    "error",
    [
        lambda _: RetryAfter(5, "again"),
        lambda stand: RetryAt(stand.clock.now() + timedelta(days=1), "again"),
    ],
)
async def test_a_retry_of_the_last_attempt_discards(stand: Stand, error: Raises) -> None:
    row = await raised(stand, error, max_attempts=1)
    assert (row.state, row.attempt) == (JobState.DISCARDED, 1)
    assert [found.message for found in row.errors] == ["again"]


async def test_a_snooze_of_the_last_attempt_does_not_discard(stand: Stand) -> None:
    calls: list[int] = []

    @stand.registry.worker(Work, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        calls.append(job.attempt)
        if len(calls) < 5:
            raise Snooze(10)

    handle = await stand.enqueue()
    async with stand.working():
        await stand.advance(60)
    assert calls == [1] * 5
    row = await stand.row(handle)
    assert (row.state, row.attempt) == (JobState.COMPLETED, 1)


async def test_the_job_runs_again_when_its_directive_says(stand: Stand) -> None:
    times: list[float] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        times.append(round(stand.clock.monotonic(), 3))
        if len(times) == 1:
            raise RetryAfter(20)
        if len(times) == 2:
            raise Snooze(30)

    handle = await stand.enqueue()
    async with stand.working():
        await stand.advance(100)
    assert times == [0.0, 20.0, 50.0]
    row = await stand.row(handle)
    assert (row.state, row.attempt, len(row.errors)) == (JobState.COMPLETED, 2, 1)


async def test_plain_functions_raise_them_as_well(stand: Stand) -> None:
    @stand.registry.worker(Work)
    def work(job: SyncJob[Work]) -> None:
        raise [Discard("a"), Cancel(), Snooze(9)][job.args.n]

    handles = [await stand.enqueue(Work(n)) for n in range(3)]
    async with stand.working():
        await stand.until(lambda: len(stand.seen(JobFinished)) == 3)
    rows = [await stand.row(handle) for handle in handles]
    assert [row.state.value for row in rows] == ["discarded", "cancelled", "scheduled"]
    assert [row.attempt for row in rows] == [1, 1, 0]
