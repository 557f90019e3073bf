"""Failures: when a job runs again, how often, and what is kept of them."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from goncordia import ExponentialRetry, FixedRetry, Job, JobState, NoRetry, by_error
from goncordia.driver import JobRow

from .stand import Other, Stand, Work


def failing(stand: Stand, error: Exception | None = None, **options: Any) -> list[float]:
    """A worker that always fails; the times of its attempts."""
    times: list[float] = []

    @stand.registry.worker(Work, **options)
    async def work(job: Job[Work]) -> None:
        times.append(round(stand.clock.monotonic(), 3))
        raise error or ValueError(f"no {job.attempt}")

    return times


async def worked(stand: Stand, seconds: float, *, job: Any = None, **settings: Any) -> JobRow:
    handle = await stand.enqueue(**(job or {}))
    async with stand.working(**settings):
        await stand.advance(seconds)
    return await stand.row(handle)


async def test_a_failure_is_repeated_until_it_succeeds(stand: Stand) -> None:
    @stand.registry.worker(Work, retry_policy=FixedRetry(2))
    async def work(job: Job[Work]) -> int:
        if job.attempt < 4:
            raise ValueError(f"no {job.attempt}")
        return job.attempt

    row = await worked(stand, 10)
    assert (row.state, row.attempt, row.output) == (JobState.COMPLETED, 4, b"4")
    assert [(error.attempt, error.message) for error in row.errors] == [
        (1, "no 1"),
        (2, "no 2"),
        (3, "no 3"),
    ]
    start = stand.clock.now() - timedelta(seconds=10)
    assert [error.at - start for error in row.errors] == [timedelta(seconds=s) for s in (0, 2, 4)]


async def test_the_pool_s_policy_applies_where_the_worker_has_none(stand: Stand) -> None:
    times = failing(stand, max_attempts=4)
    await worked(stand, 100, retry_policy=ExponentialRetry(3, jitter=False))
    assert times == [0.0, 3.0, 9.0, 21.0]


async def test_the_worker_s_policy_wins(stand: Stand) -> None:
    times = failing(stand, max_attempts=3, retry_policy=lambda attempt: 10 * attempt)
    await worked(stand, 100, retry_policy=FixedRetry(1))
    assert times == [0.0, 10.0, 30.0]


async def test_the_default_is_exponential_with_full_jitter(stand: Stand) -> None:
    times = failing(stand, max_attempts=5)
    await worked(stand, 100)
    pauses = [after - before for before, after in pairwise(times)]
    assert len(pauses) == 4
    # A retry is fetched when it is due, within the rounding of the clock.
    assert all(0 <= pause <= 2**n + 0.001 for n, pause in enumerate(pauses))
    assert len(set(pauses)) == 4


async def test_jitter_comes_from_the_pool_s_source(stand: Stand) -> None:
    times = failing(stand, max_attempts=2)
    await worked(stand, 10, rng=random.Random(5))
    again = Stand()
    same = failing(again, max_attempts=2)
    await worked(again, 10, rng=random.Random(5))
    assert times == same


async def test_no_retry_discards_at_the_first_failure(stand: Stand) -> None:
    times = failing(stand, retry_policy=NoRetry())
    row = await worked(stand, 100)
    assert (row.state, row.attempt, len(times)) == (JobState.DISCARDED, 1, 1)


@pytest.mark.parametrize(
    ("error", "expected"),
    [(KeyError("x"), [0.0, 7.0]), (ValueError("x"), [0.0]), (OSError("x"), [0.0, 1.0])],
)
async def test_a_policy_by_error(stand: Stand, error: Exception, expected: list[float]) -> None:
    rules = by_error({LookupError: FixedRetry(7), ValueError: NoRetry()}, otherwise=FixedRetry(1))
    times = failing(stand, error, max_attempts=2, retry_policy=rules)
    row = await worked(stand, 20)
    assert (times, row.state) == (expected, JobState.DISCARDED)


async def test_a_policy_sees_the_time_out_and_not_the_cancellation(stand: Stand) -> None:
    seen: list[BaseException | None] = []

    def policy(attempt: int, error: BaseException | None) -> float | None:
        seen.append(error)
        return None

    @stand.registry.worker(Work, timeout=1, retry_policy=policy)
    async def work(job: Job[Work]) -> None:
        await stand.clock.sleep(50)

    await worked(stand, 10)
    assert [isinstance(each, TimeoutError) for each in seen] == [True]


class Broken:
    """A policy that answers as it should not."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def delay(self, attempt: int, error: BaseException | None, rng: random.Random) -> float | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: float | None = self.answer
        return answer


@pytest.mark.parametrize("answer", [ZeroDivisionError(), -1, float("nan"), float("inf"), "soon"])
async def test_where_a_policy_fails_the_default_one_applies(stand: Stand, answer: object) -> None:
    times = failing(stand, max_attempts=3, retry_policy=Broken(answer))
    row = await worked(stand, 10)
    assert (row.state, row.attempt, len(times)) == (JobState.DISCARDED, 3, 3)
    assert [error.type for error in row.errors] == ["ValueError"] * 3


@pytest.mark.parametrize(
    ("job", "worker", "pool", "expected"),
    [
        (None, None, None, 25),
        (None, None, 2, 2),
        (None, 3, 2, 3),
        (4, 3, 2, 4),
        (1, 3, None, 1),
    ],
)
async def test_max_attempts_of_the_job_then_the_worker_then_the_pool(
    stand: Stand, job: int | None, worker: int | None, pool: int | None, expected: int
) -> None:
    told: list[int] = []
    options: dict[str, Any] = {} if worker is None else {"max_attempts": worker}

    @stand.registry.worker(Work, retry_policy=FixedRetry(1), **options)
    async def work(job: Job[Work]) -> None:
        told.append(job.max_attempts)
        raise ValueError

    row = await worked(
        stand,
        40,
        job={} if job is None else {"max_attempts": job},
        **({} if pool is None else {"max_attempts": pool}),
    )
    assert told == [expected] * expected
    assert (row.state, row.attempt) == (JobState.DISCARDED, expected)
    assert len(row.errors) == min(expected, 20)


async def test_one_job_s_failures_do_not_hold_up_others(stand: Stand) -> None:
    failing(stand, retry_policy=FixedRetry(0.01))
    done: list[int] = []

    @stand.registry.worker(Other)
    async def other(job: Job[Other]) -> None:
        done.append(job.args.n)

    await stand.enqueue()
    async with stand.working(concurrency=1):
        await stand.advance(1)
        for n in range(20):
            await stand.enqueue(Other(n))
        await stand.advance(1)
        assert sorted(done) == list(range(20))
