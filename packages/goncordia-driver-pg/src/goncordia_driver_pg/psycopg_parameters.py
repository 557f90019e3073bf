"""How connections of psycopg are made: from a DSN, or as a pool makes its own."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Generator
from typing import Any, Final

import psycopg
import psycopg_pool
from psycopg.conninfo import conninfo_to_dict

from goncordia.driver.connections.forks import of_this_process
from goncordia.errors import ConfigurationError
from goncordia_driver_pg.addresses import Words, where
from goncordia_driver_pg.dsn import checked_dsn
from goncordia_driver_pg.errors import unconnected
from goncordia_driver_pg.psycopg_connections import PsycopgLibrary, PsycopgSide
from goncordia_driver_pg.psycopg_pools import SyncPool

__all__ = ["WORDS", "Parameters"]

WORDS: Final = Words(
    library="libpq",
    known=frozenset(option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()),
)

# libpq judges most values when it connects.
_WRONG_VALUE: Final = re.compile(r"(invalid (\w+ value: |integer value )|bad value for ).*")
_NAME: Final = "application_name"
_DEFAULT: Final = 5
_CONNECT_TIMEOUT: Final = 10
"""Seconds until a server that does not answer counts as away."""


_LIBRARY: Final = PsycopgLibrary()


class Parameters:
    """What ``psycopg.connect`` is called with.

    Args:
        conninfo: the DSN, or what gives it.
        kwargs: the rest, or what gives it.
        field: what gave them, for messages.
        place: hosts and ports, for messages.
    """

    def __init__(
        self, conninfo: Any, kwargs: Any, *, field: str = "pool", place: str = "the server"
    ) -> None:
        self._field = field
        self._place = place
        self._conninfo = conninfo
        self._kwargs = kwargs

    @classmethod
    def of_dsn(cls, field: str, value: object, *, prepare: bool = True) -> Parameters:
        """Those of a DSN.

        Raises:
            ConfigurationError: it is none, or libpq does not understand it.
        """
        dsn = checked_dsn(field, value, WORDS)
        try:
            said = conninfo_to_dict(dsn)
        except psycopg.Error as error:
            raise ConfigurationError(
                f"{field}: libpq does not understand it; a DSN is such as "
                "'postgresql://user@host/database'"
            ) from error
        kwargs: dict[str, Any] = {} if prepare else {"prepare_threshold": None}
        if _NAME not in said:
            kwargs[_NAME] = "goncordia"
        if "connect_timeout" not in said:
            kwargs["connect_timeout"] = _CONNECT_TIMEOUT
        return cls(dsn, kwargs, field=field, place=where(dsn))

    @classmethod
    def of_pool(cls, pool: psycopg_pool.AsyncConnectionPool[Any] | SyncPool) -> Parameters | None:
        """Those of a pool; None: this version of psycopg_pool keeps them elsewhere."""
        conninfo: Any = getattr(pool, "conninfo", None)
        return None if conninfo is None else cls(conninfo, getattr(pool, "kwargs", None))

    @property
    def prepares(self) -> bool:
        """Whether statements are prepared, as far as that is known before connecting."""
        if self._kwargs is None or callable(self._kwargs):
            return True
        return self._kwargs.get("prepare_threshold", _DEFAULT) is not None

    async def side(self) -> PsycopgSide:
        """A connection, for one task or for a pool of ours.

        Raises:
            ConfigurationError: libpq cannot do what is asked of it.
            DriverUnavailableError: the server cannot be reached.
        """
        conninfo = await _resolved(self._conninfo) or ""
        kwargs: dict[str, Any] = {**(await _resolved(self._kwargs) or {}), "autocommit": True}
        with self._told():
            made = await psycopg.AsyncConnection.connect(conninfo, **kwargs)
        return PsycopgSide(of_this_process(made))

    def sync_pool(self, size: int) -> SyncPool:
        """A synchronous pool of ours, after one connection: else nobody says why there is none.

        Raises:
            ConfigurationError: libpq cannot do what is asked of it.
            DriverUnavailableError: the server cannot be reached.
        """
        conninfo = _called(self._conninfo) or ""
        kwargs: dict[str, Any] = {**(_called(self._kwargs) or {}), "autocommit": True}
        with self._told():
            psycopg.connect(conninfo, **kwargs).close()
        return of_this_process(
            psycopg_pool.ConnectionPool(
                conninfo, kwargs=kwargs, min_size=0, max_size=size, open=True
            )
        )

    @contextlib.contextmanager
    def _told(self) -> Generator[None, None, None]:
        """Say what is wrong with the parameters, or that the server cannot be reached."""
        try:
            yield
        except _LIBRARY.errors as error:
            if (wrong := _WRONG_VALUE.search(str(error))) is not None:
                raise ConfigurationError(f"{self._field}: {wrong[0]}") from error
            if (ours := unconnected(_LIBRARY.failure(error, sent=False), self._place)) is None:
                raise
            raise ours from error


async def _resolved(value: Any) -> Any:
    value = value() if callable(value) else value
    return await value if inspect.isawaitable(value) else value


def _called(value: Any) -> Any:
    """As :func:`_resolved`, for synchronous code.

    Raises:
        ConfigurationError: it can be had on an event loop only.
    """
    if inspect.iscoroutinefunction(value):
        raise ConfigurationError(
            "pool: its parameters come from a coroutine, which SyncClient cannot await: give a DSN"
        )
    return value() if callable(value) else value
