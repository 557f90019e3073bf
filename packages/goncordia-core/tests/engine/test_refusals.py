"""Results that the backend will not store: found out, replaced, and no harm to the others."""

from __future__ import annotations

from typing import Any

import pytest

from goncordia import Discard, DriverError, Job, JobState, NoRetry, RetryAfter
from goncordia.driver import Finish
from goncordia.engine.events import JobFinished

from .stand import Gate, Stand, Work

POISON = "poison"


def too_large() -> DriverError:
    return DriverError("document too large", outcome="not_applied")


def refusing(stand: Stand, *, also_errors: bool = False) -> list[int]:
    """The backend refuses batches that hold a poisoned result; the sizes of those batches."""
    refused: list[int] = []

    def poisoned(args: tuple[Any, ...]) -> bool:
        finishes: list[Finish] = args[0]
        found = any(
            POISON in repr(finish.output) or (also_errors and POISON in repr(finish.error))
            for finish in finishes
        )
        if found:
            refused.append(len(finishes))
        return found

    for name in ("exchange", "finish_many"):
        stand.wire.fail(name, too_large(), times=10_000, only=poisoned)
    return refused


@pytest.mark.parametrize("bad", [{0}, {19}, {3, 4}, {0, 7, 13}, set(range(20))])
async def test_only_the_refused_ones_fail(stand: Stand, bad: set[int]) -> None:
    gate = Gate()

    @stand.registry.worker(Work, retry_policy=NoRetry())
    async def work(job: Job[Work]) -> str:
        await gate.pass_through()
        return POISON if job.args.n in bad else "fine"

    handles = [await stand.enqueue(Work(n)) for n in range(20)]
    refused = refusing(stand)
    async with stand.working(concurrency=20) as pool:
        gate.open()
        await stand.advance(5)
        assert len(stand.engine(pool).claims) == 0
    for n, handle in enumerate(handles):
        row = await stand.row(handle)
        if n in bad:
            assert (row.state, row.output, row.attempt) == (JobState.DISCARDED, None, 1)
            assert [error.message for error in row.errors] == ["document too large"]
        else:
            assert (row.state, row.output, row.errors) == (JobState.COMPLETED, b'"fine"', ())
    assert gate.came == 20
    # Halved, and halved again, down to the ones.
    assert refused[0] == 20
    assert refused.count(1) == len(bad)
    assert len(refused) <= 2 + 2 * len(bad) * 5


async def test_the_failure_in_its_place_is_retried_like_any(stand: Stand) -> None:
    @stand.registry.worker(Work, retry_policy=lambda _: 5)
    async def work(job: Job[Work]) -> str:
        return POISON if job.attempt == 1 else "smaller"

    refusing(stand)
    handle = await stand.enqueue()
    async with stand.working():
        await stand.advance(10)
    row = await stand.row(handle)
    assert (row.state, row.attempt, row.output) == (JobState.COMPLETED, 2, b'"smaller"')
    assert [error.message for error in row.errors] == ["document too large"]


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (ValueError(POISON), JobState.RETRYABLE),
        (RetryAfter(60, POISON), JobState.RETRYABLE),
        (Discard(POISON), JobState.DISCARDED),
    ],
)
async def test_a_refused_error_is_replaced_by_the_refusal(
    stand: Stand, error: Exception, state: JobState
) -> None:
    """What becomes of the job stays; only what cannot be stored goes."""
    runs: list[int] = []

    @stand.registry.worker(Work, retry_policy=lambda _: 60)
    async def work(job: Job[Work]) -> None:
        runs.append(job.attempt)
        raise error

    refusing(stand, also_errors=True)
    handle = await stand.enqueue()
    async with stand.working(lease=30):
        await stand.advance(40)  # past the questions of the reconciler
        row = await stand.row(handle)
        assert (row.state, row.attempt, runs) == (state, 1, [1])
        assert [found.message for found in row.errors] == ["document too large"]


async def test_what_is_refused_again_is_let_go_and_said(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> str:
        return "x"

    for name in ("exchange", "finish_many"):
        stand.wire.fail(name, too_large(), times=10_000, only=lambda args: bool(args[0]))
    await stand.enqueue()
    async with stand.working(lanes=1) as pool:
        await stand.advance(1)
        assert len(stand.engine(pool).claims) == 0
        assert caplog.text.count("its result cannot be stored: document too large") == 2
    assert len(stand.seen(JobFinished)) == 1


async def test_a_refusal_of_the_fetch_does_not_touch_the_results(stand: Stand) -> None:
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> str:
        await gate.pass_through()
        return "fine"

    handle = await stand.enqueue()
    async with stand.working():
        stand.wire.fail(
            "exchange", too_large(), times=3, only=lambda args: bool(args[0]) and bool(args[1])
        )
        gate.open()
        await stand.advance(1)
        assert await stand.state(handle) == "completed"
