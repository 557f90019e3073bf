"""Deadlines of runs, and which cause counts when there are several."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from goncordia import FixedRetry, Job, JobState, Snooze
from goncordia.driver import JobRow
from goncordia.engine.deadlines import TICK
from goncordia.engine.events import JobFinished, JobOverdue
from goncordia.errors import JobTimeoutError

from .stand import Stand, Work


def sleeping(stand: Stand, seconds: float = 100, **options: Any) -> list[float]:
    """A worker that sleeps too long; the times at which it is over."""
    over: list[float] = []

    @stand.registry.worker(Work, **options)
    async def work(job: Job[Work]) -> None:
        try:
            await stand.clock.sleep(seconds)
        finally:
            over.append(stand.clock.monotonic())

    return over


async def worked(stand: Stand, seconds: float, **options: Any) -> JobRow:
    handle = await stand.enqueue(**options)
    async with stand.working():
        await stand.advance(seconds)
    return await stand.row(handle)


async def test_an_attempt_that_takes_too_long_fails(stand: Stand) -> None:
    over = sleeping(stand, timeout=5, max_attempts=1)
    row = await worked(stand, 10)
    assert len(over) == 1
    assert 5 <= over[0] <= 5 + TICK
    assert row.state is JobState.DISCARDED
    (error,) = row.errors
    assert (error.type, error.message) == (
        "goncordia.errors.JobTimeoutError",
        "timed out after 5 s",
    )
    assert "stand.clock.sleep" in error.traceback  # where it was interrupted


async def test_a_time_out_is_retried_by_the_policy(stand: Stand) -> None:
    over = sleeping(stand, timeout=5, max_attempts=3, retry_policy=FixedRetry(10))
    row = await worked(stand, 60)
    assert len(over) == row.attempt == 3
    assert row.state is JobState.DISCARDED


@pytest.mark.parametrize(
    ("worker", "job", "expected"),
    [(5, 2, 2), (5, None, 5), (None, 2, 2), (5, "absent", 5), (None, "absent", None)],
)
async def test_the_job_s_time_out_wins_over_the_worker_s(
    stand: Stand, worker: float | None, job: Any, expected: float | None
) -> None:
    over = sleeping(stand, 20, timeout=worker, max_attempts=1)
    if job is None:
        expected = None  # explicitly none, whatever the worker says
    await worked(stand, 30, **({} if job == "absent" else {"timeout": job}))
    (time,) = over
    assert abs(time - (20 if expected is None else expected)) <= TICK


async def test_each_of_many_runs_has_its_own_deadline(stand: Stand) -> None:
    ended: dict[int, float] = {}

    @stand.registry.worker(Work, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        try:
            await stand.clock.sleep(100)
        finally:
            ended[job.args.n] = stand.clock.monotonic()

    limits = [9, 3, 6, 1, 8, 2]
    for n, limit in enumerate(limits):
        await stand.enqueue(Work(n), timeout=limit)
    async with stand.working():
        await stand.advance(12)
    assert len(ended) == 6
    assert all(limit <= ended[n] <= limit + 2 * TICK for n, limit in enumerate(limits))


async def test_a_handler_that_returns_all_the_same_is_completed(stand: Stand) -> None:
    @stand.registry.worker(Work, timeout=5)
    async def work(job: Job[Work]) -> str:
        try:
            await stand.clock.sleep(100)
        except asyncio.CancelledError:
            return f"saved, {job.cancelled}"
        return "never"

    row = await worked(stand, 10)
    assert (row.state, row.output, row.errors) == (JobState.COMPLETED, b'"saved, True"', ())


async def test_a_directive_counts_also_after_the_time_out(stand: Stand) -> None:
    @stand.registry.worker(Work, timeout=5)
    async def work(job: Job[Work]) -> None:
        try:
            await stand.clock.sleep(100)
        except asyncio.CancelledError:
            raise Snooze(60) from None

    row = await worked(stand, 10)
    assert (row.state, row.attempt, row.errors) == (JobState.SCHEDULED, 0, ())


async def test_an_error_on_the_way_out_is_still_a_time_out(stand: Stand) -> None:
    @stand.registry.worker(Work, timeout=5, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        try:
            await stand.clock.sleep(100)
        finally:
            raise OSError("while cleaning up")

    row = await worked(stand, 10)
    (error,) = row.errors
    assert (row.state, error.type) == (JobState.DISCARDED, "goncordia.errors.JobTimeoutError")


async def test_a_handler_that_swallows_its_end_keeps_its_slot_and_is_reported(
    stand: Stand,
) -> None:
    ends = asyncio.Event()

    @stand.registry.worker(Work, timeout=5)
    async def work(job: Job[Work]) -> str:
        while not ends.is_set():
            try:
                await ends.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    handle = await stand.enqueue()
    async with stand.working(concurrency=1) as pool:
        await stand.advance(30)
        assert pool.running == 1
        (overdue,) = stand.seen(JobOverdue)  # once
        assert (overdue.row.id, overdue.cause) == (handle.id, "timeout")
        ends.set()
        await stand.advance(0)
        row = await stand.row(handle)
        assert (row.state, row.output) == (JobState.COMPLETED, b'"at last"')


async def test_observers_are_told_of_the_time_out(stand: Stand) -> None:
    told: list[BaseException] = []
    sleeping(stand, timeout=5, max_attempts=1)
    await stand.enqueue()
    async with stand.working(error_handler=lambda job, error: told.append(error)):
        await stand.advance(10)
    (finished,) = stand.seen(JobFinished)
    assert finished.to == "discard"
    assert 5 <= finished.seconds <= 5 + TICK
    assert isinstance(finished.error, JobTimeoutError)
    assert [type(error) for error in told] == [JobTimeoutError]


async def test_the_handler_s_own_time_limits_are_its_own_affair(stand: Stand) -> None:
    @stand.registry.worker(Work, timeout=50, max_attempts=1)
    async def work(job: Job[Work]) -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "went on"
        return "never"

    handle = await stand.enqueue()
    async with stand.working():
        await stand.until(lambda: stand.seen(JobFinished))
    assert (await stand.row(handle)).output == b'"went on"'


async def test_a_cancellation_of_its_own_is_a_failure(stand: Stand) -> None:
    @stand.registry.worker(Work, max_attempts=2, retry_policy=FixedRetry(1))
    async def work(job: Job[Work]) -> str:
        if job.attempt == 1:
            raise asyncio.CancelledError("mine")
        return "second"

    row = await worked(stand, 5)
    assert (row.state, row.attempt, row.output) == (JobState.COMPLETED, 2, b'"second"')
    (error,) = row.errors
    assert (error.type, error.message) == ("asyncio.exceptions.CancelledError", "mine")
