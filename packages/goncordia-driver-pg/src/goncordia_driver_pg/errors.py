"""From a server's error codes to our errors: for whatever library has received them."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from goncordia.errors import (
    ConfigurationError,
    DriverBusyError,
    DriverError,
    DriverUnavailableError,
    GoncordiaError,
    MigrationRequiredError,
    Outcome,
    TransactionAbortedError,
)

__all__ = ["DOCS", "ROLES", "Failure", "Stage", "translation", "unconnected"]

Stage = Literal["opening", "running", "tx"]
"""``opening``: the driver's first contact; ``tx``: inside the caller's transaction."""

DOCS: Final = "https://github.com/goncordia/goncordia-python/tree/main/docs/postgresql"
ROLES: Final = f"{DOCS}/roles.md"

_POOLERS: Final = "08P01"
_UNKNOWN_TO_POOLERS: Final = "unsupported startup parameter"
_WRONG_SETTING: Final = frozenset({"22023", "42704", "55P02"})
_WRONG_ADDRESS: Final = frozenset({_POOLERS, "28000", "28P01", "3D000", *_WRONG_SETTING})
_BUSY: Final = frozenset({"55P03", "57014", "55006", "40003"})
_BUSY_CLASSES: Final = frozenset({"53"})
_AWAY: Final = frozenset(
    {
        "25P03",  # idle_in_transaction_session_timeout
        "25P04",  # transaction_timeout
        "57P01",  # admin_shutdown
        "57P02",  # crash_shutdown
        "57P03",  # cannot_connect_now
        "57P04",  # database_dropped
        "57P05",  # idle_session_timeout
    }
)
_AWAY_CLASSES: Final = frozenset({"08", "28", "3D", "58"})
_REPEATABLE: Final = frozenset({"40001", "40P01"})
_CONFLICT: Final = "23505"
"""Two at once have set one unique key: when it is repeated, the second sees the first."""
_NO_SCHEMA: Final = frozenset({"3F000", "42P01", "42703", "42883"})
_NOT_PREPARED: Final = frozenset({"26000", "42P05"})
_READ_ONLY: Final = "25006"
_NO_RIGHT: Final = "42501"
_ABORTED: Final = "25P02"
_VALUE_CLASS: Final = "22"
_CONSTRAINT_CLASSES: Final = frozenset({"23", "44"})
_FATAL: Final = frozenset({"FATAL", "PANIC"})


class Failure(NamedTuple):
    """What is known of an error.

    Attributes:
        message: the server's, or why there is no connection to it, in a line; without values.
        code: the SQLSTATE; None: it does not come from the server.
        severity: ``ERROR``, ``FATAL`` or ``PANIC``; None: it does not come from the server.
        sent: a commit, or a statement that is a transaction of its own, was under way.
        applied: a statement before it, a transaction of its own, has succeeded.
        replica: the server is a replica, as far as known.
        misused: what was passed in is not in a state in which anything can run on it.
        lost: the connection is.
    """

    message: str
    code: str | None = None
    severity: str | None = None
    sent: bool = False
    applied: bool = False
    replica: bool = False
    misused: bool = False
    lost: bool = False

    @property
    def unprepared(self) -> bool:
        """A prepared statement is not there, or there already."""
        return self.code in _NOT_PREPARED

    @property
    def outcome(self) -> Outcome:
        """A server that goes on after its error has rolled back; one that is gone may not have."""
        if self.applied:
            return "unknown"
        answered = self.code is not None and self.severity not in {None, *_FATAL}
        if not self.sent or (answered and self.code != "40003"):
            return "not_applied"
        return "unknown"


def translation(failure: Failure, schema: str, stage: Stage) -> GoncordiaError:
    """Our error.

    Args:
        failure: what happened.
        schema: the driver's, for messages.
        stage: when it happened.
    """
    code = failure.code
    outcome: Outcome = "not_applied" if stage == "tx" else failure.outcome
    if failure.misused:
        return ConfigurationError(f"{'tx' if stage == 'tx' else 'pool'}: {failure.message}")
    if code is None:
        how = "the connection is lost: " if failure.lost else ""
        return DriverUnavailableError(how + failure.message, outcome=outcome)
    text = f"{failure.message} (SQLSTATE {code})"
    if code == _POOLERS and _UNKNOWN_TO_POOLERS in text:
        text += (
            ": PgBouncer takes no such parameter; leave it out, or add it to "
            "ignore_startup_parameters in its configuration"
        )
    if stage == "opening" and code in _WRONG_ADDRESS:
        return ConfigurationError(f"dsn: the server refuses it: {text}")
    if code in _REPEATABLE or (code == _CONFLICT and stage == "running"):
        return TransactionAbortedError(_repeat(text, stage), outcome=outcome)
    if code == _ABORTED:
        return TransactionAbortedError(
            "tx: a statement before this one has failed, so the transaction is over: roll it back "
            f"(SQLSTATE {code})",
            outcome=outcome,
        )
    if code in _BUSY or code[:2] in _BUSY_CLASSES:
        return DriverBusyError(text, outcome=outcome)
    if code in _NO_SCHEMA:
        return MigrationRequiredError(
            f"schema {schema!r} has no Goncordia tables of this version: run migrate() or "
            f"`goncordia migrate` ({text})"
        )
    return _refused(failure, text, schema, stage, outcome)


def unconnected(failure: Failure, place: str) -> DriverUnavailableError | None:
    """Our error for a connection that was not made; None: the server has said why.

    Args:
        failure: what happened.
        place: where the server should be.
    """
    if failure.code is not None or failure.misused:
        return None
    return DriverUnavailableError(
        f"could not connect to {place}: {failure.message}", outcome="not_applied"
    )


def _refused(
    failure: Failure, text: str, schema: str, stage: Stage, outcome: Outcome
) -> GoncordiaError:
    code = failure.code or ""
    if code == _READ_ONLY:
        if stage == "tx" and not failure.replica:
            return ConfigurationError(
                f"tx: it is READ ONLY, and a job is written: begin it READ WRITE ({text})"
            )
        return DriverUnavailableError(
            "the server is read-only: a replica, or a primary before or after a failover. Connect "
            f"to the primary (target_session_attrs=read-write in the DSN): {text}",
            outcome=outcome,
        )
    if code == _NO_RIGHT:
        # Not a refusal for good: no result of a job is given up for want of a GRANT.
        return DriverUnavailableError(
            f"{failure.message}: the role has too few rights in schema {schema!r}; which it needs "
            f"to enqueue, to work or to migrate is in {ROLES} (SQLSTATE {code})",
            outcome=outcome,
        )
    if failure.unprepared:
        return DriverUnavailableError(
            f"{text}: a prepared statement is not there, most likely for a PgBouncer in transaction"
            " mode: turn them off (prepare=False, or your pool's own setting); see "
            f"{DOCS}/pgbouncer.md",
            outcome=outcome,
        )
    if code in _AWAY or code[:2] in _AWAY_CLASSES or failure.severity in _FATAL:
        return DriverUnavailableError(text, outcome=outcome)
    if code.startswith(_VALUE_CLASS):
        return DriverError(f"the server refuses a value (SQLSTATE {code})", outcome=outcome)
    if stage == "tx" or code[:2] in _CONSTRAINT_CLASSES:
        return DriverError(text, outcome=outcome)
    # A fault of the server's, and no refusal: no result of a job is given up for it.
    return DriverBusyError(text, outcome=outcome)


def _repeat(text: str, stage: Stage) -> str:
    return f"tx: {text}: roll back and repeat the whole transaction" if stage == "tx" else text
