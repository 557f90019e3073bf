"""Writes the golden files: ``python packages/goncordia-sql/tests/golden.py``.

They hold the rendered SQL of each dialect, so that a review sees SQL change.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from goncordia.driver import JobState, ListFilter
from goncordia_sql import Migrations, Operations, ParamStyle
from goncordia_sql.postgres import PostgresDialect, PostgresOperations, migrations
from goncordia_sql.sqlite import LEDGER, MIGRATIONS, SqliteDialect

FOLDER = Path(__file__).parent / "golden"

_DAY = datetime(2026, 1, 1, tzinfo=UTC)
FILTERS = {
    "all": ListFilter(),
    "states": ListFilter(states=frozenset({JobState.AVAILABLE, JobState.RUNNING})),
    "later": ListFilter(states=frozenset({JobState.SCHEDULED, JobState.RETRYABLE})),
    "dead": ListFilter(states=frozenset({JobState.DISCARDED})),
    "everything": ListFilter(
        states=frozenset({JobState.AVAILABLE, JobState.COMPLETED}),
        kinds=frozenset({"a"}),
        queues=frozenset({"b"}),
        tags=frozenset({"c", "d"}),
        group="e",
        created_from=_DAY,
        created_until=_DAY,
    ),
}


def sqlite_statements() -> str:
    """Every statement, by topic and name, and those of some filters."""
    return _statements(Operations(SqliteDialect(lambda: 0)))


def postgres_statements() -> str:
    """The same for PostgreSQL, as asyncpg takes them."""
    return _statements(PostgresOperations(PostgresDialect(ParamStyle.NUMBERED_DOLLAR)))


def _statements(operations: Operations) -> str:
    def parts() -> Iterator[str]:
        for name, sql in operations.statements():
            yield f"-- {name}\n{_lines(sql.text)};\n"
        for name, where in FILTERS.items():
            for what in ("count", "by id", "by state"):
                if what == "by state" and not where.states:
                    continue
                sql = operations.listing.shape(what, where, paged=what != "count")
                yield f"-- listing, {what}, filter {name!r}\n{_lines(sql.text)};\n"

    return "\n".join(parts())


def _lines(text: str) -> str:
    """The SQL, in lines that a review can read."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def sqlite_schema() -> str:
    """What a migration of an empty database runs."""
    dialect = SqliteDialect(lambda: 0)
    return Migrations(dialect, MIGRATIONS, LEDGER).script()


def postgres_schema() -> str:
    """The same for PostgreSQL."""
    return migrations(PostgresDialect(ParamStyle.NUMBERED_DOLLAR)).script()


GOLDEN = {
    "postgres-statements.sql": postgres_statements,
    "postgres-schema.sql": postgres_schema,
    "sqlite-statements.sql": sqlite_statements,
    "sqlite-schema.sql": sqlite_schema,
}


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name, render in GOLDEN.items():
        (FOLDER / name).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
