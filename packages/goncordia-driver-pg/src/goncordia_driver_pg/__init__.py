"""Goncordia's PostgreSQL driver, over asyncpg or psycopg 3.

Jobs can be enqueued inside your own transaction, of either library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goncordia_driver_pg.asyncpg_connections import AsyncpgTx
from goncordia_driver_pg.asyncpg_driver import AsyncpgDriver

if TYPE_CHECKING:
    from goncordia_driver_pg.psycopg_driver import PsycopgDriver

__all__ = ["AsyncpgDriver", "AsyncpgTx", "PsycopgDriver"]


def __getattr__(name: str) -> object:
    """Import psycopg's driver when it is asked for: psycopg may not be there."""
    if name != "PsycopgDriver":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from goncordia_driver_pg.psycopg_driver import (  # noqa: PLC0415  # as said
            PsycopgDriver,
        )
    except ImportError as error:
        raise ImportError(
            "PsycopgDriver needs psycopg 3 and psycopg_pool: install "
            "'goncordia-driver-pg[psycopg]', and 'psycopg[binary]' where there is no libpq"
        ) from error
    return PsycopgDriver
