"""From sqlite3's errors to ours."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator
from typing import Final

from goncordia.errors import (
    ConfigurationError,
    DriverBusyError,
    DriverError,
    DriverUnavailableError,
    GoncordiaError,
    MigrationRequiredError,
    TransactionAbortedError,
)

__all__ = ["is_busy", "stale", "translated", "translation"]

_PRIMARY: Final = 0xFF
_BEGIN_IMMEDIATE: Final = (
    "the transaction has read before it writes, and another has written since: "
    "start it with BEGIN IMMEDIATE"
)
_LOCKED: Final = (
    "the database stayed locked: most likely a write transaction is open in this process or "
    "another. Commit it or roll it back first, or enqueue inside it with enqueue_tx"
)


def is_busy(error: BaseException) -> bool:
    """Whether another connection's lock is why; a stale snapshot is not."""
    return (
        isinstance(error, sqlite3.OperationalError)
        and getattr(error, "sqlite_errorcode", 0) & _PRIMARY == sqlite3.SQLITE_BUSY
        and error.sqlite_errorcode != sqlite3.SQLITE_BUSY_SNAPSHOT
    )


def stale(path: str) -> TransactionAbortedError:
    """The error for a transaction that has read and cannot begin to write any more."""
    return TransactionAbortedError(f"{path}: {_BEGIN_IMMEDIATE}", outcome="not_applied")


def translation(error: sqlite3.Error, path: str, *, unknown: bool = False) -> GoncordiaError:
    """Our error for sqlite3's.

    Args:
        error: sqlite3's.
        path: the database, for the message.
        unknown: whether the statement may have had its effect all the same.
    """
    code: int = getattr(error, "sqlite_errorcode", 0)
    outcome: Final = "unknown" if unknown else "not_applied"
    text = f"{path}: {error}"
    if code == sqlite3.SQLITE_BUSY_SNAPSHOT:
        return stale(path)
    match code & _PRIMARY:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return DriverBusyError(f"{path}: {_LOCKED}", outcome=outcome)
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_NOMEM:
            return DriverBusyError(f"{text} (disk or memory full)", outcome=outcome)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return ConfigurationError(f"path: {path!r} cannot be written: {error}")
        case sqlite3.SQLITE_NOTADB:
            return ConfigurationError(f"path: {path!r} is not an SQLite database: {error}")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR | sqlite3.SQLITE_INTERRUPT:
            return DriverUnavailableError(text, outcome=outcome)
        case sqlite3.SQLITE_ERROR if "no such table: goncordia_migration" in str(error):
            return MigrationRequiredError(
                f"{path} has no Goncordia tables: run migrate() or `goncordia migrate`"
            )
        case sqlite3.SQLITE_ERROR if "no such table: goncordia_" in str(error):
            return MigrationRequiredError(
                f"{text}: run migrate() or `goncordia migrate`; it makes it, or says what is wrong"
            )
        case sqlite3.SQLITE_ERROR | sqlite3.SQLITE_SCHEMA if "no such column" in str(error):
            return MigrationRequiredError(f"{text}: the schema is not of this version")
        case _:
            return DriverError(text, outcome=outcome)


@contextlib.contextmanager
def translated(path: str, *, unknown: bool = False) -> Generator[None, None, None]:
    """Raise our errors in place of sqlite3's."""
    try:
        yield
    except sqlite3.Error as error:
        raise translation(error, path, unknown=unknown) from error
