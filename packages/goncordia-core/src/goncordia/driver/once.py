"""Doing something once, whoever comes first: tasks of one loop, of several, or of a portal."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

__all__ = ["Once"]


class Once:
    """Awaits a function once; those who come meanwhile wait, on whatever loop they are.

    A call that fails or is cancelled does not count: the next caller tries again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: Future[None] | None = None
        self.done = False
        """Whether the function has been awaited to its end."""

    async def __call__(self, function: Callable[[], Awaitable[object]]) -> None:
        """Make sure that it was done."""
        while not self.done:
            with self._lock:
                others, mine = self._under_way, Future[None]()
                if others is None:
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
            mine.set_result(None)

    def undo(self) -> None:
        """Have it done again at the next call."""
        self.done = False
