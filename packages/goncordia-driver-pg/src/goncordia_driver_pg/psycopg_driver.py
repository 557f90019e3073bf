"""The driver for psycopg 3."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self, TypeAlias
from uuid import UUID

import psycopg
import psycopg_pool

from goncordia.clock import Clock
from goncordia.driver import SyncExecutor, SyncTxExecutor, TxExecutor
from goncordia.driver.connections.loops import PerLoop
from goncordia.driver.connections.pools import LONG, MOMENT, Pool, within
from goncordia.errors import ConfigurationError, UnsupportedError
from goncordia_driver_pg.background import in_thread
from goncordia_driver_pg.connections import AsyncPool, SyncRunner
from goncordia_driver_pg.doctor import server
from goncordia_driver_pg.driver import PostgresDriver
from goncordia_driver_pg.dsn import read_url, seconds, whole
from goncordia_driver_pg.executor import PgSyncExecutor
from goncordia_driver_pg.notifier import SyncNotifier
from goncordia_driver_pg.psycopg_connections import PsycopgLibrary, PsycopgSide
from goncordia_driver_pg.psycopg_parameters import WORDS, Parameters
from goncordia_driver_pg.psycopg_pools import PsycopgBorrowed, PsycopgSyncPool
from goncordia_driver_pg.psycopg_tx import PsycopgSyncTxConnection, PsycopgTxConnection
from goncordia_driver_pg.side import BOUND
from goncordia_driver_pg.tx import PgSyncTxExecutor, PgTxExecutor
from goncordia_driver_pg.watcher import SyncWatcher
from goncordia_sql.postgres.notify import News

__all__ = ["PsycopgDriver"]

AnyPool: TypeAlias = Pool[PsycopgSide] | Pool[PsycopgBorrowed]

_CLOSING: Final = 10.0
"""Seconds that asynchronous code waits for synchronous connections to be closed, at most."""
_SYNC_ONLY: Final = (
    "pool: a psycopg_pool.ConnectionPool serves SyncClient only; for anything else give the driver "
    "an AsyncConnectionPool or a DSN"
)


class PsycopgDriver(PostgresDriver["psycopg.AsyncConnection[Any]", "psycopg.Connection[Any]"]):
    """Jobs in PostgreSQL, over psycopg 3.

    ``Client.enqueue_tx`` takes a ``psycopg.AsyncConnection``, ``SyncClient.enqueue_tx`` a
    ``psycopg.Connection``; each in a transaction, or such that it begins one by itself.

    Args:
        pool: your ``psycopg_pool.AsyncConnectionPool``, which stays yours; or your
            ``ConnectionPool``: then only ``SyncClient`` works; or a DSN, ``postgresql://…``: then
            the driver has pools of its own, one for asynchronous and one for synchronous code,
            each made when it is first needed.
        schema: the schema with the tables; ``migrate`` creates it.
        side: a DSN for the connections that are not of the pool, which beat and listen. Without it
            they are made like those of the pool. Behind a pooler in transaction mode it is the
            server's own address.
        clock: take time from here and not from the server; for tests.
        pool_size: connections in a pool of the driver's own, at most. A worker pool uses one for
            each of its two lanes, and now and then one or two more; the rest is for what your
            handlers and clients enqueue at the same time.
        prepare: False: no prepared statements, for a pooler in transaction mode. A pool that was
            passed in says it by ``prepare_threshold=None``.
        timeout: seconds to wait for a connection of the pool before ``DriverBusyError``.

    Raises:
        ConfigurationError: a value is wrong.
    """

    name: ClassVar[str] = "postgresql"

    def __init__(
        self,
        pool: psycopg_pool.AsyncConnectionPool[Any] | psycopg_pool.ConnectionPool[Any] | str,
        *,
        schema: str = "goncordia",
        side: str | None = None,
        clock: Clock | None = None,
        pool_size: int = 10,
        prepare: bool = True,
        timeout: float = 30.0,
    ) -> None:
        self._timeout = seconds("timeout", timeout)
        self._size = whole("pool_size", pool_size)
        self._given: psycopg_pool.AsyncConnectionPool[Any] | None = None
        self._given_sync: PsycopgSyncPool | None = None
        if isinstance(pool, psycopg_pool.AsyncConnectionPool):
            self._given = pool
            self._own = Parameters.of_pool(pool)
        elif isinstance(pool, psycopg_pool.ConnectionPool):
            self._given_sync = PsycopgSyncPool(pool, self._timeout)
            self._own = None
        else:
            self._own = Parameters.of_dsn("pool", _dsn(pool), prepare=prepare)
        aside = self._own if side is None else Parameters.of_dsn("side", side)
        prepares = prepare and (self._own is None or self._own.prepares)
        sync_only = self._given_sync is not None
        super().__init__(
            PsycopgLibrary(),
            schema,
            clock,
            None if aside is None or sync_only else aside.side,
            listens=prepares or side is not None,
            prepares=prepares,
            # A statement of psycopg that is not prepared is one message: no pooler can part it.
            always_begin=False,
            native_tx="none" if sync_only else "interactive",
            sync_tx="interactive",
        )
        self._pools = PerLoop(self._make_pool, _close)
        self._sync_runner = SyncRunner(PsycopgLibrary(), schema)
        self._sync_executor = PgSyncExecutor(
            self._operations,
            SyncNotifier(self.clock, self._gate, self._say_sync),
            self._sync_runner,
            self._ready_pool,
        )
        self._sync_watcher = SyncWatcher(self._say_sync_of_jobs, self._gate)
        self._opening = threading.Lock()
        self._own_sync: PsycopgSyncPool | None = None
        self._telling: PsycopgSyncPool | None = None
        self._sync_is_open = self._sync_is_verified = False

    @classmethod
    def from_url(cls, url: str) -> Self:
        """A driver for ``postgresql+psycopg://user@host/database``.

        Of the query, ``schema``, ``side`` and ``prepare`` are the arguments of those names; the
        rest is libpq's.

        Raises:
            ConfigurationError: the URL is wrong.
        """
        read = read_url(url, WORDS)
        return cls(read.dsn, schema=read.schema, side=read.side, prepare=read.prepare)

    # ---------------------------------------------------------------- asynchronous

    async def _pool(self) -> AsyncPool:
        if self._given_sync is not None:
            raise ConfigurationError(_SYNC_ONLY)
        self._home.enter()
        return await self._pools.get()

    async def _make_pool(self) -> AnyPool:
        given = self._given
        if given is None:
            make = within(self._timeout, self._parameters().side)
            return Pool(make, size=self._size, timeout=self._timeout, keep=LONG)
        return Pool(
            lambda: PsycopgBorrowed.of(given, self._timeout),
            size=given.max_size,
            timeout=self._timeout,
            keep=MOMENT,
        )

    def _parameters(self) -> Parameters:
        if self._own is None:
            raise ConfigurationError(
                "pool: how to connect cannot be read from it, and SyncClient needs connections of "
                "its own: give a DSN"
            )
        return self._own

    async def _close_pools(self) -> None:
        await self._pools.aclose()
        if self._own_sync is not None or self._sync_is_open or self._sync_watcher.is_watching:
            await in_thread(self._close_sync, _CLOSING)

    def unwrap_tx(self, tx: psycopg.AsyncConnection[Any], /) -> TxExecutor:
        """The operations inside the transaction of your connection.

        Raises:
            ConfigurationError: it is no ``psycopg.AsyncConnection``, or is closed, or in
                autocommit and in no transaction.
            TransactionAbortedError: its transaction has failed.
            UnsupportedError: the driver was given a synchronous pool.
        """
        if self._given_sync is not None:
            raise UnsupportedError(self.name, "native_tx", _SYNC_ONLY)
        self._home.enter()
        return PgTxExecutor(
            self._tx_ops, self._runner, self._watcher, self._gate, PsycopgTxConnection(tx)
        )

    # ---------------------------------------------------------------- synchronous

    def unwrap_sync_tx(self, tx: psycopg.Connection[Any], /) -> SyncTxExecutor:
        """The operations inside the transaction of your synchronous connection.

        Raises:
            ConfigurationError: it is no ``psycopg.Connection``, or is closed, or in autocommit and
                in no transaction.
            TransactionAbortedError: its transaction has failed.
        """
        self._home.enter()
        return PgSyncTxExecutor(
            self._tx_ops,
            self._sync_runner,
            self._sync_watcher,
            self._gate,
            PsycopgSyncTxConnection(tx),
        )

    def sync_executor(self) -> SyncExecutor:
        """The operations for synchronous code, on the calling thread."""
        return self._sync_executor

    def migrate_sync(self) -> list[str]:
        """:meth:`migrate`, for synchronous code."""
        return self._sync_runner.run(self._open_pool(), self._migrations.migrate)

    def __enter__(self) -> Self:
        """Connect now, for synchronous code."""
        self._open_pool()
        return self

    def close(self) -> None:
        """:meth:`aclose`, for synchronous code."""
        if self._home.is_elsewhere():
            return
        self._close_sync()
        self._home.leave()
        if self._given_sync is None:
            super().close()

    def _ready_pool(self) -> PsycopgSyncPool:
        """The pool, once the server and its schema were looked at."""
        pool = self._open_pool()
        if not self._sync_is_verified:
            self._sync_runner.run(pool, self._migrations.verify, writes=False)
            self._sync_is_verified = True
        return pool

    def _open_pool(self) -> PsycopgSyncPool:
        self._home.enter()
        with self._opening:
            pool = self._given_sync or self._own_sync
            if pool is None:
                with self._sync_runner.translated("opening"):
                    made = self._parameters().sync_pool(self._size)
                pool = self._own_sync = PsycopgSyncPool(made, self._timeout)
            if not self._sync_is_open:
                operation = server(self._dialect)
                found = self._sync_runner.once(pool, operation, writes=False, stage="opening")
                found.check()
                self._sync_is_open = True
            return pool

    def _close_sync(self) -> None:
        self._sync_watcher.flush()
        with self._opening:
            pool, self._own_sync, self._telling = self._own_sync, None, None
            self._sync_is_open = self._sync_is_verified = False
        if pool is not None:
            pool.close()

    def _say_sync_of_jobs(self, messages: Mapping[UUID, str]) -> set[UUID]:
        operation = self._notify.send_of_jobs(messages)
        return self._sync_runner.once(self._open_telling(), operation, writes=False)

    def _say_sync(self, news: News) -> None:
        operation = self._notify.send_at_once(news)
        self._sync_runner.once(self._open_telling(), operation, writes=False)

    def _open_telling(self) -> PsycopgSyncPool:
        """The pool, with less patience: a hint is soon of no use."""
        pool = self._open_pool()
        with self._opening:
            if self._telling is None or self._telling.pool is not pool.pool:
                self._telling = PsycopgSyncPool(pool.pool, min(self._timeout, BOUND), BOUND)
            return self._telling


def _dsn(pool: object) -> object:
    kind = type(pool)
    package = kind.__module__.partition(".")[0]
    if package == "asyncpg":
        raise ConfigurationError("pool: it is of asyncpg, for which AsyncpgDriver is made")
    if package == "psycopg":
        raise ConfigurationError(
            f"pool: {kind.__qualname__} is one connection; the driver takes a pool or a DSN"
        )
    return pool


async def _close(pool: AnyPool) -> None:
    await pool.aclose()
