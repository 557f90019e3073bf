"""The kit over the SQLite driver."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal
from uuid import UUID

import aiosqlite
import pytest
import pytest_asyncio

from goncordia.driver import AnyDriver
from goncordia_conformance import (
    Busy,
    CommitsOf,
    CostOf,
    DriverConformance,
    Lab,
    SetSchema,
    StoredArgs,
    SyncTransaction,
    Transaction,
)
from goncordia_driver_sqlite import SqliteDriver

EMBEDDED = "the database is on this machine: its clock is the client's"

IN_PROCESS = "there is no way to a file that could break"


class TestSqlite(DriverConformance):
    not_applicable: ClassVar[Mapping[str, str]] = {
        "test_a_skewed_client_does_not_move_the_time": EMBEDDED,
        "test_a_skewed_client_starts_jobs_when_they_are_due": EMBEDDED,
        "test_a_skewed_client_steals_no_claims": EMBEDDED,
        "test_what_was_not_applied_is_not_there": IN_PROCESS,
        "test_nor_is_what_synchronous_code_did_not_apply": IN_PROCESS,
        "test_nor_is_what_a_frozen_backend_did_not_apply": IN_PROCESS,
        "test_an_unreachable_backend": "a file is there, or its path is a wrong value",
        "test_what_was_passed_in_stays_open": "a driver opens its file itself",
    }

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "jobs.db"

    @pytest.fixture
    def make_driver(self, path: Path) -> partial[SqliteDriver]:
        return partial(SqliteDriver, path)

    # ---------------------------------------------------------------- transactions

    @pytest.fixture
    def transaction(self, path: Path) -> Transaction:
        @asynccontextmanager
        async def transaction(_: AnyDriver) -> AsyncGenerator[aiosqlite.Connection, None]:
            async with aiosqlite.connect(path, isolation_level=None) as connection:
                await connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    await connection.execute("ROLLBACK")
                    raise
                await connection.execute("COMMIT")

        return transaction

    @pytest_asyncio.fixture
    async def _idle(self, path: Path) -> AsyncGenerator[aiosqlite.Connection, None]:
        async with aiosqlite.connect(path, isolation_level=None) as connection:
            yield connection

    @pytest.fixture
    def idle_connection(self, _idle: aiosqlite.Connection) -> aiosqlite.Connection:
        return _idle

    @pytest.fixture
    def sync_transaction(self, path: Path) -> SyncTransaction:
        @contextmanager
        def transaction(_: AnyDriver) -> Generator[sqlite3.Connection, None, None]:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")

        return transaction

    @pytest.fixture
    def idle_sync_connection(self, path: Path) -> Generator[sqlite3.Connection, None, None]:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            yield connection

    # ---------------------------------------------------------------- looking inside

    @pytest.fixture
    def cost_of(self, lab: Lab) -> CostOf:
        driver = lab.driver
        assert isinstance(driver, SqliteDriver)

        async def cost_of(call: Callable[[], Awaitable[object]]) -> int:
            with driver.count_steps() as counter:
                await call()
            return counter.steps

        return cost_of

    @pytest.fixture
    def commits_of(self, path: Path) -> CommitsOf:
        async def commits_of(call: Callable[[], Awaitable[object]]) -> int:
            with closing(sqlite3.connect(path)) as connection:
                # The log's header counts its frames, and each commit marks the last of its own.
                before = _commits(path)
                connection.execute("SELECT 1 FROM goncordia_job").fetchone()
                await call()
                return _commits(path) - before

        return commits_of

    @pytest.fixture
    def stored_args(self, path: Path) -> StoredArgs:
        async def stored_args(job_id: UUID) -> object:
            with closing(sqlite3.connect(path)) as connection:
                query = "SELECT args FROM goncordia_jobs WHERE id = ?"
                (args,) = connection.execute(query, (str(job_id),)).fetchone()
                return args

        return stored_args

    @pytest.fixture
    def set_schema(self, path: Path) -> SetSchema:
        async def set_schema(to: Literal["older", "newer", "compatible"]) -> None:
            with closing(sqlite3.connect(path)) as connection, connection:
                if to == "older":
                    connection.execute("DELETE FROM goncordia_migration")
                else:
                    oldest = 99 if to == "newer" else 1
                    connection.execute(
                        "INSERT INTO goncordia_migration VALUES (99, 'future', ?, 0)", (oldest,)
                    )

        return set_schema

    # ---------------------------------------------------------------- breaking it

    @pytest.fixture
    def busy(self, path: Path) -> Busy:
        @asynccontextmanager
        async def busy() -> AsyncGenerator[SqliteDriver, None]:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield SqliteDriver(path, busy_timeout=0.1)
                connection.execute("ROLLBACK")

        return busy


def _commits(path: Path) -> int:
    """How many commits the write-ahead log holds: frames with a database size in their header."""
    log = path.with_name(f"{path.name}-wal").read_bytes()
    page = int.from_bytes(log[8:12], "big")
    salt = log[16:24]
    frames = range(32, len(log) - 24, page + 24)
    return sum(log[at + 8 : at + 16] == salt and log[at + 4 : at + 8] != bytes(4) for at in frames)
