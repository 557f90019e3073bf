"""What this package asks of a library, and how operations run on it, the same for each library."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Generator
from typing import Any, Final, Protocol, TypeVar

from goncordia.errors import DriverBusyError, TransactionAbortedError
from goncordia_driver_pg.errors import Failure, Stage, translation, unconnected
from goncordia_sql import AsyncConnection as SqlAsyncConnection
from goncordia_sql import Batch, Op, Statement, transact_async, transact_sync
from goncordia_sql import SyncConnection as SqlSyncConnection

__all__ = [
    "BEGIN",
    "AsyncConnection",
    "AsyncPool",
    "Library",
    "Progress",
    "Runner",
    "SyncConnection",
    "SyncPool",
    "SyncRunner",
]

T = TypeVar("T")

_ATTEMPTS: Final = 5
"""How often a transaction of ours is begun that others' locks or snapshots undo."""
_PAUSE: Final = 0.01

BEGIN: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '10s'"
)
"""Begins a transaction of ours, at the isolation level that the operations are made for.

The server ends it when its client falls silent in the middle: else the locks of a process whose
network is frozen would hold, for hours, what others are to take back from it.
"""


class AsyncConnection(SqlAsyncConnection, Protocol):
    """A connection of a pool, while it is held."""

    @property
    def sent(self) -> bool:
        """See :class:`Progress`."""
        ...

    @property
    def applied(self) -> bool:
        """See :class:`Progress`."""
        ...


class SyncConnection(SqlSyncConnection, Protocol):
    """The same for synchronous libraries."""

    @property
    def sent(self) -> bool:
        """See :class:`Progress`."""
        ...

    @property
    def applied(self) -> bool:
        """See :class:`Progress`."""
        ...


class Progress:
    """How far an operation has come on a connection: what an error leaves in doubt.

    Attributes:
        sent: a commit, or a statement that is a transaction of its own, was sent.
        applied: such a statement was answered, and holds whatever becomes of the rest.
    """

    __slots__ = ("_begun", "applied", "sent")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Forget it: another operation begins."""
        self._begun = self.applied = self.sent = False

    def _sends(self, step: Statement | Batch) -> None:
        """Note a step before it is sent, which is after the one before it was answered."""
        if not self._begun:
            self.applied = self.sent
            self.sent = self.sent or not step.sql.reads

    def _begins(self) -> None:
        """Note that a transaction begins."""
        self.applied = self.sent
        self._begun = True

    def _commits(self) -> None:
        """Note a commit before it is sent."""
        self.sent = True

    def _ends(self) -> None:
        """Note that a transaction is over."""
        self._begun = False


class Library(Protocol):
    """The errors of a library."""

    errors: tuple[type[Exception], ...]
    """What it raises when something goes wrong outside of this process."""

    def failure(self, error: Exception, *, sent: bool) -> Failure:
        """What is known of it."""
        ...


class AsyncPool(Protocol):
    """Where connections come from."""

    @property
    def size(self) -> int:
        """How many it has at most."""
        ...

    async def acquire(self) -> AsyncConnection:
        """One, outside of any transaction. Bounded in time."""
        ...

    def release(self, connection: Any, /, *, clean: bool) -> None:
        """Give it back; not clean: something has gone wrong on it."""
        ...


class SyncPool(Protocol):
    """The same for synchronous libraries."""

    def acquire(self) -> SyncConnection:
        """See :class:`AsyncPool`."""
        ...

    def release(self, connection: Any, /) -> None:
        """Give it back, whatever its state."""
        ...


class _Translator:
    """Raises our errors.

    Args:
        library: whose errors they are.
        schema: the driver's, for messages.
        always_begin: also one statement alone goes into a transaction: a pooler in transaction mode
            may hand out another server connection between its preparation and its execution.
    """

    def __init__(self, library: Library, schema: str, *, always_begin: bool = False) -> None:
        self.errors = library.errors
        self._library = library
        self._schema = schema
        self._always_begin = always_begin

    def ours(
        self,
        error: Exception,
        stage: Stage = "running",
        *,
        sent: bool = False,
        applied: bool = False,
        replica: bool = False,
    ) -> Exception:
        """Our error, to be raised from the library's."""
        failure = self._library.failure(error, sent=sent)
        failure = failure._replace(applied=applied, replica=replica)
        return translation(failure, self._schema, stage)

    def unconnected(self, error: Exception, stage: Stage) -> Exception:
        """Our error for a connection that was not had."""
        failure = self._library.failure(error, sent=False)
        return unconnected(failure, "the server") or translation(failure, self._schema, stage)

    def is_of_unprepared(self, error: Exception) -> bool:
        """Whether an error of ours says that a prepared statement is not there, or there before."""
        cause = error.__cause__
        return (
            isinstance(cause, self.errors) and self._library.failure(cause, sent=False).unprepared
        )

    @contextlib.contextmanager
    def translated(self, stage: Stage = "running") -> Generator[None, None, None]:
        """Raise our errors in place of the library's; nothing was written."""
        try:
            yield
        except self.errors as error:
            raise self.ours(error, stage) from error


