"""Hearing what others tell, on a connection of its own that is made again when it is lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeAlias

from goncordia.driver.results import Wake
from goncordia.errors import GoncordiaError

__all__ = ["Ear", "KeptListener", "Tell"]

Tell: TypeAlias = Callable[[Wake], object]
"""Is told of each wake; on the event loop, and it raises nothing."""

_KEEP_ALIVE: Final = 10.0
"""Seconds without a word after which the server is asked whether it is there."""
_BOUND: Final = 5.0
"""Seconds for connecting, and for a sign of life."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_MOST_HEARD: Final = 1000


class Ear(Protocol):
    """A connection on which wakes are heard. It tells each as it comes, to whom it was made for."""

    async def hear(self, seconds: float, /) -> bool:
        """Wait for something to come, for so long. False: it is quiet.

        Raises:
            Exception: the library's, when the connection is lost.
        """
        ...

    async def ping(self) -> None:
        """Ask the server for a sign of life, and wait for it."""
        ...

    async def aclose(self) -> None:
        """Close it, whatever its state. Bounded in time; raises nothing but a cancellation."""
        ...


class KeptListener:
    """Hears of new, freed, cancelled and rescheduled jobs; for one reader.

    A task of it connects, and again whenever the connection is lost or the server does not answer;
    then it tells a gap.

    Args:
        connect: makes a connection that hears, given whom it tells.
        translated: a block in which the library's errors become ours.
        logger: the driver's.
    """

    def __init__(
        self,
        connect: Callable[[Tell], Awaitable[Ear]],
        translated: Callable[[], AbstractContextManager[None]],
        logger: logging.Logger,
    ) -> None:
        self._connect = connect
        self._translated = translated
        self._logger = logger
        self._heard: asyncio.Queue[Wake | None] = asyncio.Queue()
        self._tell: Tell = self._keep
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def wakes(self) -> AsyncIterator[Wake]:
        """The wakes, as they come; ends when the listener is closed."""
        if self._closed:
            return
        self._start()
        while (wake := await self._heard.get()) is not None:
            yield wake

    async def wakes_to(self, tell: Tell, /) -> None:
        """See :meth:`goncordia.driver.DirectListener.wakes_to`."""
        self._tell = tell
        self._start()
        if self._task is not None:
            await asyncio.wait([self._task])

    def _start(self) -> None:
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def aclose(self) -> None:
        """Stop listening."""
        self._closed = True
        self._heard.put_nowait(None)
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    # ---------------------------------------------------------------- the task

    async def _run(self) -> None:
        lost = False
        pause = _FIRST_PAUSE
        while True:
            began = asyncio.get_running_loop().time()
            try:
                with self._translated():
                    await self._listen(lost=lost)
            except GoncordiaError as error:
                self._logger.log(
                    logging.DEBUG if lost else logging.WARNING,
                    "listening for jobs failed, trying again: %s",
                    error,
                )
            except Exception:
                self._logger.exception("listening for jobs failed; this is a bug")
            lost = True
            if asyncio.get_running_loop().time() - began > _KEEP_ALIVE:
                pause = _FIRST_PAUSE
            await asyncio.sleep(pause * random.uniform(0.5, 1))
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _listen(self, *, lost: bool) -> None:
        """Listen on a new connection, until it is lost."""
        async with asyncio.timeout(_BOUND):
            ear = await self._connect(self._tell)
        try:
            if lost:
                self._tell(Wake("gap"))
            while True:
                if not await ear.hear(_KEEP_ALIVE):
                    async with asyncio.timeout(_BOUND):
                        await ear.ping()
        finally:
            await ear.aclose()

    def _keep(self, wake: Wake) -> None:
        """Keep it for who reads :meth:`wakes`."""
        if self._heard.qsize() > _MOST_HEARD:
            while not self._heard.empty():
                self._heard.get_nowait()
            wake = Wake("gap")
        self._heard.put_nowait(wake)
