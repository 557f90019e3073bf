"""The driver for asyncpg."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Final, Self, TypeAlias

import asyncpg

from goncordia.clock import Clock
from goncordia.driver import NoTransactions, SyncTxExecutor, TxExecutor
from goncordia.driver.connections.loops import PerLoop
from goncordia.driver.connections.pools import LONG, MOMENT, Pool, within
from goncordia.errors import ConfigurationError, UnsupportedError
from goncordia_driver_pg.asyncpg_connections import (
    AsyncpgBorrowed,
    AsyncpgLibrary,
    AsyncpgSide,
    AsyncpgTx,
)
from goncordia_driver_pg.asyncpg_parameters import WORDS, Parameters
from goncordia_driver_pg.asyncpg_tx import AsyncpgTxConnection
from goncordia_driver_pg.connections import AsyncPool
from goncordia_driver_pg.driver import PostgresDriver
from goncordia_driver_pg.dsn import read_url, seconds, whole
from goncordia_driver_pg.tx import PgTxExecutor

__all__ = ["AsyncpgDriver"]

AnyPool: TypeAlias = Pool[AsyncpgSide] | Pool[AsyncpgBorrowed]

_NO_SYNC: Final = (
    "asyncpg has no synchronous connections; for transactions in synchronous code there is "
    "PsycopgDriver (postgresql+psycopg://)"
)

_SYNC_POOL: Final = 4
"""Connections for synchronous code, beside a pool that was passed in."""


class AsyncpgDriver(PostgresDriver[AsyncpgTx, NoTransactions]):
    """Jobs in PostgreSQL, over asyncpg.

    ``Client.enqueue_tx`` takes a connection of asyncpg that is in a transaction, of a pool or by
    itself. ``SyncClient`` works without transactions, through a thread with an event loop.

    Args:
        pool: your ``asyncpg.Pool``, which stays yours; or a DSN, ``postgresql://…``: then the
            driver has a pool of its own.
        schema: the schema with the tables; ``migrate`` creates it.
        side: a DSN for the connections that are not of the pool, which beat and listen. Without it
            they are made like those of the pool. Behind a pooler in transaction mode it is the
            server's own address.
        clock: take time from here and not from the server; for tests.
        pool_size: connections in the driver's own pool, at most. A worker pool uses one for each of
            its two lanes, and now and then one or two more; the rest is for what your handlers and
            clients enqueue at the same time.
        prepare: False: no prepared statements, and a transaction around everything, for a pooler
            in transaction mode. A pool that was passed in says it by ``statement_cache_size=0``.
        timeout: seconds to wait for a connection of the pool before ``DriverBusyError``.

    Raises:
        ConfigurationError: a value is wrong.
    """

    name: ClassVar[str] = "postgresql"

    def __init__(
        self,
        pool: asyncpg.Pool[Any] | str,
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
        self._given: asyncpg.Pool[Any] | None = None
        if isinstance(pool, asyncpg.Pool):
            self._given = pool
            self._own = Parameters.of_pool(pool)
            self._size = min(self._size, _SYNC_POOL)
        else:
            self._own = Parameters.of_dsn("pool", _dsn(pool), prepare=prepare)
        aside = self._own if side is None else Parameters.of_dsn("side", side)
        prepares = prepare and (self._own is None or self._own.prepares)
        super().__init__(
            AsyncpgLibrary(),
            schema,
            clock,
            None if aside is None else aside.side,
            listens=prepares or side is not None,
            prepares=prepares,
            # asyncpg sends the preparation and the execution apart.
            always_begin=not prepares,
            native_tx="interactive",
            sync_tx="none",
        )
        self._pools = PerLoop(self._make_pool, _close)

    @classmethod
    def from_url(cls, url: str) -> Self:
        """A driver for ``postgresql://user@host/database``.

        Of the query, ``schema``, ``side`` and ``prepare`` are the arguments of those names; the
        rest is asyncpg's.

        Raises:
            ConfigurationError: the URL is wrong.
        """
        read = read_url(url, WORDS)
        return cls(read.dsn, schema=read.schema, side=read.side, prepare=read.prepare)

    async def _pool(self) -> AsyncPool:
        self._home.enter()
        return await self._pools.get()

    async def _make_pool(self) -> AnyPool:
        given = self._given
        if given is not None and _is_here(given):
            return Pool(
                lambda: AsyncpgBorrowed.of(given, self._timeout),
                size=given.get_max_size(),
                timeout=self._timeout,
                keep=MOMENT,
            )
        if self._own is None:
            raise ConfigurationError(
                "pool: it belongs to another event loop, and how to connect from this one cannot "
                "be read from it: give a DSN"
            )
        make = within(self._timeout, self._own.pooled)
        return Pool(make, size=self._size, timeout=self._timeout, keep=LONG)

    async def _close_pools(self) -> None:
        await self._pools.aclose()

    def unwrap_tx(self, tx: AsyncpgTx, /) -> TxExecutor:
        """The operations inside the transaction of your connection.

        Raises:
            ConfigurationError: it is no connection of asyncpg, or is closed, or in no transaction.
        """
        self._home.enter()
        return PgTxExecutor(
            self._tx_ops, self._runner, self._watcher, self._gate, AsyncpgTxConnection(tx)
        )

    def unwrap_sync_tx(self, tx: NoTransactions, /) -> SyncTxExecutor:
        """Refused: there are no synchronous transactions of asyncpg.

        Raises:
            UnsupportedError: always; it names the driver that has.
        """
        raise UnsupportedError(self.name, "sync_tx", _NO_SYNC)


def _is_here(pool: asyncpg.Pool[Any]) -> bool:
    """Whether the pool is of the running event loop, as far as asyncpg tells."""
    running = asyncio.get_running_loop()
    return getattr(pool, "_loop", running) is running


def _dsn(pool: object) -> object:
    kind = type(pool)
    package = kind.__module__.partition(".")[0]
    if package == "psycopg_pool":
        raise ConfigurationError("pool: it is a pool of psycopg, for which PsycopgDriver is made")
    if package == "asyncpg":
        raise ConfigurationError(
            f"pool: {kind.__qualname__} is one connection; the driver takes a pool or a DSN"
        )
    return pool


async def _close(pool: AnyPool) -> None:
    await pool.aclose()
