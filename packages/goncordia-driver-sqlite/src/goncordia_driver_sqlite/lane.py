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
import gc
import logging
import os
import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from queue import SimpleQueue
from typing import Any, Final, TypeVar, cast

from goncordia.errors import ConfigurationError, DriverUnavailableError
from goncordia_driver_sqlite.adapters import Sqlite3Adapter
from goncordia_driver_sqlite.cost import StepCounter
from goncordia_driver_sqlite.errors import is_busy, translation
from goncordia_driver_sqlite.request import Failure, Request, caused, deliver
from goncordia_sql import Op, run_sync

__all__ = ["Lane"]

T = TypeVar("T")

_logger = logging.getLogger("goncordia.sqlite")

_MOST_IN_ONE: Final = 256
"""Requests in one transaction, at most."""
_SEVERAL: Final = 4
_MOMENT: Final = 0.00005
"""Seconds that those who shared a commit have, to ask again and share the next one too."""
_LONG: Final = 1.0
"""Seconds of waiting for the database's lock after which that is said."""
_NAP: Final = 0.002
"""Seconds between two attempts to get the database's lock, at most; SQLite naps inside, too."""


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
        self._begin = begin
        self._connect = connect
        self._busy_timeout = busy_timeout
        self._lock = threading.Lock()
        self._gate = threading.Lock()
        """Held while a request is taken in, so that none comes after the last."""
        self._requests: deque[Request] = deque()
        self._tokens: SimpleQueue[bool] = SimpleQueue()
        """Wakes the thread: one for each of its requests; False after the last."""
        self._thread: threading.Thread | None = None
        self._connection: sqlite3.Connection | None = None
        self._adapter: Sqlite3Adapter | None = None
        self._file: tuple[int, int] | None = None
        self._closed = True
        self._pid = os.getpid()
        self.transactions = 0
        """How many transactions were committed; for tests and measurements."""

    # ---------------------------------------------------------------- asking

    def submit(self, operation: Callable[[], Op[T]]) -> asyncio.Future[T]:
        """Run the operation that ``operation()`` gives on the lane's thread.

        It may be called, and run, more than once, but has its effect once.
        """
        return self._submit(operation, alone=False)

    def submit_function(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Call a function on the lane's thread, outside of any transaction."""
        return self._submit(function, alone=True)

    def _submit(
        self, work: Callable[[], Any], *, alone: bool, last: bool = False
    ) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        with self._gate:
            self._check()
            self._closed = last
            self._requests.append(Request(work, future, alone=alone))
            if self._thread is None:
                self._start()
            self._tokens.put(not last)
        return future

    def _start(self) -> None:
        self._tokens = SimpleQueue()
        self._thread = threading.Thread(
            target=self._loop, args=(self._tokens,), name=self._name, daemon=True
        )
        self._thread.start()

    def call(self, operation: Callable[[], Op[T]]) -> T:
        """As :meth:`submit`, on the calling thread; waits."""
        request = Request(operation, None, alone=False)
        with self._gate:
            self._check()
            self._requests.append(request)
        with self._lock:
            self._run_pending(until=request)
        if request.error is not None:
            raise request.error
        return cast(T, request.value)

    def _check(self) -> None:
        if self._pid != os.getpid():
            raise ConfigurationError(
                f"driver: it was opened in process {self._pid} and is used in its fork "
                f"{os.getpid()}: make a new SqliteDriver there"
            )
        if self._closed:
            raise DriverUnavailableError(
                f"{self._path}: the driver is closed", outcome="not_applied"
            )

    @contextlib.contextmanager
    def counting(self, counter: StepCounter) -> Generator[None, None, None]:
        """Count the steps of what is run meanwhile."""
        with self._lock:
            self._connected()
            self._set_handler(counter.tick)
        try:
            yield
        finally:
            with self._lock:
                self._set_handler(None)

    def _set_handler(self, handler: Callable[[], int] | None) -> None:
        if self._connection is not None:
            self._connection.set_progress_handler(handler, 1)

    # ---------------------------------------------------------------- opening and closing

    def open(self) -> None:
        """Take requests. Connection and thread come with the first of them."""
        if self._closed:
            self._pid = os.getpid()
            self._closed = False

    async def aclose(self) -> None:
        """Answer what was asked, then close the connection and end the thread."""
        if self._closed:
            return
        # The thread makes an end after this one, and whoever comes later is refused.
        last = self._submit(self._disconnect, alone=True, last=True)
        thread, self._thread = self._thread, None
        await asyncio.shield(last)
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Close the connection of a lane that only synchronous code used."""
        with self._gate:
            self._closed = True
        with self._lock:
            self._disconnect()

    def _disconnect(self) -> None:
        adapter, self._adapter = self._adapter, None
        connection, self._connection = self._connection, None
        if adapter is not None:
            adapter.close()
        if connection is not None:
            connection.close()

    # ---------------------------------------------------------------- the thread

    def _loop(self, tokens: SimpleQueue[bool]) -> None:
        goes_on = True
        while goes_on:
            goes_on = tokens.get()
            if self._requests:
                # Whatever is raised here, the callers have heard of it.
                with self._lock, contextlib.suppress(BaseException):
                    self._run_pending()

    # ---------------------------------------------------------------- with the lock held

    def _run_pending(self, until: Request | None = None) -> None:
        """Run what is asked, or as far as one request: for those after it, others have come."""
        requests = self._requests
        while requests and not (until is not None and until.done):
            batch: list[Request] = []
            while requests and len(batch) < _MOST_IN_ONE:
                if requests[0].alone and batch:
                    break
                request = requests.popleft()
                if request.future is None or not request.future.cancelled():
                    batch.append(request)
                if request.alone:
                    break
            if batch:
                try:
                    self._run(batch)
                except BaseException as error:
                    self._fail(batch, error)
                    raise
                finally:
                    deliver(batch)
                if len(batch) >= _SEVERAL and until is None:
                    time.sleep(_MOMENT)

    def _run(self, batch: list[Request]) -> None:
        if batch[0].alone:
            self._call_function(batch[0])
            return
        error = self._transaction(batch)
        if error is None:
            return
        if len(batch) == 1 or not error.of_one:
            for request in batch:
                request.error, request.done = error.error, True
            return
        for request in batch:
            alone = self._transaction([request])
            if alone is not None:
                request.error, request.done = alone.error, True

    def _call_function(self, request: Request) -> None:
        try:
            request.value = request.work()
        except sqlite3.Error as error:
            request.error = caused(translation(error, self._path), error)
        except Exception as error:  # noqa: BLE001 - the caller gets it
            request.error = error
        request.done = True

    def _transaction(self, batch: list[Request]) -> Failure | None:
        """Run all in one transaction; None: it was committed."""
        began = time.monotonic()
        collected = False
        while True:
            failure = self._attempt(batch)
            waited = time.monotonic() - began
            if failure is None or not is_busy(failure.original) or waited > self._busy_timeout:
                return failure
            if waited > _LONG and not collected:
                collected = True
                self._free_forgotten()
            time.sleep(random.uniform(0, _NAP))

    def _free_forgotten(self) -> None:
        """Free connections that nobody has any more, and that hold the lock.

        Python's are in a reference cycle: one that was left with an open transaction goes only
        when the collector runs, which it does not in a process that waits.
        """
        _logger.warning(
            "%s: another connection has had the write lock for %g s: "
            "is a transaction left open, without a commit, rollback or close?",
            self._path,
            _LONG,
        )
        gc.collect()

    def _attempt(self, batch: list[Request]) -> Failure | None:
        committing = of_one = False
        try:
            adapter = self._connected()
            adapter.run(self._begin)
            of_one = True
            for request in batch:
                request.value = run_sync(request.work(), adapter)
            of_one = False
            committing = True
            adapter.run("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            unknown = committing and not is_busy(error)
            return Failure(
                caused(translation(error, self._path, unknown=unknown), error), error, of_one
            )
        except Exception as error:  # noqa: BLE001 - the caller gets it
            self._roll_back()
            return Failure(error, error, of_one)
        except BaseException:
            self._roll_back()
            raise
        self.transactions += 1
        for request in batch:
            request.done = True
        return None

    def _connected(self) -> Sqlite3Adapter:
        if self._adapter is not None and _identity(self._path) != self._file:
            # What is written to a file without a name is lost.
            _logger.warning("%s: the file was deleted or replaced, opening it anew", self._path)
            self._disconnect()
        if self._adapter is None:
            self._connection = self._connect()
            self._adapter = Sqlite3Adapter(self._connection)
            self._file = _identity(self._path)
        return self._adapter

    def _roll_back(self) -> None:
        connection = self._connection
        if connection is not None and connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")

    def _fail(self, batch: list[Request], error: BaseException) -> None:
        for request in batch:
            if not request.done:
                request.error = caused(
                    DriverUnavailableError(f"{self._path}: interrupted by {type(error).__name__}"),
                    error,
                )
                request.done = True


def _identity(path: str) -> tuple[int, int] | None:
    """Which file is at the path; None: there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
