"""Doing something once, whoever comes first: tasks of one loop, of several, or of a portal."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

from goncordia.driver.connections.forks import Home

__all__ = ["Once"]


class Once:
    """Awaits a function once; those who come meanwhile wait, on whatever loop they are.

    A call that fails or is cancelled does not count: the next caller tries again.
    """

    def __init__(self) -> None:
        self._home = Home()
        self._lock = threading.Lock()
        self._under_way: Future[None] | None = None
        self.done = False
        """Whether the function has been awaited to its end."""

    async def __call__(self, function: Callable[[], Awaitable[object]]) -> None:
        """Make sure that it was done.

        Raises:
            ConfigurationError: another process is at it, of which this is a fork.
        """
        while not self.done:
            self._home.check()
            with self._lock:
                others, mine = self._under_way, Future[None]()
                if others is None:
                    self._home.enter()
                    self._under_way = mine
            if others is None:
                await self._do(function, mine)
            else:
                await asyncio.shield(asyncio.wrap_future(others))

    async def _do(self, function: Callable[[], Awaitable[object]], mine: Future[None]) -> None:
        try:
            if not self.done:
                await function()
                self.done = True
        finally:
            with self._lock:
                self._under_way = None
                self._home.leave()
            mine.set_result(None)

    def undo(self) -> None:
        """Have it done again at the next call."""
        self.done = False
