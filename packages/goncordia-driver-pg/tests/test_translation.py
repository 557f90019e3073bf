"""What becomes of each error code, and what is known of the outcome."""

from __future__ import annotations

from pathlib import Path

import pytest

from goncordia.errors import (
    ConfigurationError,
    DriverBusyError,
    DriverError,
    DriverUnavailableError,
    MigrationRequiredError,
    TransactionAbortedError,
)
from goncordia_driver_pg.errors import Failure, Stage, translation, unconnected

CODES = [
    ("08006", DriverUnavailableError),
    ("28P01", DriverUnavailableError),
    ("25006", DriverUnavailableError),
    ("25P03", DriverUnavailableError),
    ("42501", DriverUnavailableError),
    ("57P01", DriverUnavailableError),
    ("57P03", DriverUnavailableError),
    ("58030", DriverUnavailableError),
    ("26000", DriverUnavailableError),
    ("42P05", DriverUnavailableError),
    ("53100", DriverBusyError),
    ("53200", DriverBusyError),
    ("53300", DriverBusyError),
    ("55P03", DriverBusyError),
    ("57014", DriverBusyError),
    ("40001", TransactionAbortedError),
    ("40P01", TransactionAbortedError),
    ("25P02", TransactionAbortedError),
    ("42P01", MigrationRequiredError),
    ("3F000", MigrationRequiredError),
    ("42703", MigrationRequiredError),
    ("23514", DriverError),
    ("XX000", DriverBusyError),
]


@pytest.mark.parametrize(("code", "kind"), CODES)
def test_each_code_has_its_error(code: str, kind: type[Exception]) -> None:
    error = translation(Failure("it said so", code, "ERROR"), "jobs", "running")
    assert type(error) is kind
    assert code in str(error)


def test_a_right_that_is_missing_names_the_page_of_rights() -> None:
    error = translation(Failure("permission denied for table job", "42501", "ERROR"), "jobs", "tx")
    page = str(error).partition("is in ")[2].partition(" ")[0]
    assert page.endswith("docs/postgresql/roles.md")
    assert (Path(__file__).parents[3] / page.partition("/main/")[2]).exists()


def test_a_connection_that_was_never_made_is_not_lost() -> None:
    made = translation(Failure("it broke", lost=True), "jobs", "running")
    assert str(made) == "the connection is lost: it broke"
    never = unconnected(Failure("refused", lost=True, sent=True), "h:1")
    assert str(never) == "could not connect to h:1: refused"
    assert never is not None
    assert never.outcome == "not_applied"
    assert unconnected(Failure("no such role", "28000", "FATAL"), "h:1") is None


@pytest.mark.parametrize("code", ["28000", "28P01", "3D000", "42704", "22023", "55P02", "08P01"])
def test_a_wrong_dsn_is_said_at_the_opening(code: str) -> None:
    error = translation(Failure("no", code, "FATAL"), "jobs", "opening")
    assert type(error) is ConfigurationError
    assert str(error).startswith("dsn: ")


def test_a_value_that_is_refused_is_not_shown() -> None:
    failure = Failure('invalid input syntax: "secret"', "22P02", "ERROR")
    error = translation(failure, "jobs", "running")
    assert type(error) is DriverError
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("severity", "code", "sent", "outcome"),
    [
        ("ERROR", "57014", False, "not_applied"),
        ("ERROR", "57014", True, "not_applied"),
        ("FATAL", "57P01", False, "not_applied"),
        ("FATAL", "57P01", True, "unknown"),
        ("PANIC", "58030", True, "unknown"),
        (None, None, False, "not_applied"),
        (None, None, True, "unknown"),
        ("ERROR", "40003", True, "unknown"),
    ],
)
def test_the_outcome_is_known_while_the_server_goes_on(
    severity: str | None, code: str | None, sent: bool, outcome: str
) -> None:
    error = translation(Failure("no", code, severity, sent), "jobs", "running")
    assert isinstance(error, DriverError)
    assert error.outcome == outcome


@pytest.mark.parametrize(("code", "severity"), [("57P01", "FATAL"), (None, None)])
def test_in_a_transaction_of_the_callers_nothing_is_applied(
    code: str | None, severity: str | None
) -> None:
    error = translation(Failure("no", code, severity, sent=True), "jobs", "tx")
    assert isinstance(error, DriverUnavailableError)
    assert error.outcome == "not_applied"


@pytest.mark.parametrize(
    ("stage", "replica", "kind"),
    [
        ("tx", False, ConfigurationError),
        ("tx", True, DriverUnavailableError),
        ("running", False, DriverUnavailableError),
    ],
)
def test_what_is_read_only_is_said(stage: Stage, replica: bool, kind: type[Exception]) -> None:
    failure = Failure("cannot execute INSERT", "25006", "ERROR", replica=replica)
    assert type(translation(failure, "jobs", stage)) is kind
