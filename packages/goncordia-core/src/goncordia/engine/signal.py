"""A signal between the tasks of one loop: set by anyone, waited for with a time limit."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from goncordia.clock import Clock

__all__ = ["Signal"]


class Signal:
    """Each ``set`` wakes one waiter; one that nobody waits for is kept for the next wait."""

    __slots__ = ("_clock", "_kept", "_waiters")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept = False
        self._waiters: deque[asyncio.Future[bool]] = deque()

    def set(self) -> None:
        """Wake one waiter, or the next to come."""
        if self._kept:
            return
        waiters = self._waiters
        while waiters:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(True)
                return
        self._kept = True

    def set_all(self) -> None:
        """Wake all who wait now, and the next to come if nobody does."""
        if not self._waiters:
            self._kept = True
        while self._waiters:
            self.set()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for a ``set`` for at most so many seconds; False: the time was over first."""
        if self._kept:
            self._kept = False
            return True
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        timer = None if seconds is None else self._clock.call_later(seconds, _give_up(waiter))
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.result():
                self.set()  # the wake was meant for somebody: hand it on
            raise
        finally:
            if timer is not None:
                timer.cancel()
            if waiter.cancelled() or not waiter.done() or not waiter.result():
                self._discard(waiter)

    def _discard(self, waiter: asyncio.Future[bool]) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)


def _give_up(waiter: asyncio.Future[bool]) -> Callable[[], None]:
    def give_up() -> None:
        if not waiter.done():
            waiter.set_result(False)

    return give_up
