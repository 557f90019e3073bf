"""What the executors of one driver share."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeVar

from goncordia.clock import Clock
from goncordia.driver import Finding
from goncordia.driver.connections.forks import Home
from goncordia.errors import ConfigurationError, MigrationRequiredError
from goncordia_driver_sqlite.adapters import Sqlite3Adapter
from goncordia_driver_sqlite.connections import (
    FORKING,
    Synchronous,
    check_file,
    check_library,
    connect,
    log_path,
    refuse_inherited,
)
from goncordia_driver_sqlite.damage import refuse_damaged
from goncordia_driver_sqlite.doctor import look
from goncordia_driver_sqlite.errors import is_busy, translated
from goncordia_driver_sqlite.lane import Lane
from goncordia_driver_sqlite.wakes import Wakes
from goncordia_sql import Migrations, Operations, run_sync
from goncordia_sql.sqlite import LEDGER, MIGRATIONS, SqliteDialect
from goncordia_sql.times import IntegerTimes

__all__ = ["Core"]

T = TypeVar("T")

_NAP: Final = 0.005
_BEAT_TIMEOUT: Final = 5.0


class Core:
    """The operations, and the two lanes that run them: one writes, one reads.

    Args:
        path: the absolute path of the database.
        synchronous: how hard a commit is pressed to the disk.
        busy_timeout: seconds to wait for the database's lock.
        clock: the time; None: the machine's.
    """

    def __init__(
        self, path: str, synchronous: Synchronous, busy_timeout: float, clock: Clock | None
    ) -> None:
        self.path = path
        self.busy_timeout = busy_timeout
        self._synchronous: Synchronous = synchronous
        self._clock = _microseconds(clock)
        dialect = SqliteDialect(self._clock)
        self.operations = Operations(dialect)
        self.migrations = Migrations(dialect, MIGRATIONS, LEDGER)
        self.writer = Lane(
            "goncordia-sqlite-writer", path, "BEGIN IMMEDIATE", self._connect_writer, busy_timeout
        )
        self.reader = Lane("goncordia-sqlite-reader", path, "BEGIN", self.connect, busy_timeout)
        self.wakes = Wakes(self.operations, self.connect, log_path(path))
        self._home = Home(FORKING)
        self._verifying = threading.Lock()
        self._verified = False

    def connect(self) -> sqlite3.Connection:
        """A connection of the driver's own."""
        return connect(self.path, self._synchronous, self.busy_timeout)

    def _connect_writer(self) -> sqlite3.Connection:
        connection = self.connect()
        try:
            self._use_wal(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def now(self) -> datetime:
        """The time: the machine's, or that of the clock that was given."""
        return IntegerTimes().decode(self._clock())

    # ---------------------------------------------------------------- opening

    def open(self) -> None:
        """Check library and path, and take requests.

        Raises:
            ConfigurationError: this SQLite or this path will not do, or not in this fork.
        """
        check_library()
        check_file(self.path)
        self._home.enter()
        self.writer.open()
        self.reader.open()

    async def aclose(self) -> None:
        """End all threads, close all connections. In a fork they are its parent's."""
        if self._home.is_elsewhere():
            return
        self.wakes.close()
        await self.writer.aclose()
        await self.reader.aclose()
        self._verified = False
        self._home.leave()

    def refuse_fork(self) -> None:
        """Refuse to be used where this, or another driver on the file, was open before a fork.

        Raises:
            ConfigurationError: it was.
        """
        self._home.check()
        refuse_inherited(self.path)

    def heart_lane(self) -> Lane:
        """A lane for beats. They need not outlive a power cut, and no beat waits for long."""
        patience = min(self.busy_timeout, _BEAT_TIMEOUT)
        lane = Lane(
            "goncordia-sqlite-heart",
            self.path,
            "BEGIN IMMEDIATE",
            lambda: connect(self.path, "NORMAL", patience),
            patience,
        )
        lane.open()
        return lane

    def ready(self) -> None:
        """Open and verify, for synchronous code; once."""
        if self._verified:
            return
        self._home.check()
        with self._verifying:
            if not self._verified:
                self.open()
                self.verify()
                self._verified = True

    def verify(self) -> None:
        """Check the stored schema.

        Raises:
            MigrationRequiredError: there is none, it is of another version, or parts are missing.
        """
        if not check_file(self.path):
            raise MigrationRequiredError(
                f"{self.path} does not exist: run migrate() or `goncordia migrate`"
            )
        with translated(self.path):
            connection = self.connect()
            try:
                adapter = Sqlite3Adapter(connection)
                self._patiently(lambda: refuse_damaged(self.path, connection, MIGRATIONS))
                self._patiently(lambda: run_sync(self.migrations.verify(), adapter))
                adapter.close()
            finally:
                connection.close()

    def check(self) -> list[Finding]:
        """See :meth:`SqliteDriver.check`."""
        try:
            self.verify()
        except MigrationRequiredError as error:
            return [Finding("error", str(error))]
        with translated(self.path), contextlib.closing(self.connect()) as connection:
            return look(self.path, log_path(self.path), connection)

    def migrate(self) -> list[str]:
        """Create the database if need be, and bring its schema up to date.

        Raises:
            MigrationRequiredError: the schema is newer than this code, or parts of it are missing.
        """
        check_file(self.path)
        with translated(self.path):
            connection = connect(self.path, self._synchronous, self.busy_timeout, create=True)
            try:
                self._use_wal(connection)
                adapter = Sqlite3Adapter(connection)
                self._patiently(lambda: adapter.run("BEGIN IMMEDIATE"))
                try:
                    refuse_damaged(self.path, connection, MIGRATIONS)
                    done = run_sync(self.migrations.migrate(), adapter)
                    adapter.run("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        adapter.run("ROLLBACK")
                    raise
                adapter.close()
            finally:
                connection.close()
        return done

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        # The change of mode needs the database for itself, and does not wait for that by itself.
        mode: Any = self._patiently(
            lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone()
        )
        if mode != ("wal",):
            raise ConfigurationError(
                f"path: {self.path!r} cannot have a write-ahead log (it is on a network or a "
                f"read-only file system?): its journal mode is {mode[0]!r}"
            )

    def _patiently(self, attempt: Callable[[], T]) -> T:
        """Try again while others hold the database's lock."""
        deadline = time.monotonic() + self.busy_timeout
        while True:
            try:
                return attempt()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
            time.sleep(_NAP)


def _microseconds(clock: Clock | None) -> Callable[[], int]:
    if clock is None:
        return lambda: time.time_ns() // 1000
    encode = IntegerTimes().encode
    return lambda: encode(clock.now())
