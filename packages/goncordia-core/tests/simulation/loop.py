"""An event loop on virtual time: when nothing is ready it jumps to the next timer.

The same callbacks in the same order give the same run, in every process and on every Python
version: no sockets, no threads, no real clock, and tasks whose hashes do not depend on addresses.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

__all__ = ["DeadlockError", "LivelockError", "SimLoop"]


class DeadlockError(Exception):
    """Nothing is ready, no timer is set: the simulation would wait for ever."""


class LivelockError(Exception):
    """Callbacks call callbacks, and time stands still."""


_MOST_TURNS = 20_000
"""Turns of the loop at one instant after which it is a livelock."""


class _Task(asyncio.Task[Any]):
    """A task that hashes by its number, so that sets of tasks have one order."""

    def __init__(self, coro: Any, *, numbers: Iterator[int], **options: Any) -> None:
        self._number = next(numbers)
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number


class _Future(asyncio.Future[Any]):
    """A future that hashes by its number."""

    def __init__(self, *, numbers: Iterator[int], loop: asyncio.AbstractEventLoop) -> None:
        self._number = next(numbers)
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class SimLoop(asyncio.BaseEventLoop):
    """The loop of one seed."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._turns = 0
        self._clock_resolution = 1e-9
        self._selector = self  # BaseEventLoop asks it to wait: see `select`
        self._numbers = itertools.count(1)
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self._now

    def create_future(self) -> asyncio.Future[Any]:
        """A future with a number."""
        return _Future(numbers=self._numbers, loop=self)

    def _make_task(
        self, _loop: asyncio.AbstractEventLoop, coro: Any, **options: Any
    ) -> asyncio.Task[Any]:
        return _Task(coro, numbers=self._numbers, loop=self, **options)

    # ---------------------------------------------------------------- what BaseEventLoop calls

    def select(self, timeout: float | None) -> tuple[()]:
        """Nothing is ready for so long: jump."""
        if timeout is None:
            raise DeadlockError
        if timeout > 0:
            self._now += timeout
            self._turns = 0
        self._turns += 1
        if self._turns > _MOST_TURNS:
            self._turns = 0
            raise LivelockError
        return ()

    def _process_events(self, event_list: object) -> None:
        """There are none: nothing but timers and callbacks."""

    def _write_to_self(self) -> None:
        """Nothing waits in a selector that would have to be woken."""
