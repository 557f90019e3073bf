"""Time: the one place where the engine learns what time it is, and waits.

Everything that waits takes a :class:`Clock`, so that a test can hold time still
(``goncordia.gontest.MockClock``) and a simulation can jump over it.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from goncordia._check import refuse

__all__ = ["Clock", "SystemClock", "Timer", "checked_clock"]

# Unlike CLOCK_MONOTONIC it runs on while the machine is suspended, as the backend's lease does.
_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Timer(Protocol):
    """A planned call."""

    def cancel(self) -> None:
        """Take the call back; harmless when it has been made."""


class Clock(ABC):
    """Wall time, monotonic time and timers."""

    @abstractmethod
    def now(self) -> datetime:
        """The wall time: aware, in UTC."""

    @abstractmethod
    def monotonic(self) -> float:
        """Seconds on a clock that never goes back and runs through a system suspend."""

    @abstractmethod
    def call_later(self, seconds: float, callback: Callable[[], object], /) -> Timer:
        """Call ``callback`` on the running event loop after so many seconds."""

    async def sleep(self, seconds: float, /) -> None:
        """Wait so many seconds."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end() -> None:
            if not over.done():
                over.set_result(None)

        timer = self.call_later(seconds, end)
        try:
            await over
        finally:
            timer.cancel()


class SystemClock(Clock):
    """The machine's time, and the event loop's timers."""

    def now(self) -> datetime:
        """The machine's wall time."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """``CLOCK_BOOTTIME`` where the system has it, else ``time.monotonic()``."""
        return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)

    def call_later(self, seconds: float, callback: Callable[[], object], /) -> Timer:
        """``loop.call_later`` of the running loop."""
        return asyncio.get_running_loop().call_later(seconds, callback)


def checked_clock(clock: object) -> Clock:
    """The clock, if it is one.

    Raises:
        ConfigurationError: it is none.
    """
    if not isinstance(clock, Clock):
        refuse("clock", clock, "a Clock")
    return clock
