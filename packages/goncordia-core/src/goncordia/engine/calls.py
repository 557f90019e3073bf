"""Calling a driver: bounded in time, and repeated until it answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from goncordia.clock import Clock
from goncordia.engine.logs import log_repeated
from goncordia.errors import (
    DriverBusyError,
    DriverError,
    DriverUnavailableError,
    MigrationRequiredError,
)

__all__ = ["Backoff", "Calls", "busy_pause", "one_each", "refused"]

T = TypeVar("T")
Answers = TypeVar("Answers", bound=Sequence[Any])

_FIRST_BACKOFF: Final = 0.05
_LONGEST_ASKED: Final = 60.0
_FIRST_BUSY: Final = 0.02
_LONGEST_BUSY: Final = 0.2
_PASSING: Final = (
    DriverUnavailableError,
    DriverBusyError,
    MigrationRequiredError,
    OSError,
    EOFError,
)


def refused(error: Exception) -> bool:
    """Whether the driver understood the request and will not do it, now or later.

    Everything else is worth repeating: the backend may be away, busy, or may have done it. So may
    it behind an error of the operating system that the driver should have translated.
    """
    if isinstance(error, _PASSING):
        return False
    return not (isinstance(error, DriverError) and error.outcome == "unknown")


def one_each(requests: Sequence[object], answers: Answers) -> Answers:
    """The answers, if there is one to each request.

    Raises:
        DriverError: there is not; the outcome is unknown.
    """
    if len(answers) != len(requests):
        raise DriverError(
            f"the driver gave {len(answers)} answers to {len(requests)} requests in one call"
        )
    return answers


def busy_pause(times: int, rng: random.Random) -> float:
    """Seconds until something is sent again that was answered ``BUSY`` so often in a row.

    Mostly it was a fetch, which held the job for a moment only.
    """
    return rng.uniform(0.5, 1.5) * min(_FIRST_BUSY * (1 << min(times - 1, 10)), _LONGEST_BUSY)


class Backoff:
    """Waits that double up to a cap, each drawn evenly from zero to it."""

    def __init__(self, clock: Clock, rng: random.Random, cap: float) -> None:
        self._clock = clock
        self._rng = rng
        self._cap = cap
        self._next = _FIRST_BACKOFF
        self.failures = 0

    def reset(self) -> None:
        """An answer came."""
        self._next = _FIRST_BACKOFF
        self.failures = 0

    def delay(self, error: Exception) -> float:
        """Seconds to wait after this error; not less than the backend asks for, up to a minute."""
        self.failures += 1
        delay = self._next * self._rng.random()
        self._next = min(self._next * 2, self._cap)
        asked = error.retry_after if isinstance(error, DriverError) else None
        return delay if asked is None else max(delay, min(asked, _LONGEST_ASKED))

    async def pause(self, error: Exception, doing: str) -> None:
        """Log the error, the first of a row loudly, and wait."""
        delay = self.delay(error)
        log_repeated(doing, self.failures, error)
        await self._clock.sleep(delay)


class Calls:
    """How the engine calls its driver.

    Args:
        clock: for the bound and the waits.
        rng: for the jitter.
        bound: seconds after which a call counts as unanswered.
        cap: the longest pause in seconds between two tries.
    """

    def __init__(self, clock: Clock, rng: random.Random, *, bound: float, cap: float = 2.0) -> None:
        self._clock = clock
        self._rng = rng
        self._bound = bound
        self._cap = cap

    def backoff(self) -> Backoff:
        """A new row of pauses."""
        return Backoff(self._clock, self._rng, self._cap)

    async def once(self, call: Awaitable[T]) -> T:
        """Await one call, for a bounded time.

        Raises:
            DriverUnavailableError: it did not answer in time, or was cancelled inside the driver;
                the outcome is unknown.
        """
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a coroutine of the engine always runs in a task
        cancelling = task.cancelling()
        expired = False

        def expire() -> None:
            nonlocal expired
            expired = True
            task.cancel()

        timer = self._clock.call_later(self._bound, expire)
        try:
            return await call
        except asyncio.CancelledError as cancelled:
            if task.cancelling() > cancelling + expired:
                raise
            if expired:
                raise DriverUnavailableError(
                    f"the backend did not answer within {self._bound:g} s"
                ) from None
            raise DriverUnavailableError("the driver cancelled its own call") from cancelled
        finally:
            timer.cancel()
            if expired:
                task.uncancel()  # also where the driver took no notice of it

    async def until_answered(self, make: Callable[[], Awaitable[T]], doing: str) -> T:
        """Repeat a call, unchanged, until it is answered.

        Raises:
            Exception: the driver refused the request for good; see :func:`refused`.
        """
        backoff = self.backoff()
        while True:
            try:
                return await self.once(make())
            except Exception as error:
                if refused(error):
                    raise
                await backoff.pause(error, doing)
