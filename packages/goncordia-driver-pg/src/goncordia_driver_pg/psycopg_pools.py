"""The pools of psycopg: ours, and those that were passed in."""

from __future__ import annotations

import logging
from typing import Any, Final

import psycopg
import psycopg_pool

from goncordia.errors import DriverBusyError, DriverError, DriverUnavailableError
from goncordia_driver_pg.psycopg_connections import (
    PsycopgConnection,
    PsycopgLibrary,
    PsycopgSyncConnection,
)

__all__ = ["AsyncPool", "PsycopgPool", "PsycopgSyncPool", "SyncPool"]

_logger = logging.getLogger("goncordia.postgresql")

AsyncPool = psycopg_pool.AsyncConnectionPool[psycopg.AsyncConnection[Any]]
SyncPool = psycopg_pool.ConnectionPool[psycopg.Connection[Any]]

_CLOSING: Final = 2.0


class _Held(PsycopgConnection):
    """A connection that is to be given back as it was."""

    __slots__ = ("autocommit", "connection")

    def __init__(self, connection: psycopg.AsyncConnection[Any], *, autocommit: bool) -> None:
        super().__init__(connection, prepare=True)
        self.connection = connection
        self.autocommit = autocommit


class _SyncHeld(PsycopgSyncConnection):
    """The same for synchronous connections."""

    __slots__ = ("autocommit", "connection")

    def __init__(self, connection: psycopg.Connection[Any], *, autocommit: bool) -> None:
        super().__init__(connection, prepare=True)
        self.connection = connection
        self.autocommit = autocommit


class PsycopgPool:
    """An asynchronous pool.

    Args:
        pool: ours or the caller's.
        timeout: seconds to wait for a connection.
    """

    def __init__(self, pool: AsyncPool, timeout: float) -> None:
        self.pool = pool
        self._timeout = timeout

    async def acquire(self) -> _Held:
        """See :meth:`goncordia_driver_pg.connections.AsyncPool.acquire`."""
        before = _errors(self.pool)
        try:
            connection = await self.pool.getconn(self._timeout)
        except psycopg_pool.PoolTimeout as error:
            raise _none_free(self._timeout, lost=_errors(self.pool) > before) from error
        autocommit = connection.autocommit
        if not autocommit:
            # Else psycopg begins a transaction by itself at the first statement.
            await connection.set_autocommit(True)
        return _Held(connection, autocommit=autocommit)

    async def release(self, held: _Held, /) -> None:
        """See :meth:`goncordia_driver_pg.connections.AsyncPool.release`."""
        connection = held.connection
        try:
            if not held.autocommit and not connection.closed:
                await connection.set_autocommit(False)
        except PsycopgLibrary.errors as error:
            _logger.debug("giving a connection back failed: %s", error)
            await connection.close()
        finally:
            await self.pool.putconn(connection)

    async def aclose(self) -> None:
        """Close a pool of ours."""
        await self.pool.close(_CLOSING)


class PsycopgSyncPool:
    """The same for synchronous pools."""

    def __init__(self, pool: SyncPool, timeout: float) -> None:
        self.pool = pool
        self._timeout = timeout

    def acquire(self) -> _SyncHeld:
        """See :meth:`PsycopgPool.acquire`."""
        before = _errors(self.pool)
        try:
            connection = self.pool.getconn(self._timeout)
        except psycopg_pool.PoolTimeout as error:
            raise _none_free(self._timeout, lost=_errors(self.pool) > before) from error
        autocommit = connection.autocommit
        if not autocommit:
            connection.autocommit = True
        return _SyncHeld(connection, autocommit=autocommit)

    def release(self, held: _SyncHeld, /) -> None:
        """See :meth:`PsycopgPool.release`."""
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
