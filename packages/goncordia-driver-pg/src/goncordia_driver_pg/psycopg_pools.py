"""The pools of psycopg: ours, and those that were passed in."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from typing import Any, Final

import psycopg
import psycopg_pool

from goncordia.errors import DriverBusyError, DriverError, DriverUnavailableError
from goncordia_driver_pg.psycopg_bounds import STATEMENT, Watchdog
from goncordia_driver_pg.psycopg_connections import (
    PsycopgKept,
    PsycopgLibrary,
    PsycopgSyncConnection,
)

__all__ = ["AsyncPool", "PsycopgBorrowed", "PsycopgSyncPool", "SyncPool"]

_logger = logging.getLogger("goncordia.postgresql")

AsyncPool = psycopg_pool.AsyncConnectionPool[psycopg.AsyncConnection[Any]]
SyncPool = psycopg_pool.ConnectionPool[psycopg.Connection[Any]]

_CLOSING: Final = 2.0


class PsycopgBorrowed(PsycopgKept):
    """A connection of a pool that was passed in.

    Args:
        pool: the caller's.
        connection: of it; in autocommit from here on, until it is given back as it was.
        autocommit: whether it is to be in autocommit then.
    """

    __slots__ = ("_autocommit", "_pool")

    def __init__(
        self, pool: AsyncPool, connection: psycopg.AsyncConnection[Any], *, autocommit: bool
    ) -> None:
        super().__init__(connection)
        self._pool = pool
        self._autocommit = autocommit

    @classmethod
    async def of(cls, pool: AsyncPool, timeout: float) -> PsycopgBorrowed:
        """Take one.

        Raises:
            DriverBusyError: none is free.
            DriverUnavailableError: the server gives none.
        """
        before = _errors(pool)
        try:
            connection = await pool.getconn(timeout)
        except psycopg_pool.PoolTimeout as error:
            raise _none_free(timeout, lost=_errors(pool) > before) from error
        autocommit = connection.autocommit
        if not autocommit:
            # Else psycopg begins a transaction by itself at the first statement.
            await connection.set_autocommit(True)
        return cls(pool, connection, autocommit=autocommit)

    def is_wanted(self) -> bool:
        """Whether somebody waits for one."""
        return bool(self._pool.get_stats().get("requests_waiting", 0))

    async def aclose(self) -> None:
        """Give it back."""
        await self.settle()
        connection = self._connection
        try:
            if not self._autocommit and not connection.closed:
                await connection.set_autocommit(False)
        except PsycopgLibrary.errors as error:
            _logger.debug("giving a connection back failed: %s", error)
            await connection.close()
        await self._pool.putconn(connection)


class _SyncHeld(PsycopgSyncConnection):
    """A synchronous connection that is to be given back as it was."""

    __slots__ = ("_watchdog", "autocommit", "connection")

    def __init__(
        self, connection: psycopg.Connection[Any], watchdog: Watchdog, *, autocommit: bool
    ) -> None:
        super().__init__(connection, prepare=True)
        self._watchdog = watchdog
        self.connection = connection
        self.autocommit = autocommit

    def _bounded(self) -> AbstractContextManager[None]:
        return self._watchdog.watching(self.connection)


class PsycopgSyncPool:
    """A synchronous pool, ours or the caller's.

    Args:
        pool: whoever's.
        timeout: seconds to wait for a connection.
        bound: seconds for one statement.
    """

    def __init__(self, pool: SyncPool, timeout: float, bound: float = STATEMENT) -> None:
        self.pool = pool
        self._timeout = timeout
        self._watchdog = Watchdog(bound)

    def acquire(self) -> _SyncHeld:
        """See :meth:`SyncPool.acquire`."""
        before = _errors(self.pool)
        try:
            connection = self.pool.getconn(self._timeout)
        except psycopg_pool.PoolTimeout as error:
            raise _none_free(self._timeout, lost=_errors(self.pool) > before) from error
        autocommit = connection.autocommit
        if not autocommit:
            connection.autocommit = True
        return _SyncHeld(connection, self._watchdog, autocommit=autocommit)

    def release(self, held: _SyncHeld, /) -> None:
        """See :meth:`SyncPool.release`."""
        connection = held.connection
        try:
            if not held.autocommit and not connection.closed:
                connection.autocommit = False
        except PsycopgLibrary.errors as error:
            _logger.debug("giving a connection back failed: %s", error)
            connection.close()
        finally:
            self.pool.putconn(connection)

    def close(self) -> None:
        """Close a pool of ours."""
        self.pool.close(_CLOSING)


def _errors(pool: AsyncPool | SyncPool) -> int:
    """How often a connection could not be made."""
    return int(pool.get_stats().get("connections_errors", 0))


def _none_free(seconds: float, *, lost: bool) -> DriverError:
    if lost:
        return DriverUnavailableError(
            f"the server gave no connection within {seconds:g} s", outcome="not_applied"
        )
    return DriverBusyError(
        f"none of the pool's connections was free within {seconds:g} s", outcome="not_applied"
    )
