"""One store behind one lock, and those who listen to it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Final, Self, TypeVar

from goncordia.clock import Clock
from goncordia.driver.results import Wake
from goncordia.memory.store import Store

__all__ = ["Core", "MemoryListener"]

R = TypeVar("R")

_MOST_HEARD: Final = 1000


class Core:
    """What all executors of one driver share. Any thread may use it.

    Args:
        clock: the store's time.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.store = Store()
        self._lock = threading.Lock()
        self._listeners: tuple[MemoryListener, ...] = ()

    def call(self, operation: Callable[[Store, datetime], R]) -> R:
        """Run the operation alone on the store, then tell the listeners."""
        with self._lock:
            now = self.clock.now()
            answer = operation(self.store, now)
            wakes = self.store.wakes.take(now)
        if wakes:
            for listener in self._listeners:
                listener.hear(wakes)
        return answer

    def listen(self) -> MemoryListener:
        """A new listener; it hears from now on."""
        listener = MemoryListener(self)
        with self._lock:
            self._listeners = (*self._listeners, listener)
        return listener

    def forget(self, listener: MemoryListener) -> None:
        """The listener hears no more."""
        with self._lock:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

    def close(self) -> None:
        """Close all listeners. The store stays."""
        for listener in self._listeners:
            listener.close()


class MemoryListener:
    """Hears of new, freed, cancelled and rescheduled jobs, from whatever thread they come."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._heard: deque[Wake] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def wakes(self) -> AsyncIterator[Wake]:
        """The wakes, as they come; for one reader."""
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Wake:
        while True:
            with self._lock:
                if self._heard:
                    return self._heard.popleft()
                if self._closed:
                    raise StopAsyncIteration
                waiter = self._waiter = asyncio.get_running_loop().create_future()
            await waiter

    async def aclose(self) -> None:
        """Stop listening."""
        self.close()

    def close(self) -> None:
        """Stop listening; from any thread."""
        self._core.forget(self)
        with self._lock:
            self._closed = True
            self._wake_reader()

    def hear(self, wakes: Sequence[Wake]) -> None:
        """Take wakes in; a reader who fell far behind hears of a gap instead."""
        with self._lock:
            self._heard.extend(wakes)
            if len(self._heard) > _MOST_HEARD:
                self._heard.clear()
                self._heard.append(Wake("gap"))
            self._wake_reader()

    def _wake_reader(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed: nobody reads
                waiter.get_loop().call_soon_threadsafe(_set, waiter)


def _set(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
