"""A schema of which parts are missing: somebody dropped them, and no migration brings them back."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from goncordia.errors import MigrationRequiredError
from goncordia_sql import Migration

__all__ = ["refuse_damaged"]

_LEDGER: Final = "goncordia_migration"


class _Part(NamedTuple):
    name: str
    kind: str
    sql: str


def refuse_damaged(path: str, connection: sqlite3.Connection, steps: tuple[Migration, ...]) -> None:
    """Compare the tables and indexes that are there with those that the ledger tells of.

    Args:
        path: the database, for the message.
        connection: to it.
        steps: all migrations that this code knows.

    Raises:
        MigrationRequiredError: some are missing; it says which, and what to do.
    """
    version = _version(connection)  # first: what it tells of is there
    parts = _parts(connection)
    tables = sorted(part.name for part in parts if part.kind == "table" and part.name != _LEDGER)
    if version == 0 and tables:
        raise MigrationRequiredError(
            f"{path} is damaged: {_LEDGER} does not say of which version {', '.join(tables)} are. "
            f"{_advice(parts)}"
        )
    if version > steps[-1].version:
        return  # what a newer schema has is not known here
    names = {part.name for part in parts}
    missing = [part for part in _expected(steps, version) if part.name not in names]
    if lost := sorted(part.name for part in missing if part.kind == "table"):
        raise MigrationRequiredError(
            f"{path} is damaged: it has no table {', '.join(lost)}, though its schema has version "
            f"{version}. {_advice(parts)}"
        )
    if indexes := sorted(part for part in missing if part.kind == "index"):
        name, _, sql = indexes[0]
        raise MigrationRequiredError(
            f"{path} is damaged: it has no index {name}. Make it again: {' '.join(sql.split())}"
        )


def _version(connection: sqlite3.Connection) -> int:
    ledger = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    if connection.execute(ledger, (_LEDGER,)).fetchone() is None:
        return 0
    newest = connection.execute(f"SELECT max(version) FROM {_LEDGER}").fetchone()[0]
    return int(newest or 0)


def _parts(connection: sqlite3.Connection) -> list[_Part]:
    """Our tables, indexes and views."""
    rows = connection.execute(
        r"SELECT name, type, sql FROM sqlite_master WHERE name LIKE 'goncordia\_%' ESCAPE '\'"
    )
    return [_Part(*row) for row in rows]


@functools.cache
def _expected(steps: tuple[Migration, ...], version: int) -> list[_Part]:
    """What the migrations up to a version make."""
    with contextlib.closing(sqlite3.connect(":memory:")) as model:
        for step in steps:
            if step.version <= version:
                for statement in step.statements:
                    model.execute(statement)
        return _parts(model)


def _advice(parts: Sequence[_Part]) -> str:
    # An index goes with its table.
    drops = [f"DROP {kind.upper()} {name};" for name, kind, _ in parts if kind != "index"]
    return (
        "Restore it from a backup; or begin anew, without the jobs that it holds, by running "
        f"`{' '.join(drops)}` and then migrate()"
    )
