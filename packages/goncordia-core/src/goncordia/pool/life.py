"""One life of a pool: all of it, from the start to the end, in one task.

A lifespan may hold a task group or a time limit, which must be left in the task that entered it;
who stops the pool need not be who started it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from goncordia.engine.engine import Engine
from goncordia.errors import GoncordiaError

__all__ = ["Life"]


class Life:
    """Lives once.

    Args:
        working: what is entered at the start and left at the end; it gives the engine.
    """

    def __init__(self, working: Callable[[], AbstractAsyncContextManager[Engine]]) -> None:
        loop = asyncio.get_running_loop()
        self._working = working
        self._started: asyncio.Future[Engine] = loop.create_future()
        self._told = asyncio.Event()
        self._task = loop.create_task(self._live())

    @property
    def engine(self) -> Engine | None:
        """The engine; None: it is not started yet."""
        return self._started.result() if self._started.done() else None

    @property
    def ending(self) -> bool:
        """Whether it was told to end, or has ended."""
        return self._told.is_set() or self._task.done()

    async def start(self) -> None:
        """Wait until it works; cancelled, it gives up.

        Raises:
            GoncordiaError: it was told to end before it worked.
            Exception: what kept it from working.
        """
        try:
            await asyncio.wait((self._task, self._started), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._give_up()
            raise
        if self._started.done():
            return
        if self._task.cancelled():
            raise GoncordiaError("WorkerPool: it was stopped before it had started")
        self._task.result()

    async def end(self) -> None:
        """End in order, or at once if it does not work yet; cancelled, it leaves the order be.

        Raises:
            Exception: what went wrong at the end, such as the lifespan's error.
        """
        self._told.set()
        if not self._started.done():
            await self._give_up()
            return
        try:
            await asyncio.wait((self._task,))
        except asyncio.CancelledError:
            await self._give_up()
            raise
        if not self._task.cancelled():
            self._task.result()

    async def over(self) -> None:
        """Wait for the end, whoever brings it about; a lifespan may fail on its own."""
        await asyncio.wait((self._task,))

    async def _give_up(self) -> None:
        self._task.cancel()
        await asyncio.wait((self._task,))

    async def _live(self) -> None:
        async with self._working() as engine:
            self._started.set_result(engine)
            await self._told.wait()
