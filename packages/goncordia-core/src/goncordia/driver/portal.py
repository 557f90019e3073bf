"""An event loop in a thread, through which synchronous code uses an asynchronous driver."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any, Protocol, TypeVar
from uuid import UUID

from goncordia.driver.connections.forks import Home
from goncordia.driver.executor import BaseExecutor, SyncExecutor
from goncordia.driver.requests import Change, ListFilter
from goncordia.driver.results import Changed, InsertResult, Page, QueueState, QueueStats
from goncordia.driver.values import JobRow, NewJob

__all__ = ["Portal", "PortalExecutor"]

R = TypeVar("R")


class Portal:
    """Runs coroutines on a loop of its own, one thread for as many callers as there are."""

    def __init__(self) -> None:
        self._home = Home()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def _started(self) -> asyncio.AbstractEventLoop:
        self._home.check()
        with self._lock:
            if self._loop is None:
                self._home.enter()
                started: Future[asyncio.AbstractEventLoop] = Future()
                self._thread = threading.Thread(
                    target=_run_loop, args=(started,), name="goncordia-portal", daemon=True
                )
                self._thread.start()
                self._loop = started.result()
            return self._loop

    def call(self, function: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Run ``function()`` on the loop and wait for what it returns or raises.

        Raises:
            ConfigurationError: the loop is of another process, of which this is a fork.
        """
        loop = self._started()
        future = asyncio.run_coroutine_threadsafe(function(), loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def is_here(self) -> bool:
        """Whether the caller runs on the portal's own loop."""
        return threading.current_thread() is self._thread

    def is_elsewhere(self) -> bool:
        """Whether the loop is of another process, of which this is a fork."""
        return self._home.is_elsewhere()

    def stop(self) -> None:
        """Cancel what still runs, end the loop and its thread; a later call starts new ones.

        In a fork of its process there is nothing to stop.
        """
        if self.is_elsewhere():
            return
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
            self._home.leave()
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()


def _run_loop(started: Future[asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        started.set_result(loop)
        loop.run_forever()


class _Opens(Protocol):
    async def ready(self) -> None: ...

    def executor(self) -> BaseExecutor: ...


class PortalExecutor(SyncExecutor):
    """A driver's executor for synchronous code."""

    def __init__(self, portal: Portal, driver: _Opens) -> None:
        self._portal = portal
        self._driver = driver

    def _call(self, method: Callable[[BaseExecutor], Coroutine[Any, Any, R]]) -> R:
        async def run() -> R:
            await self._driver.ready()
            return await method(self._driver.executor())

        return self._portal.call(run)

    def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`BaseExecutor.insert_many`."""
        return self._call(lambda executor: executor.insert_many(jobs))

    def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        """See :meth:`BaseExecutor.get_many`."""
        return self._call(lambda executor: executor.get_many(ids))

    def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        """See :meth:`BaseExecutor.list_jobs`."""
        return self._call(lambda executor: executor.list_jobs(where, page, limit))

    def count(self, where: ListFilter, /) -> int:
        """See :meth:`BaseExecutor.count`."""
        return self._call(lambda executor: executor.count(where))

    def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        """See :meth:`BaseExecutor.change_many`."""
        return self._call(lambda executor: executor.change_many(changes))

    def queue_pause(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_pause`."""
        self._call(lambda executor: executor.queue_pause(name))

    def queue_resume(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_resume`."""
        self._call(lambda executor: executor.queue_resume(name))

    def queue_list(self) -> list[QueueState]:
        """See :meth:`BaseExecutor.queue_list`."""
        return self._call(lambda executor: executor.queue_list())

    def queue_stats(self) -> list[QueueStats]:
        """See :meth:`BaseExecutor.queue_stats`."""
        return self._call(lambda executor: executor.queue_stats())

    def now(self) -> datetime:
        """See :meth:`BaseExecutor.now`."""
        return self._call(lambda executor: executor.now())
