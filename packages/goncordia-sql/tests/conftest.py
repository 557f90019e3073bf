"""The operations on a bare connection, and makers of what they are given."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import pytest

from goncordia.clock import SystemClock
from goncordia_conformance.jobs import JobMaker
from goncordia_sql import Batch, Migrations, Op, Operations, Rows, Statement, run_sync
from goncordia_sql.sqlite import LEDGER, MIGRATIONS, SqliteDialect

T = TypeVar("T")
START = datetime(2026, 1, 1, tzinfo=UTC)


class Hand:
    """A clock moved by hand, in microseconds."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return (self.now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Bare:
    """The operations on a bare sqlite3 connection: the least adapter there can be."""

    def __init__(self) -> None:
        self.clock = Hand()
        self.dialect = SqliteDialect(self.clock)
        self.ops = Operations(self.dialect)
        self.migrations = Migrations(self.dialect, MIGRATIONS, LEDGER)
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.asked: list[str] = []
        """The texts of the statements of the last operation."""

    def execute(self, step: Statement | Batch, /) -> Rows:
        self.asked.append(step.sql.text)
        if isinstance(step, Batch):
            cursor = self.connection.executemany(step.sql.text, step.params)
            return Rows((), cursor.rowcount)
        try:
            cursor = self.connection.execute(step.sql.text, step.params)
        except sqlite3.IntegrityError:
            if step.conflict_allowed:
                return Rows((), 0, conflict=True)
            raise
        return Rows(cursor.fetchall() if step.sql.rows else (), cursor.rowcount)

    def run(self, operation: Op[T]) -> T:
        """In a transaction of its own, as every operation expects it."""
        self.asked.clear()
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            result = run_sync(operation, self)
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")
        return result

    def close(self) -> None:
        self.connection.close()

    def value(self, query: str, *params: Any) -> Any:
        return self.connection.execute(query, params).fetchone()[0]


def _make_bare() -> Bare:
    bare = Bare()
    bare.run(bare.migrations.migrate())
    return bare


@pytest.fixture
def bare() -> Iterator[Bare]:
    with contextlib.closing(_make_bare()) as bare:
        yield bare


@pytest.fixture(scope="session")
def make_bare() -> Callable[[], Bare]:
    """For tests that need one of their own for every example."""
    return _make_bare


@pytest.fixture(scope="session")
def new_job() -> JobMaker:
    return JobMaker(SystemClock(), random.Random(1).getrandbits)


@pytest.fixture
def session() -> UUID:
    return UUID(int=random.Random(2).getrandbits(128))
