"""Hearing what others notify, on a connection of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Iterable
from typing import Final

from goncordia.driver import Wake
from goncordia.errors import GoncordiaError
from goncordia_driver_pg.connections import Runner
from goncordia_driver_pg.side import BOUND, Connect
from goncordia_sql.postgres.notify import heard

__all__ = ["PgListener"]

_logger = logging.getLogger("goncordia.postgresql")

_KEEP_ALIVE: Final = 10.0
"""Seconds without a word after which the server is asked whether it is there."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_MOST_HEARD: Final = 1000


class PgListener:
    """Hears of new, freed, cancelled and rescheduled jobs; for one reader.

    A task of it connects, and again whenever the connection is lost or the server does not answer;
    then it tells a gap.

    Args:
        connect: makes the connection.
        runner: knows the library's errors.
        channel: what to listen to.
    """

    def __init__(self, connect: Connect, runner: Runner, channel: str) -> None:
        self._connect = connect
        self._runner = runner
        self._channel = channel
        self._heard: asyncio.Queue[Wake | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def wakes(self) -> AsyncIterator[Wake]:
        """The wakes, as they come; ends when the listener is closed."""
        if self._closed:
            return
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        while (wake := await self._heard.get()) is not None:
            yield wake

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
                with self._runner.translated():
                    await self._listen(lost=lost)
            except GoncordiaError as error:
                _logger.log(
                    logging.DEBUG if lost else logging.WARNING,
                    "listening for jobs failed, trying again: %s",
                    error,
                )
            except Exception:
                _logger.exception("listening for jobs failed; this is a bug")
            lost = True
            if asyncio.get_running_loop().time() - began > _KEEP_ALIVE:
                pause = _FIRST_PAUSE
            await asyncio.sleep(pause * random.uniform(0.5, 1))
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _listen(self, *, lost: bool) -> None:
        """Listen on a new connection, until it is lost."""
        async with asyncio.timeout(BOUND):
            connection = await self._connect()
        try:
            async with asyncio.timeout(BOUND):
                await connection.listen(self._channel)
            if lost:
                self._hear([Wake("gap")])
            while True:
                messages = await connection.hear(_KEEP_ALIVE)
                for message in messages:
                    self._hear(heard(message))
                if not messages:
                    async with asyncio.timeout(BOUND):
                        await connection.ping()
        finally:
            await connection.aclose()

    def _hear(self, wakes: Iterable[Wake]) -> None:
        if self._heard.qsize() > _MOST_HEARD:
            while not self._heard.empty():
                self._heard.get_nowait()
            wakes = [Wake("gap")]
        for wake in wakes:
            self._heard.put_nowait(wake)
