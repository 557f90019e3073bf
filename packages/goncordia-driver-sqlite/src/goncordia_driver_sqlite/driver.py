"""The driver: Goncordia on one SQLite file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Generator
from typing import ClassVar, Final, Self

import aiosqlite

from goncordia.clock import Clock
from goncordia.driver import (
    BaseDriver,
    BaseExecutor,
    Capabilities,
    Finding,
    ListFilter,
    SyncExecutor,
    SyncTxExecutor,
    TxExecutor,
)
from goncordia.errors import ConfigurationError
from goncordia_driver_sqlite.connections import Synchronous, database_path
from goncordia_driver_sqlite.core import Core
from goncordia_driver_sqlite.cost import StepCounter
from goncordia_driver_sqlite.executor import SqliteExecutor, SqliteSyncExecutor
from goncordia_driver_sqlite.heartbeat import SqliteHeartbeater
from goncordia_driver_sqlite.tx import SqliteSyncTxExecutor, SqliteTxExecutor, TxChecks
from goncordia_driver_sqlite.wakes import SqliteListener

__all__ = ["SqliteDriver"]

_CAPABILITIES: Final = Capabilities(
    native_tx="interactive",
    sync_tx="interactive",
    tx_finish=True,
    unique_jobs=True,
    groups=True,
    marks=True,
    fetch_kinds=True,
    strict_fetch_order=True,
    exchange=True,
    wakeups="all",
    server_time=True,
    linearizable=True,
    atomic_insert=10_000,
    max_payload=64 << 20,
    max_batch=10_000,
    list_filters=frozenset(ListFilter.__struct_fields__),
    exact_counts=True,
)


class SqliteDriver(BaseDriver[aiosqlite.Connection, sqlite3.Connection]):
    """Jobs in an SQLite file, for any number of processes on one machine.

    ``Client.enqueue_tx`` takes your ``aiosqlite.Connection``, ``SyncClient.enqueue_tx`` your
    ``sqlite3.Connection``, on the same file and in a transaction, best begun by ``BEGIN
    IMMEDIATE``. The database is put into WAL mode, which is a property of the file. Nothing that is
    open on a file goes through a fork, and no new driver on that file works in the child: open it
    after the fork.

    Args:
        path: the database file, as a path or as ``sqlite:///relative/path`` or
            ``sqlite:////absolute/path``. ``migrate`` creates it.
        synchronous: ``"FULL"``: an acknowledged job survives a power cut. ``"NORMAL"``: it
            survives any crash of a process, but the last few before a power cut may be lost;
            faster. It holds for the driver's own commits: those of your connections are pressed to
            the disk as they say themselves.
        busy_timeout: seconds to wait while another connection writes, before
            ``DriverBusyError``. Longer than any write transaction of yours.
        clock: take time from here and not from the machine; for tests.

    Raises:
        ConfigurationError: a value is wrong.
    """

    name: ClassVar[str] = "sqlite"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Synchronous = "FULL",
        busy_timeout: float = 30.0,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(_CAPABILITIES, clock)
        if synchronous not in {"FULL", "NORMAL"}:
            raise ConfigurationError(f"synchronous: {synchronous!r} is not 'FULL' or 'NORMAL'")
        self.path = database_path(path)
        """The database file, as an absolute path."""
        self._core = Core(self.path, synchronous, _seconds(busy_timeout), clock)
        self._executor = SqliteExecutor(self.name, self.capabilities, self.clock, self._core)
        self._checks = TxChecks(self.path)

    @classmethod
    def from_url(cls, url: str) -> Self:
        """A driver for ``sqlite:///relative/path`` or ``sqlite:////absolute/path``.

        Raises:
            ConfigurationError: the URL names no file.
        """
        return cls(url)

    # ---------------------------------------------------------------- opening and closing

    async def open(self) -> None:
        """Check the library and the path. Connections come when they are needed.

        Raises:
            ConfigurationError: this SQLite is too old, or the path is not one of a database that
                can be written.
        """
        self._core.open()

    async def verify(self) -> None:
        """Check the stored schema.

        Raises:
            MigrationRequiredError: there is none, it is older than the code, or too new, or parts
                of it are missing.
        """
        await self._core.reader.submit_function(self._core.verify)

    async def migrate(self) -> list[str]:
        """Create the database if need be, and bring the schema up to date.

        Raises:
            MigrationRequiredError: the schema is newer than this code, or parts of it are missing.
        """
        self._core.open()
        return await self._core.writer.submit_function(self._core.migrate)

    def migration_script(self) -> str:
        """What ``migrate`` would run on an empty database."""
        return self._core.migrations.script()

    async def check(self) -> list[Finding]:
        """What ``goncordia doctor`` should say: of the library, the schema, and the log's size."""
        self._core.open()
        return await self._core.reader.submit_function(self._core.check)

    async def aclose(self) -> None:
        """End the driver's threads and close its connections; yours stay as they are."""
        await self._core.aclose()
        await super().aclose()

    # ---------------------------------------------------------------- what it gives

    def executor(self) -> BaseExecutor:
        """The operations on the driver's own connections."""
        return self._executor

    def sync_executor(self) -> SyncExecutor:
        """The operations for synchronous code, on the calling thread."""
        return SqliteSyncExecutor(self._core)

    def listener(self) -> SqliteListener:
        """Something that hears of new, freed, cancelled and rescheduled jobs, of any process."""
        return self._core.wakes.listen()

    def heartbeater(self) -> SqliteHeartbeater | None:
        """Beats from a thread; None with a clock that was given, under which the loop beats."""
        return None if self.clock_given else SqliteHeartbeater(self._core)

    @contextlib.contextmanager
    def count_steps(self) -> Generator[StepCounter, None, None]:
        """``with driver.count_steps() as counter:`` counts what SQLite does for this driver.

        For tests: it slows everything down. What your own connections do is not counted.
        """
        counter = StepCounter()
        with self._core.writer.counting(counter), self._core.reader.counting(counter):
            yield counter

    def unwrap_tx(self, tx: aiosqlite.Connection, /) -> TxExecutor:
        """The operations inside the transaction of your aiosqlite connection.

        Raises:
            ConfigurationError: it is none of aiosqlite, or is in no transaction and would start
                none.
        """
        self._core.refuse_fork()
        return SqliteTxExecutor(self._core.operations, self._checks, self._checks.connection(tx))

    def unwrap_sync_tx(self, tx: sqlite3.Connection, /) -> SyncTxExecutor:
        """The operations inside the transaction of your sqlite3 connection.

        Raises:
            ConfigurationError: it is none of sqlite3, of another database, or is in no transaction
                and would start none.
        """
        self._core.refuse_fork()
        connection = self._checks.sync_connection(tx)
        return SqliteSyncTxExecutor(self._core.operations, self._checks, connection)


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ConfigurationError(f"busy_timeout: {value!r} is not a number of seconds from 0 on")
    return float(value)
