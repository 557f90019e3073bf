"""What a transaction of asyncpg must be, and how operations run in it."""

from __future__ import annotations

from typing import Any

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from goncordia.errors import ConfigurationError
from goncordia_driver_pg.asyncpg_connections import AsyncpgConnection, AsyncpgTx
from goncordia_driver_pg.tx import NO_TRANSACTION, stranger

__all__ = ["AsyncpgTxConnection"]


class AsyncpgTxConnection(AsyncpgConnection):
    """The caller's connection, which is in a transaction.

    Args:
        tx: what the caller handed over.

    Raises:
        ConfigurationError: it is no connection of asyncpg, or in no transaction.
    """

    __slots__ = ("_tx",)

    def __init__(self, tx: AsyncpgTx) -> None:
        _check(tx)
        super().__init__(tx, plain=True)
        self._tx = tx

    @property
    def replica(self) -> bool:
        """See :class:`TxConnection`."""
        settings: Any = self._tx.get_settings()
        return getattr(settings, "in_hot_standby", "off") == "on"

    @property
    def key(self) -> object:
        """See :class:`TxConnection`."""
        return self._tx

    def is_over(self) -> bool:
        """See :class:`TxConnection`."""
        try:
            return self._tx.is_closed() or not self._tx.is_in_transaction()
        except asyncpg.InterfaceError:
            return True  # it was given back to its pool


def _check(tx: object) -> None:
    if not isinstance(tx, asyncpg.Connection | PoolConnectionProxy):
        raise stranger(tx, "an asyncpg.Connection, nor one of an asyncpg.Pool")
    try:
        closed, begun = tx.is_closed(), tx.is_in_transaction()
    except asyncpg.InterfaceError as error:
        raise ConfigurationError("tx: the connection was given back to its pool") from error
    if closed:
        raise ConfigurationError("tx: the connection is closed")
    if not begun:
        raise ConfigurationError(NO_TRANSACTION)
