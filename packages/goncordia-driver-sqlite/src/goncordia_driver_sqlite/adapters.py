"""How sqlite3 and aiosqlite run a statement."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

import aiosqlite

from goncordia_sql import Batch, Rows, Statement

__all__ = ["AiosqliteAdapter", "Sqlite3Adapter", "is_unique_conflict"]

_CONFLICTS: Final = frozenset(
    {
        sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
        sqlite3.SQLITE_CONSTRAINT_UNIQUE,
        sqlite3.SQLITE_CONSTRAINT_ROWID,
    }
)


def is_unique_conflict(error: sqlite3.IntegrityError) -> bool:
    """Whether a unique index or a primary key refused the statement."""
    return error.sqlite_errorcode in _CONFLICTS


class Sqlite3Adapter:
    """A sqlite3 connection. Its own row factory plays no part: the cursor has one of its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._cursor = connection.cursor()
        self._cursor.row_factory = None

    def execute(self, step: Statement | Batch, /) -> Rows:
        """Run one step."""
        cursor = self._cursor
        if isinstance(step, Batch):
            cursor.executemany(step.sql.text, step.params)
            return Rows((), cursor.rowcount)
        try:
            cursor.execute(step.sql.text, step.params)
        except sqlite3.IntegrityError as error:
            if step.conflict_allowed and is_unique_conflict(error):
                return Rows((), 0, conflict=True)
            raise
        if step.sql.rows:
            return Rows(cursor.fetchall(), cursor.rowcount)
        return Rows((), cursor.rowcount)

    def run(self, command: str) -> None:
        """Run a statement that gives nothing, such as ``COMMIT``."""
        self._cursor.execute(command)

    def value(self, query: str) -> Any:
        """The one value that a query gives."""
        return self._cursor.execute(query).fetchone()[0]

    def close(self) -> None:
        """Close the cursor, and leave the connection as it is."""
        self._cursor.close()


class AiosqliteAdapter:
    """An aiosqlite connection, through what it offers to everybody."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def execute(self, step: Statement | Batch, /) -> Rows:
        """Run one step; each call is a turn of the connection's thread."""
        if isinstance(step, Batch):
            async with self._connection.executemany(step.sql.text, step.params) as cursor:
                return Rows((), cursor.rowcount)
        if step.sql.rows:
            async with self._connection.cursor() as cursor:
                cursor.row_factory = None
                await cursor.execute(step.sql.text, step.params)
                return Rows(list(await cursor.fetchall()), cursor.rowcount)
        try:
            cursor = await self._connection.execute(step.sql.text, step.params)
        except sqlite3.IntegrityError as error:
            if step.conflict_allowed and is_unique_conflict(error):
                return Rows((), 0, conflict=True)
            raise
        # A cursor that gives no rows holds nothing: closing it would cost one more turn.
        return Rows((), cursor.rowcount)
