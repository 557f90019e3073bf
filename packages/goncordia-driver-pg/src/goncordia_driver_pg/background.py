"""Work that goes on beside what the caller does, by one task at a time."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Final

__all__ = ["Background", "in_thread"]

_FLUSH: Final = 2.0
"""Seconds that closing waits for the work to be done, at most."""


async def in_thread(work: Callable[[], None], seconds: float) -> None:
    """Do it in a thread of its own, and wait for that, for so long at most.

    The loop's own threads may all be taken by handlers, for as long as they like.
    """
    done = Future[None]()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # it is raised by who waits
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=run, name="goncordia-closing", daemon=True).start()
    await _end(done, seconds)


async def _end(done: Future[None], seconds: float) -> None:
    """Wait for its end, for so long at most; it goes on."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.wrap_future(done)


class Background:
    """Runs a piece of work again and again, as long as there is any.

    Whoever brings work calls :meth:`start`, on whatever event loop; a task there does it all.

    Args:
        lock: guards what the work is about.
        has_work: whether there is any; called with the lock held.
        work: does some of it.
    """

    def __init__(
        self,
        lock: threading.Lock,
        has_work: Callable[[], bool],
        work: Callable[[], Awaitable[None]],
    ) -> None:
        self._lock = lock
        self._has_work = has_work
        self._work = work
        self._running: Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """There is work. To be called on an event loop."""
        with self._lock:
            if self._running is not None and not self._is_dead():
                return
            self._running = done = Future[None]()
            done.set_running_or_notify_cancel()  # whoever gives up waiting for it ends nothing
        self._task = asyncio.get_running_loop().create_task(self._run(done))

    def _is_dead(self) -> bool:
        """Whether the task will do nothing any more: its event loop was closed over it."""
        return self._task is not None and self._task.get_loop().is_closed()

    async def _run(self, done: Future[None]) -> None:
        try:
            while self._goes_on():
                await self._work()
        finally:
            with self._lock:
                if self._running is done:
                    self._running = None
            done.set_result(None)

    def _goes_on(self) -> bool:
        """Whether there is work; if not, what comes next starts a task anew."""
        with self._lock:
            if not self._has_work():
                self._running = None
                return False
            return True

    async def flush(self) -> None:
        """Wait until the work is done, for a moment at most."""
        running = self._running
        if running is not None:
            await _end(running, _FLUSH)
