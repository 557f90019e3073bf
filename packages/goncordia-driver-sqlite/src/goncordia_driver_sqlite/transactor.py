"""Transactions on one connection: many requests in one, and each alone if one of them fails."""

from __future__ import annotations

import contextlib
import gc
import logging
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Final

from goncordia_driver_sqlite.adapters import Sqlite3Adapter
from goncordia_driver_sqlite.connections import identity
from goncordia_driver_sqlite.errors import is_busy, translation
from goncordia_driver_sqlite.request import Failure, Request, caused
from goncordia_sql import run_sync

__all__ = ["Transactor"]

_logger = logging.getLogger("goncordia.sqlite")

_LONG: Final = 1.0
"""Seconds of waiting for the database's lock after which that is said."""
_NAP: Final = 0.002
"""Seconds between two attempts to get the database's lock, at most; SQLite naps inside, too."""


class Transactor:
    """Owns a connection, and opens it when it is first needed. For one thread at a time.

    Args:
        path: the database, for messages, and to see whether it is still there.
        begin: how its transactions begin.
        connect: makes the connection.
        busy_timeout: seconds to wait for the database's lock.
    """

    def __init__(
        self,
        path: str,
        begin: str,
        connect: Callable[[], sqlite3.Connection],
        busy_timeout: float,
    ) -> None:
        self._path = path
        self._begin = begin
        self._connect = connect
        self._busy_timeout = busy_timeout
        self._adapter: Sqlite3Adapter | None = None
        self._file: tuple[int, int] | None = None
        self.committed = 0
        """How many transactions were committed."""

    # ---------------------------------------------------------------- the connection

    def connected(self) -> Sqlite3Adapter:
        """The connection, opened if need be, and anew if the file is another."""
        if self._adapter is not None and identity(self._path) != self._file:
            # What is written to a file without a name is lost.
            _logger.warning("%s: the file was deleted or replaced, opening it anew", self._path)
            self.disconnect()
        if self._adapter is None:
            self._adapter = Sqlite3Adapter(self._connect())
            self._file = identity(self._path)
        return self._adapter

    def disconnect(self) -> None:
        """Close the connection, if there is one."""
        adapter, self._adapter = self._adapter, None
        if adapter is not None:
            adapter.close()
            adapter.connection.close()

    def call_at_each_step(self, handler: Callable[[], int] | None) -> None:
        """Have the handler called at each step of SQLite's virtual machine."""
        if handler is not None:
            self.connected()
        if self._adapter is not None:
            self._adapter.connection.set_progress_handler(handler, 1)

    # ---------------------------------------------------------------- requests

    def run(self, batch: Sequence[Request]) -> None:
        """Answer each of these requests, with a value or an error."""
        failure = self._patiently(batch)
        if failure is None:
            return
        if len(batch) == 1 or not failure.of_one:
            for request in batch:
                request.error, request.done = failure.error, True
            return
        for request in batch:
            failure = self._patiently([request])
            if failure is not None:
                request.error, request.done = failure.error, True

    def _patiently(self, batch: Sequence[Request]) -> Failure | None:
        """Run all in one transaction; None: it was committed."""
        began = time.monotonic()
        collected = False
        while True:
            failure = self._attempt(batch)
            if failure is None or not is_busy(failure.original):
                return failure
            waited = time.monotonic() - began
            if waited > self._busy_timeout:
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

    def _attempt(self, batch: Sequence[Request]) -> Failure | None:
        committing = of_one = False
        try:
            adapter = self.connected()
            committing = len(batch) == 1 and batch[0].lone
            if not (committing and _run_lone(batch[0], adapter)):
                committing = False
                adapter.run(self._begin)
                of_one = True
                _run_together(batch, adapter)
                of_one = False
                committing = True
                adapter.run("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            # A constraint or a lock refuses before anything is written.
            refused = is_busy(error) or isinstance(error, sqlite3.IntegrityError)
            unknown = committing and not refused
            ours = translation(error, self._path, unknown=unknown)
            return Failure(caused(ours, error), error, of_one)
        except Exception as error:  # noqa: BLE001 - the caller gets it
            self._roll_back()
            return Failure(error, error, of_one)
        except BaseException:
            self._roll_back()
            raise
        self.committed += 1
        for request in batch:
            request.done = True
        return None

    def _roll_back(self) -> None:
        adapter = self._adapter
        if adapter is not None and adapter.connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                adapter.run("ROLLBACK")


def _run_lone(request: Request, adapter: Sqlite3Adapter) -> bool:
    """Run an operation that is likely one statement, without a transaction around it.

    False: it has more to ask, so its first statement had no effect; to be run from the beginning.
    """
    operation = request.work()
    try:
        operation.send(adapter.execute(next(operation)))
    except StopIteration as end:
        request.value = end.value
        return True
    finally:
        operation.close()
    return False


def _run_together(batch: Sequence[Request], adapter: Sqlite3Adapter) -> None:
    """Run the operations of one transaction; neighbours with the same ``many`` as one."""
    for many, neighbours in groupby(batch, key=attrgetter("many")):
        requests = list(neighbours)
        if many is None or len(requests) == 1:
            for request in requests:
                request.value = run_sync(request.work(), adapter)
        else:
            items = [item for request in requests for item in request.items]
            answers: Iterator[Any] = iter(run_sync(many(items), adapter))
            for request in requests:
                request.value = list(islice(answers, len(request.items)))
