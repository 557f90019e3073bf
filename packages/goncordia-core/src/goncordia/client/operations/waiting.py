"""Waiting for jobs to end: one poller for all who wait.

Each waiter has its own growing interval, so that one who waits for an hour costs little and a new
one is answered fast; those that are due at nearly the same time are looked up together.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from goncordia.clock import Clock, Timer
from goncordia.driver import JobRow
from goncordia.errors import NotFoundError

__all__ = ["Interval", "Waiters", "not_found", "still_waiting"]

_FIRST: Final = 0.025
_GROWTH: Final = 1.5
_LONGEST: Final = 1.0
# A waiter may be looked up this part of its interval early, to go together with others.
_EARLY: Final = 0.25

_GetMany: TypeAlias = Callable[[Sequence[UUID]], Awaitable[list[JobRow | None]]]


class Interval:
    """The growing, jittered time between two looks at a job."""

    __slots__ = ("_rng", "_seconds")

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._seconds = _FIRST

    def next(self) -> float:
        """Seconds until the next look."""
        seconds = self._seconds
        self._seconds = min(_LONGEST, seconds * _GROWTH)
        return seconds * self._rng.uniform(0.8, 1.2)


def not_found(job_id: UUID) -> NotFoundError:
    """The error for an id without a job."""
    return NotFoundError(f"there is no job {job_id}")


def still_waiting(job_id: UUID, timeout: float, row: JobRow | None) -> TimeoutError:
    """The error for a wait that took too long."""
    last = f"; it is {row.state}" if row else ""
    return TimeoutError(f"job {job_id} did not end within {timeout:g} s{last}")


class _Waiter:
    __slots__ = ("due", "early", "future", "interval", "job_id", "row")

    def __init__(self, job_id: UUID, interval: Interval, now: float) -> None:
        self.job_id = job_id
        self.interval = interval
        self.future: asyncio.Future[JobRow] = asyncio.get_running_loop().create_future()
        self.due = self.early = now
        self.row: JobRow | None = None

    def saw(self, row: JobRow | None, now: float) -> None:
        """Take note of what was read."""
        if self.future.done():
            return
        if row is None:
            self.future.set_exception(not_found(self.job_id))
        elif row.state.finished:
            self.future.set_result(row)
        else:
            self.row = row
            seconds = self.interval.next()
            self.due = now + seconds
            self.early = self.due - seconds * _EARLY

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Waiters:
    """All who wait through one client on one event loop.

    Args:
        get_many: reads jobs, at most ``max_batch`` at once.
        clock: time and timers.
        rng: the source of the jitter.
        max_batch: how many jobs one ``get_many`` takes.
    """

    def __init__(
        self, get_many: _GetMany, clock: Clock, rng: random.Random, max_batch: int
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._get_many = get_many
        self._clock = clock
        self._rng = rng
        self._max_batch = max_batch
        self._waiting: dict[_Waiter, None] = {}  # in order: what happens must be repeatable
        self._poller: asyncio.Task[None] | None = None
        self._alarm: asyncio.Event = asyncio.Event()

    async def wait(self, job_id: UUID, timeout: float | None) -> JobRow:
        """The job, once it has ended.

        Raises:
            NotFoundError: there is no such job, or no more.
            TimeoutError: it did not end in time; a timeout of 0 looks once.
        """
        if timeout == 0:
            (row,) = await self._get_many([job_id])
            if row is None:
                raise not_found(job_id)
            if not row.state.finished:
                raise still_waiting(job_id, 0, row)
            return row
        waiter = _Waiter(job_id, Interval(self._rng), self._clock.monotonic())
        timer = self._deadline(waiter, timeout)
        self._waiting[waiter] = None
        self._alarm.set()
        if self._poller is None:
            # Without the context of whoever waits first: the poller serves all.
            self._poller = self.loop.create_task(
                self._poll(), name="goncordia-wait", context=contextvars.Context()
            )
        try:
            return await waiter.future
        finally:
            if timer is not None:
                timer.cancel()
            self._waiting.pop(waiter, None)
            self._alarm.set()
            if waiter.future.done() and not waiter.future.cancelled():
                # Seen, also when the one who waits was cancelled in the same moment.
                waiter.future.exception()

    def _deadline(self, waiter: _Waiter, timeout: float | None) -> Timer | None:
        if timeout is None:
            return None
        return self._clock.call_later(
            timeout, lambda: waiter.fail(still_waiting(waiter.job_id, timeout, waiter.row))
        )

    async def _poll(self) -> None:
        try:
            while self._waiting:
                now = self._clock.monotonic()
                due = [waiter for waiter in self._waiting if waiter.early <= now]
                if due:
                    await self._look(due)
                else:
                    await self._sleep(min(waiter.due for waiter in self._waiting) - now)
        except asyncio.CancelledError:
            for waiter in self._waiting:
                waiter.future.cancel()
            raise
        finally:
            self._poller = None

    async def _look(self, due: list[_Waiter]) -> None:
        ids = list(dict.fromkeys(waiter.job_id for waiter in due))
        rows: dict[UUID, JobRow | None] = {}
        try:
            for start in range(0, len(ids), self._max_batch):
                batch = ids[start : start + self._max_batch]
                rows.update(zip(batch, await self._get_many(batch), strict=True))
        except Exception as error:  # noqa: BLE001 - it is for those who wait
            for waiter in due:
                waiter.fail(error)
        else:
            now = self._clock.monotonic()
            for waiter in due:
                waiter.saw(rows[waiter.job_id], now)
        for waiter in due:
            if waiter.future.done():
                self._waiting.pop(waiter, None)

    async def _sleep(self, seconds: float) -> None:
        self._alarm.clear()
        timer = self._clock.call_later(seconds, self._alarm.set)
        try:
            await self._alarm.wait()
        finally:
            timer.cancel()
