"""How the two libraries run statements."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import aiosqlite
import pytest

from goncordia_driver_sqlite.adapters import AiosqliteAdapter, Sqlite3Adapter
from goncordia_sql import Batch, ParamStyle, Rows, Sql, Statement

INSERT = Sql("INSERT INTO t (a, b) VALUES (:a, :b)", ParamStyle.QMARK)
SELECT = Sql("SELECT b, a FROM t WHERE a >= :a AND :a >= 0 ORDER BY a", ParamStyle.QMARK)
UPDATE = Sql("UPDATE t SET b = NULL WHERE a > :a", ParamStyle.QMARK)


class OnSqlite3:
    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.row_factory = sqlite3.Row
        self.connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b CHECK (b <> 'no'))")

    def execute(self, step: Statement | Batch) -> Rows:
        adapter = Sqlite3Adapter(self.connection)
        with closing(adapter):
            return adapter.execute(step)

    def close(self) -> None:
        self.connection.close()


class OnAiosqlite:
    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.connection = self.runner.run(self._connect())

    async def _connect(self) -> aiosqlite.Connection:
        connection = await aiosqlite.connect(":memory:", isolation_level=None)
        connection.row_factory = sqlite3.Row
        await connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b CHECK (b <> 'no'))")
        return connection

    def execute(self, step: Statement | Batch) -> Rows:
        return self.runner.run(AiosqliteAdapter(self.connection).execute(step))

    def close(self) -> None:
        self.runner.run(self.connection.close())
        self.runner.close()


@pytest.fixture(params=[OnSqlite3, OnAiosqlite])
def library(request: pytest.FixtureRequest) -> Iterator[Any]:
    with closing(request.param()) as library:
        yield library


def test_rows_are_tuples_and_changes_are_counted(library: Any) -> None:
    assert library.execute(INSERT(a=1, b="x")) == Rows((), 1)
    assert library.execute(INSERT.batch([(2, "y"), (3, "z")])) == Rows((), 2)
    assert list(library.execute(SELECT(a=2)).rows) == [("y", 2), ("z", 3)]
    assert {type(row) for row in library.execute(SELECT(a=2)).rows} == {tuple}
    assert library.execute(UPDATE(a=1)).changed == 2


def test_a_unique_conflict_is_an_answer_where_it_is_allowed(library: Any) -> None:
    library.execute(INSERT(a=1, b="x"))
    assert library.execute(INSERT.with_conflict(a=1, b="y")) == Rows((), 0, conflict=True)
    with pytest.raises(sqlite3.IntegrityError):
        library.execute(INSERT(a=1, b="y"))


def test_another_constraint_is_no_conflict(library: Any) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        library.execute(INSERT.with_conflict(a=1, b="no"))
