"""Daemon threads for synchronous workers.

The standard executors join their threads when the interpreter ends; a handler that never returns
would keep a process alive that was told to go. These do not.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeAlias

__all__ = ["Threads"]

_Work: TypeAlias = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class Threads:
    """As many threads as there is work at once, at most the pool's concurrency."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._unfinished: set[asyncio.Future[Any]] = set()

    def call(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Run the function in a thread; a future of the running loop for what comes of it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        future.add_done_callback(self._unfinished.discard)
        self._unfinished.add(future)
        if len(self._unfinished) > len(self._threads):
            self._start_thread()
        self._work.put((function, loop, future))
        return future

    def close(self) -> None:
        """End the threads that have nothing to do, and the others when they are done.

        Nobody waits for those any more: their futures are cancelled.
        """
        for _ in self._threads:
            self._work.put(None)
        self._threads.clear()
        for future in list(self._unfinished):
            future.cancel()

    def _start_thread(self) -> None:
        thread = threading.Thread(
            target=_serve,
            args=(self._work,),
            name=f"{self._name}-{len(self._threads)}",
            daemon=True,
        )
        self._threads.append(thread)
        thread.start()


def _serve(work: SimpleQueue[_Work | None]) -> None:
    while (item := work.get()) is not None:
        function, loop, future = item
        try:
            result, error = function(), None
        except BaseException as raised:  # noqa: BLE001  # it is handed to the loop, whatever it is
            result, error = None, raised
        # The loop may be closed, if the pool gave up on this handler.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, future, result, error)
        del item, function, future, result, error


def _resolve(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        future.set_exception(error)
    else:
        # A future refuses StopIteration, and SystemExit would end the loop instead of the attempt.
        failure = RuntimeError(f"the handler raised {type(error).__name__}: {error}")
        failure.__cause__ = error
        future.set_exception(failure)
