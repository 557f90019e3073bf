"""A lane: one connection, and group commit on it.

Whoever holds the lane's lock runs, in one transaction, everything that has been asked for by then:
a caller of synchronous code on its own thread, or the lane's thread for those on event loops. What
is asked while a transaction is being committed goes into the next one, so that under load many
requests share a commit, and a lone one waits for nobody. An answer is given after the commit only.

A request that fails takes none of the others with it: the transaction is rolled back, and each of
its requests is run again in a transaction of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, TypeVar, cast

from goncordia.driver.connections.forks import Home
from goncordia.errors import DriverUnavailableError
from goncordia_driver_sqlite.connections import FORKING
from goncordia_driver_sqlite.cost import StepCounter
from goncordia_driver_sqlite.errors import translation
from goncordia_driver_sqlite.request import Request, caused, deliver
from goncordia_driver_sqlite.transactor import Transactor
from goncordia_sql import Op

__all__ = ["Lane"]

T = TypeVar("T")
Item = TypeVar("Item")
Answer = TypeVar("Answer")

_MOST_IN_ONE: Final = 256
"""Requests in one transaction, at most."""
_SEVERAL: Final = 4
_SLOW: Final = 0.001
"""Seconds of a commit from which on it is worth to wait until more can share the next."""
_MOMENT: Final = 0.05
"""The part of a slow commit's time that those who shared it have, to ask again."""


