"""The operations inside the caller's own transaction.

Nothing of the caller's connection is changed: rows come through cursors of ours, texts are read as
bytes, and no setting is touched. A connection that would begin a transaction by itself at the next
change (sqlite3's way unless told otherwise) begins it here, before anything is looked at.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import weakref
from collections.abc import Generator, Sequence
from typing import Any, Final, TypeVar

import aiosqlite

from goncordia.errors import ConfigurationError, DriverUnavailableError
from goncordia_driver_sqlite.adapters import AiosqliteAdapter, Sqlite3Adapter
from goncordia_driver_sqlite.errors import is_busy, stale, translation
from goncordia_sql import Op, Operations, run_async, run_sync
from goncordia_sql.executors import SqlSyncTxExecutor, SqlTxExecutor, TxOps

__all__ = ["SqliteSyncTxExecutor", "SqliteTxExecutor", "TxChecks"]

T = TypeVar("T")

_LEGACY: Final = -1
"""``autocommit`` of a connection that begins transactions by itself (Python 3.12 and newer)."""
# A pragma and no query: that would take the snapshot on which a transaction may stick.
_FILES: Final = "PRAGMA database_list"
_BUSY_TIMEOUT: Final = "PRAGMA busy_timeout"
_BEGIN: Final = "BEGIN IMMEDIATE"
# Changes nothing, but takes the lock, and lets a connection that begins by itself do so.
_TOUCH: Final = "UPDATE goncordia_migration SET version = version WHERE 0"
_NO_TRANSACTION: Final = (
    "tx: the connection is in no transaction and would start none, so the jobs would not depend on "
    "a commit of yours: execute BEGIN IMMEDIATE first"
)


class TxChecks:
    """What a connection must be, so that jobs become visible with its commit.

    Args:
        path: the driver's database.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._known: weakref.WeakSet[aiosqlite.Connection] = weakref.WeakSet()

    def connection(self, tx: object) -> aiosqlite.Connection:
        """The connection of aiosqlite, as far as it can be judged without waiting.

        Raises:
            ConfigurationError: it is of another library, or in no transaction and would start none.
        """
        if isinstance(tx, sqlite3.Connection):
            raise ConfigurationError(
                "tx: a sqlite3.Connection is for SyncClient; Client takes an aiosqlite.Connection"
            )
        if not isinstance(tx, aiosqlite.Connection):
            raise ConfigurationError(f"tx: {type(tx).__name__} is not an aiosqlite.Connection")
        try:
            starts = tx.in_transaction or tx.isolation_level is not None
        except (ValueError, sqlite3.ProgrammingError) as error:
            raise ConfigurationError("tx: the connection is closed") from error
        if not starts:
            raise ConfigurationError(_NO_TRANSACTION)
        return tx

    def sync_connection(self, tx: object) -> sqlite3.Connection:
        """The connection of sqlite3.

        Raises:
            ConfigurationError: it is of another library or another database, or in no transaction
                and would start none.
        """
        if isinstance(tx, aiosqlite.Connection):
            raise ConfigurationError(
                "tx: an aiosqlite.Connection is for Client; SyncClient takes a sqlite3.Connection"
            )
        if not isinstance(tx, sqlite3.Connection):
            raise ConfigurationError(f"tx: {type(tx).__name__} is not a sqlite3.Connection")
        try:
            if not (tx.in_transaction or _starts_by_itself(tx)):
                raise ConfigurationError(_NO_TRANSACTION)
            with contextlib.closing(tx.cursor()) as cursor, _plain_texts(tx):
                cursor.row_factory = None
                files = cursor.execute(_FILES).fetchall()
            self._check_file(files)
        except sqlite3.ProgrammingError as error:
            raise ConfigurationError(f"tx: the connection cannot be used here: {error}") from error
        return tx

    async def begin(self, tx: aiosqlite.Connection) -> None:
        """Judge what takes a look into the connection, and begin where it would by itself."""
        if tx not in self._known:
            async with tx.cursor() as cursor:
                cursor.row_factory = None
                with _plain_texts(tx):
                    await cursor.execute(_FILES)
                    files = list(await cursor.fetchall())
            self._check_file(files)
            self._known.add(tx)
        if not tx.in_transaction:
            # Whether it begins by itself can be asked in its own thread only: so it is tried.
            await tx.execute(_TOUCH)
            if not tx.in_transaction:
                raise ConfigurationError(_NO_TRANSACTION)

    def _check_file(self, files: Sequence[Sequence[Any]]) -> None:
        """The main database's file, of the rows ``(number, name, file)``."""
        file = next(os.fsdecode(each[2] or "") for each in files if each[0] == 0)
        try:
            same = bool(file) and os.path.samefile(file, self.path)
        except OSError:
            same = False
        if not same:
            raise ConfigurationError(
                f"tx: its database is {file or 'in memory'!r} and the jobs are in {self.path!r}: "
                "one transaction is of one file"
            )


