"""What a transaction of psycopg must be, and how operations run in it."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from goncordia.errors import ConfigurationError
from goncordia_driver_pg.psycopg_connections import PsycopgConnection, PsycopgSyncConnection
from goncordia_driver_pg.tx import NO_TRANSACTION, aborted, stranger

__all__ = ["PsycopgSyncTxConnection", "PsycopgTxConnection"]


class PsycopgTxConnection(PsycopgConnection):
    """The caller's connection, which is in a transaction or begins one at the first statement.

    Args:
        tx: what the caller handed over.

    Raises:
        ConfigurationError: it is no ``psycopg.AsyncConnection``, or in no transaction.
        TransactionAbortedError: its transaction has failed.
    """

    __slots__ = ()

    def __init__(self, tx: Any) -> None:
        given: object = tx
        if isinstance(given, psycopg.Connection):
            raise ConfigurationError(
                "tx: a psycopg.Connection is for SyncClient; Client takes a psycopg.AsyncConnection"
            )
        if not isinstance(given, psycopg.AsyncConnection):
            raise stranger(given, "a psycopg.AsyncConnection")
        _check(tx)
        super().__init__(tx, prepare=False)

    @property
    def replica(self) -> bool:
        """See :class:`TxConnection`."""
        return _is_replica(self._connection)

    @property
    def key(self) -> object:
        """See :class:`TxConnection`."""
        return self._connection

    def is_over(self) -> bool:
        """See :class:`TxConnection`; libpq only looks into its own memory for it."""
        connection = self._connection
        return connection.closed or connection.info.transaction_status is TransactionStatus.IDLE


class PsycopgSyncTxConnection(PsycopgSyncConnection):
    """The same for a ``psycopg.Connection``."""

    __slots__ = ()

    def __init__(self, tx: Any) -> None:
        given: object = tx
        if isinstance(given, psycopg.AsyncConnection):
            raise ConfigurationError(
                "tx: a psycopg.AsyncConnection is for Client; SyncClient takes a psycopg.Connection"
            )
        if not isinstance(given, psycopg.Connection):
            raise stranger(given, "a psycopg.Connection")
        _check(tx)
        super().__init__(tx, prepare=False)

    @property
    def replica(self) -> bool:
        """See :class:`TxConnection`."""
        return _is_replica(self._connection)

    @property
    def key(self) -> object:
        """See :class:`TxConnection`."""
        return self._connection


def _check(tx: psycopg.AsyncConnection[Any] | psycopg.Connection[Any]) -> None:
    if tx.closed:
        raise ConfigurationError("tx: the connection is closed")
    status = tx.info.transaction_status
    if status is TransactionStatus.INERROR:
        raise aborted()
    if status is TransactionStatus.IDLE and tx.autocommit:
        raise ConfigurationError(NO_TRANSACTION)


def _is_replica(connection: psycopg.AsyncConnection[Any] | psycopg.Connection[Any]) -> bool:
    return not connection.closed and connection.info.parameter_status("in_hot_standby") == "on"
