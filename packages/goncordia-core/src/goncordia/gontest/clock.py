"""A clock that stands still until the test moves it."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
import math
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from goncordia.clock import Clock, Timer
from goncordia.errors import ConfigurationError

__all__ = ["MockClock"]

_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_NANOSECONDS: Final = 1_000_000_000
_TURNS: Final = 100
_QUIET_TURNS: Final = 3


class MockClock(Clock):
    """Time by hand: nothing that waits on this clock goes on before :meth:`advance`.

    It works on every event loop. Timers of several loops may hang on one clock; each is called on
    the loop that planned it. Times add up exactly: ten times ``advance(0.1)`` is one second.

    Args:
        start: the wall time at the beginning; aware. Default: the first moment of 2026, UTC.

    Raises:
        ConfigurationError: ``start`` is naive.
    """

    def __init__(self, start: datetime = _START) -> None:
        self._wall = _aware("start", start)
        self._elapsed = 0  # nanoseconds since the beginning
        self._lock = threading.Lock()
        self._timers: list[tuple[float, int, _Timer]] = []
        self._sequence = itertools.count()

    def now(self) -> datetime:
        """The wall time: aware, in UTC."""
        return self._wall + timedelta(microseconds=self._elapsed // 1000)

    def monotonic(self) -> float:
        """Seconds since the clock was made; :meth:`set` does not move it."""
        return self._elapsed / _NANOSECONDS

    def call_later(self, seconds: float, callback: Callable[[], object], /) -> Timer:
        """Call ``callback`` on the running event loop, once time was advanced so far."""
        timer = _Timer(asyncio.get_running_loop(), callback)
        if seconds != math.inf:
            # Never at once, however short: who waits for a float's last bit would wait for ever.
            least = 1 if seconds > 0 else 0
            when = self._elapsed + max(least, round(seconds * _NANOSECONDS))
            with self._lock:
                heapq.heappush(self._timers, (when, next(self._sequence), timer))
        return timer

    def set(self, when: datetime) -> None:
        """Step the wall time, forward or back, as an administrator would.

        Monotonic time and timers do not notice.

        Raises:
            ConfigurationError: ``when`` is naive.
        """
        self._wall = _aware("when", when) - timedelta(microseconds=self._elapsed // 1000)

    async def advance(self, seconds: float | timedelta) -> None:
        """Move time forward, timer by timer; between two timers all that can run, runs.

        Timers are called in the order of their times, those of one time in the order in which
        they were planned. Timers planned on the way are called too when their time comes. Work in
        threads and on sockets is not waited for.

        Raises:
            ConfigurationError: ``seconds`` is negative or no finite number.
        """
        if isinstance(seconds, timedelta):
            seconds = seconds.total_seconds()
        if not 0 <= seconds < math.inf:
            raise ConfigurationError(f"seconds: {seconds!r} is not a number of seconds from 0 up")
        end = self._elapsed + round(seconds * _NANOSECONDS)
        await self.settle()
        while (timer := self._pop_due(end)) is not None:
            timer.fire()
            await self.settle()
        self._elapsed = max(self._elapsed, end)

    async def settle(self) -> None:
        """Let the event loop run until everything waits for time or for the outside."""
        # asyncio's own loops show what is ready to run; others get all their turns.
        ready = getattr(asyncio.get_running_loop(), "_ready", None)
        quiet = 0
        for _ in range(_TURNS):
            await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
            quiet = quiet + 1 if ready is not None and not ready else 0
            if quiet == _QUIET_TURNS:
                return

    def _pop_due(self, end: int) -> _Timer | None:
        """The next timer that is due until ``end``; time goes on to it."""
        with self._lock:
            while self._timers and self._timers[0][0] <= end:
                when, _, timer = heapq.heappop(self._timers)
                if timer.live:
                    self._elapsed = max(self._elapsed, int(when))
                    return timer
        return None


class _Timer:
    """A planned call on the loop and in the context that planned it."""

    __slots__ = ("_callback", "_context", "_loop", "live")

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
        self._loop = loop
        self._callback = callback
        self._context = contextvars.copy_context()
        self.live = True

    def cancel(self) -> None:
        """Take the call back."""
        self.live = False

    def fire(self) -> None:
        """Hand the call to its loop."""
        if self._loop.is_closed():
            return
        if self._loop is asyncio.get_running_loop():
            self._loop.call_soon(self._run, context=self._context)
        else:
            self._loop.call_soon_threadsafe(self._run, context=self._context)

    def _run(self) -> None:
        if self.live:
            self.live = False
            self._callback()


def _aware(field: str, when: datetime) -> datetime:
    if when.tzinfo is None:
        raise ConfigurationError(f"{field}: {when!r} is naive; give it a time zone")
    return when.astimezone(UTC)