@contextlib.contextmanager
def _plain_texts(
    connection: sqlite3.Connection | aiosqlite.Connection,
) -> Generator[None, None, None]:
    """Texts as they are: a factory of the caller's may make anything of them."""
    factory = connection.text_factory
    if factory is str or factory is bytes:
        yield
        return
    connection.text_factory = str
    try:
        yield
    finally:
        connection.text_factory = factory


def _starts_by_itself(connection: sqlite3.Connection) -> bool:
    """Whether a change begins a transaction."""
    legacy: int = getattr(connection, "autocommit", _LEGACY)
    return legacy == _LEGACY and connection.isolation_level is not None


class SqliteTxExecutor(SqlTxExecutor):
    """The operations in the transaction of an aiosqlite connection."""

    def __init__(
        self, operations: Operations, checks: TxChecks, connection: aiosqlite.Connection
    ) -> None:
        super().__init__(TxOps(operations))
        self._checks = checks
        self._connection = connection

    async def run(self, operation: Op[T], /) -> T:
        """See :meth:`SqlTxExecutor.run`."""
        started = time.monotonic()
        try:
            await self._checks.begin(self._connection)
            return await run_async(operation, AiosqliteAdapter(self._connection))
        except sqlite3.Error as error:
            timeout = None
            if is_busy(error):
                async with self._connection.cursor() as cursor:
                    cursor.row_factory = None
                    await cursor.execute(_BUSY_TIMEOUT)
                    row: Any = await cursor.fetchone()
                    timeout = row[0]
            raise self._error(error, started, timeout) from error
        except ValueError as error:
            if str(error) not in {"Connection closed", "no active connection"}:
                raise
            raise DriverUnavailableError("tx: the connection is closed") from error

    def _error(self, error: sqlite3.Error, started: float, timeout: int | None) -> Exception:
        return _translation(error, self._checks.path, time.monotonic() - started, timeout)


class SqliteSyncTxExecutor(SqlSyncTxExecutor):
    """The operations in the transaction of a sqlite3 connection."""

    def __init__(
        self, operations: Operations, checks: TxChecks, connection: sqlite3.Connection
    ) -> None:
        super().__init__(TxOps(operations))
        self._checks = checks
        self._connection = connection

    def run(self, operation: Op[T], /) -> T:
        """See :meth:`SqlSyncTxExecutor.run`."""
        started = time.monotonic()
        adapter = Sqlite3Adapter(self._connection)
        try:
            if not self._connection.in_transaction:
                adapter.run(_BEGIN)
            return run_sync(operation, adapter)
        except sqlite3.Error as error:
            timeout = None
            if is_busy(error):
                timeout = adapter.value(_BUSY_TIMEOUT)
            raise _translation(
                error, self._checks.path, time.monotonic() - started, timeout
            ) from error
        finally:
            adapter.close()


def _translation(error: sqlite3.Error, path: str, waited: float, timeout: int | None) -> Exception:
    """Our error for the caller's transaction.

    A transaction that has read cannot wait for its turn to write: SQLite refuses at once, long
    before the connection's own time-out, and another attempt after the other's commit must fail.
    """
    if timeout is not None and waited * 1000 < timeout * 0.9:
        return stale(path)
    return translation(error, path)
