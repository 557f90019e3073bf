"""Several reasons to interrupt one run: the highest counts, in whatever order they come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import permutations
from typing import Any

import pytest

from goncordia import Job, WorkerPool
from goncordia.engine.run import Cause

from .stand import Stand, Work

LEASE = 30.0

AFTER: dict[Cause, tuple[str, int, str | None]] = {
    Cause.SHUTDOWN: ("available", 0, None),
    Cause.TIMEOUT: ("retryable", 1, "JobTimeoutError"),
    Cause.LAPSED: ("retryable", 1, "LeaseLapsedError"),
    Cause.CANCELLED: ("cancelled", 1, None),
    Cause.LOST: ("running", 1, None),
}
"""What becomes of the job for each cause: its state, its attempt, its error."""


class Stubborn:
    """A handler that takes no notice of interruptions until it is let go; then it gives in."""

    def __init__(self, stand: Stand) -> None:
        self.told = 0
        self.gives_in = asyncio.Event()

        @stand.registry.worker(Work, timeout=1000, retry_policy=lambda _: 5000)
        async def work(job: Job[Work]) -> None:
            while True:
                try:
                    await self.gives_in.wait()
                except asyncio.CancelledError:
                    self.told += 1
                else:
                    self.gives_in.clear()
                    raise asyncio.CancelledError


async def give(stand: Stand, pool: WorkerPool, cause: Cause) -> None:
    """Make it happen, as it comes about."""
    match cause:
        case Cause.CANCELLED:
            (job,) = (await stand.client.list()).jobs
            await stand.client.cancel(job)
            await stand.advance(0)
        case Cause.LOST:
            stand.end_sessions()
            await stand.advance(5)
        case _:
            # These need time that the others have not; what they call is the same.
            (run,) = stand.engine(pool).claims.running
            stand.engine(pool).dispatcher.interrupt(run, cause)
            await stand.advance(0)


@pytest.mark.parametrize(
    "causes", [*[(cause,) for cause in Cause], *permutations(Cause, 2)], ids=str
)
async def test_the_highest_cause_counts(stand: Stand, causes: tuple[Cause, ...]) -> None:
    handler = Stubborn(stand)
    handle = await stand.enqueue()
    async with stand.working(lease=LEASE, rescue_interval=10_000) as pool:
        for cause in causes:
            await give(stand, pool, cause)
        (run,) = stand.engine(pool).claims.running
        assert run.cause is max(causes)
        handler.gives_in.set()
        await stand.advance(0)
        row = await stand.row(handle)
        if max(causes) is Cause.SHUTDOWN:
            # It went back, and was fetched again at once.
            assert (row.state.value, row.attempt, row.errors) == ("running", 1, ())
            handler.gives_in.set()
        else:
            state, attempt, error = AFTER[max(causes)]
            assert (row.state.value, row.attempt) == (state, attempt)
            assert [each.type.split(".")[-1] for each in row.errors] == ([error] if error else [])


CAUSERS: dict[str, Callable[[Stand, WorkerPool], Awaitable[Any]]] = {
    "cancel": lambda stand, pool: give(stand, pool, Cause.CANCELLED),
    "lost": lambda stand, pool: give(stand, pool, Cause.LOST),
}


@pytest.mark.parametrize("first", CAUSERS)
async def test_a_higher_cause_interrupts_again_and_a_lower_one_does_not(
    stand: Stand, first: str
) -> None:
    handler = Stubborn(stand)
    await stand.enqueue()
    async with stand.working(lease=LEASE, rescue_interval=10_000) as pool:
        (run,) = stand.engine(pool).claims.running
        interrupt = stand.engine(pool).dispatcher.interrupt
        interrupt(run, Cause.TIMEOUT)
        await stand.advance(0)
        assert handler.told == 1
        await CAUSERS[first](stand, pool)
        assert handler.told == 2
        interrupt(run, Cause.TIMEOUT)
        interrupt(run, Cause.LAPSED)
        await CAUSERS[first](stand, pool)
        assert handler.told == 2
        handler.gives_in.set()


async def test_the_lease_and_the_time_out_of_real_time(stand: Stand) -> None:
    """Timed out first, lapsed later: the later, higher one counts."""
    handler = Stubborn(stand)
    handle = await stand.enqueue(timeout=10)
    async with stand.working(lease=LEASE, interrupt_on_lapse=True, rescue_interval=10_000):
        with stand.wire.outage():
            await stand.advance(11)
            assert handler.told == 1
            await stand.advance(25)
            assert handler.told == 2
        handler.gives_in.set()
        await stand.advance(10)
    (error,) = (await stand.row(handle)).errors
    assert error.type == "goncordia.errors.LeaseLapsedError"
