from __future__ import annotations

import sqlite3

import pytest

from goncordia.errors import (
    ConfigurationError,
    DriverBusyError,
    DriverError,
    DriverUnavailableError,
    GoncordiaError,
    MigrationRequiredError,
    TransactionAbortedError,
)
from goncordia_driver_sqlite.errors import is_busy, translated, translation


def error(code: int, text: str = "text") -> sqlite3.Error:
    made = sqlite3.OperationalError(text)
    made.sqlite_errorcode = code
    return made


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_BUSY, DriverBusyError),
        (sqlite3.SQLITE_BUSY_RECOVERY, DriverBusyError),
        (sqlite3.SQLITE_LOCKED_SHAREDCACHE, DriverBusyError),
        (sqlite3.SQLITE_FULL, DriverBusyError),
        (sqlite3.SQLITE_NOMEM, DriverBusyError),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, TransactionAbortedError),
        (sqlite3.SQLITE_READONLY, ConfigurationError),
        (sqlite3.SQLITE_READONLY_DBMOVED, ConfigurationError),
        (sqlite3.SQLITE_PERM, ConfigurationError),
        (sqlite3.SQLITE_AUTH, ConfigurationError),
        (sqlite3.SQLITE_NOTADB, ConfigurationError),
        (sqlite3.SQLITE_CANTOPEN, DriverUnavailableError),
        (sqlite3.SQLITE_IOERR_FSYNC, DriverUnavailableError),
        (sqlite3.SQLITE_INTERRUPT, DriverUnavailableError),
        (sqlite3.SQLITE_CORRUPT, DriverError),
        (sqlite3.SQLITE_CONSTRAINT_CHECK, DriverError),
        (0, DriverError),
    ],
)
def test_each_of_sqlites_errors_has_one_of_ours(code: int, expected: type[GoncordiaError]) -> None:
    ours = translation(error(code), "jobs.db")
    assert type(ours) is expected
    assert "jobs.db" in str(ours)
    if isinstance(ours, DriverError):
        assert ours.outcome == "not_applied"


def test_a_missing_table_or_column() -> None:
    for text in ("no such table: goncordia_job", "no such column: goncordia_job.new"):
        ours = translation(error(sqlite3.SQLITE_ERROR, text), "jobs.db")
        assert type(ours) is MigrationRequiredError
    foreign = translation(error(sqlite3.SQLITE_ERROR, "no such table: orders"), "jobs.db")
    assert type(foreign) is DriverError


def test_an_unknown_outcome_is_kept() -> None:
    ours = translation(error(sqlite3.SQLITE_IOERR), "jobs.db", unknown=True)
    assert isinstance(ours, DriverUnavailableError)
    assert ours.outcome == "unknown"


def test_what_is_busy() -> None:
    assert is_busy(error(sqlite3.SQLITE_BUSY))
    assert not is_busy(error(sqlite3.SQLITE_BUSY_SNAPSHOT))
    assert not is_busy(error(sqlite3.SQLITE_LOCKED))
    assert not is_busy(sqlite3.ProgrammingError("wrong"))
    assert not is_busy(ValueError())


def test_the_original_is_the_cause() -> None:
    original = error(sqlite3.SQLITE_FULL)
    with pytest.raises(DriverBusyError, match="disk or memory full") as caught, translated("x"):
        raise original
    assert caught.value.__cause__ is original
    with pytest.raises(ValueError, match="mine"), translated("x"):
        raise ValueError("mine")