class Lane:
    """Runs operations on a connection of its own.

    Args:
        name: of its thread.
        path: the database, for messages.
        begin: how its transactions begin.
        connect: makes the connection, when it is first needed.
        busy_timeout: seconds to wait for the database's lock.
    """

    def __init__(
        self,
        name: str,
        path: str,
        begin: str,
        connect: Callable[[], sqlite3.Connection],
        busy_timeout: float,
    ) -> None:
        self._name = name
        self._path = path
        self.transactor = Transactor(path, begin, connect, busy_timeout)
        """Used by whoever holds the lock."""
        self._lock = threading.Lock()
        self._gate = threading.Lock()
        """Held while a request is taken in, so that none comes after the last."""
        self._requests: deque[Request] = deque()
        self._tokens: SimpleQueue[bool] = SimpleQueue()
        """Wakes the thread; False after the last request."""
        self._waker: asyncio.AbstractEventLoop | None = None
        """The loop that is about to wake it."""
        self._thread: threading.Thread | None = None
        self._closed = True
        self._home = Home(FORKING)

    # ---------------------------------------------------------------- asking

    def submit(self, operation: Callable[[], Op[T]], *, lone: bool = False) -> asyncio.Future[T]:
        """Run the operation that ``operation()`` gives on the lane's thread.

        Args:
            operation: called, and run, more than once if need be; it has its effect once.
            lone: the operation is over after its first statement, or that had no effect. If
                nobody shares its commit, it needs no transaction around it.
        """
        return self._submit(Request(operation, asyncio.get_running_loop(), lone=lone))

    def submit_many(
        self,
        many: Callable[[Sequence[Item]], Op[list[Answer]]],
        items: Sequence[Item],
        *,
        lone: bool = False,
    ) -> asyncio.Future[list[Answer]]:
        """Run ``many(items)``, which answers each item; with those of others, if they wait.

        So the jobs that are inserted one by one, and share a commit, share a statement as well.
        """
        loop = asyncio.get_running_loop()
        return self._submit(Request(partial(many, items), loop, lone=lone, many=many, items=items))

    def submit_function(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Call a function on the lane's thread, outside of any transaction."""
        return self._submit(Request(function, asyncio.get_running_loop(), alone=True))

    def _submit(self, request: Request, *, last: bool = False) -> asyncio.Future[Any]:
        assert request.future is not None  # noqa: S101 - it was made on a loop
        self._home.check()
        with self._gate:
            self._check()
            self._closed = last
            self._requests.append(request)
            if self._thread is None:
                self._start()
            if last:
                self._tokens.put(False)
            else:
                self._wake_soon(request.future.get_loop())
        return request.future

    def _wake_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake the thread in the loop's next turn, once.

        Whatever else is ready on the loop asks first and shares the commit, and the two threads do
        not wrestle for the interpreter meanwhile.
        """
        if self._waker is not loop:
            self._waker = loop
            loop.call_soon(self._tokens.put, True)

    def _start(self) -> None:
        self._tokens = SimpleQueue()
        self._thread = threading.Thread(
            target=self._loop, args=(self._tokens,), name=self._name, daemon=True
        )
        self._thread.start()

    def call(self, operation: Callable[[], Op[T]], *, lone: bool = False) -> T:
        """As :meth:`submit`, on the calling thread; waits."""
        return cast(T, self._call(Request(operation, lone=lone)))

    def call_many(
        self,
        many: Callable[[Sequence[Item]], Op[list[Answer]]],
        items: Sequence[Item],
        *,
        lone: bool = False,
    ) -> list[Answer]:
        """As :meth:`submit_many`, on the calling thread; waits."""
        request = Request(partial(many, items), lone=lone, many=many, items=items)
        return cast("list[Answer]", self._call(request))

    def _call(self, request: Request) -> Any:
        self._home.check()
        with self._gate:
            self._check()
            self._requests.append(request)
        with self._lock:
            self._run_pending(until=request)
        if request.error is not None:
            raise request.error
        return request.value

    def _check(self) -> None:
        if self._closed:
            raise DriverUnavailableError(
                f"{self._path}: the driver is closed", outcome="not_applied"
            )

    @contextlib.contextmanager
    def counting(self, counter: StepCounter) -> Generator[None, None, None]:
        """Count the steps of what is run meanwhile."""
        with self._lock:
            self.transactor.call_at_each_step(counter.tick)
        try:
            yield
        finally:
            with self._lock:
                self.transactor.call_at_each_step(None)

    # ---------------------------------------------------------------- opening and closing

    def open(self) -> None:
        """Take requests. Connection and thread come with the first of them."""
        if self._closed:
            self._home.enter()
            self._closed = False

    async def aclose(self) -> None:
        """Answer what was asked, then close the connection and end the thread."""
        if self._closed or self._home.is_elsewhere():
            return
        # The thread makes an end after this one, and whoever comes later is refused.
        loop = asyncio.get_running_loop()
        last = self._submit(Request(self.transactor.disconnect, loop, alone=True), last=True)
        self._home.leave()
        thread, self._thread = self._thread, None
        await asyncio.shield(last)
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Close the connection of a lane that only synchronous code used."""
        if self._home.is_elsewhere():
            return
        with self._gate:
            self._closed = True
        with self._lock:
            self.transactor.disconnect()

    # ---------------------------------------------------------------- the thread

    def _loop(self, tokens: SimpleQueue[bool]) -> None:
        goes_on = True
        while goes_on:
            goes_on = tokens.get()
            self._waker = None  # whoever asks from now on may be too late for this time
            if self._requests:
                # Whatever is raised here, the callers have heard of it.
                with self._lock, contextlib.suppress(BaseException):
                    self._run_pending()

    # ---------------------------------------------------------------- with the lock held

    def _run_pending(self, until: Request | None = None) -> None:
        """Run what is asked, or as far as one request: for those after it, others have come."""
        while self._requests and not (until is not None and until.done):
            batch = self._next_batch()
            if not batch:
                continue
            began = time.monotonic()
            try:
                if batch[0].alone:
                    self._call_function(batch[0])
                else:
                    self.transactor.run(batch)
            except BaseException as error:
                self._fail(batch, error)
                raise
            finally:
                deliver(batch)
            took = time.monotonic() - began
            if took > _SLOW and len(batch) >= _SEVERAL and until is None:
                time.sleep(took * _MOMENT)

    def _next_batch(self) -> list[Request]:
        """The requests to run together; those whose caller has gone are left out."""
        requests = self._requests
        batch: list[Request] = []
        while requests and len(batch) < _MOST_IN_ONE and not (batch and requests[0].alone):
            request = requests.popleft()
            if request.future is None or not request.future.cancelled():
                batch.append(request)
            if request.alone:
                break
        return batch

    def _call_function(self, request: Request) -> None:
        try:
            request.value = request.work()
        except sqlite3.Error as error:
            request.error = caused(translation(error, self._path), error)
        except Exception as error:  # noqa: BLE001 - the caller gets it
            request.error = error
        request.done = True

    def _fail(self, batch: list[Request], error: BaseException) -> None:
        for request in batch:
            if not request.done:
                request.error = caused(
                    DriverUnavailableError(f"{self._path}: interrupted by {type(error).__name__}"),
                    error,
                )
                request.done = True