class Runner(_Translator):
    """Runs operations on connections of a pool, each in a transaction if it needs one."""

    async def run(
        self, pool: AsyncPool, operation: Callable[[], Op[T]], *, writes: bool = True
    ) -> T:
        """Run the operation; repeat it when a deadlock or a snapshot has undone it.

        Args:
            pool: gives a connection.
            operation: makes it anew for each attempt.
            writes: it may change something, so the outcome of a failure may be unknown.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self.once(pool, operation(), writes=writes)
            except TransactionAbortedError as error:
                _refuse_to_repeat(error)
                await asyncio.sleep(_pause())
        try:
            return await self.once(pool, operation(), writes=writes)
        except TransactionAbortedError as error:
            raise _given_up(error) from error.__cause__

    async def once(
        self, pool: AsyncPool, operation: Op[T], *, writes: bool = True, stage: Stage = "running"
    ) -> T:
        """Run the operation once."""
        try:
            connection = await pool.acquire()
        except self.errors as error:
            raise self.unconnected(error, stage) from error
        clean = False
        try:
            result = await self.on(connection, operation, writes=writes)
            clean = True
        finally:
            pool.release(connection, clean=clean)
        return result

    async def on(self, connection: AsyncConnection, operation: Op[T], *, writes: bool = True) -> T:
        """Run the operation on this connection."""
        try:
            return await transact_async(operation, connection, always=self._always_begin)
        except self.errors as error:
            sent, applied = writes and connection.sent, writes and connection.applied
            raise self.ours(error, sent=sent, applied=applied) from error


class SyncRunner(_Translator):
    """The same for synchronous libraries."""

    def run(self, pool: SyncPool, operation: Callable[[], Op[T]], *, writes: bool = True) -> T:
        """See :meth:`Runner.run`."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self.once(pool, operation(), writes=writes)
            except TransactionAbortedError as error:
                _refuse_to_repeat(error)
                time.sleep(_pause())
        try:
            return self.once(pool, operation(), writes=writes)
        except TransactionAbortedError as error:
            raise _given_up(error) from error.__cause__

    def once(
        self, pool: SyncPool, operation: Op[T], *, writes: bool = True, stage: Stage = "running"
    ) -> T:
        """See :meth:`Runner.once`."""
        try:
            connection = pool.acquire()
        except self.errors as error:
            raise self.unconnected(error, stage) from error
        try:
            return transact_sync(operation, connection, always=self._always_begin)
        except self.errors as error:
            sent, applied = writes and connection.sent, writes and connection.applied
            raise self.ours(error, sent=sent, applied=applied) from error
        finally:
            pool.release(connection)


def _refuse_to_repeat(error: TransactionAbortedError) -> None:
    """A part of it holds: what was claimed is not claimed anew, but asked for."""
    if error.outcome == "unknown":
        raise DriverBusyError(str(error), outcome="unknown") from error.__cause__


def _pause() -> float:
    return random.uniform(0, _PAUSE)


def _given_up(error: TransactionAbortedError) -> DriverBusyError:
    return DriverBusyError(f"undone {_ATTEMPTS} times in a row: {error}", outcome="not_applied")
