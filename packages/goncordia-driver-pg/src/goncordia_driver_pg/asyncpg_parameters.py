"""How connections of asyncpg are made: from a DSN, or as a pool makes its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import asyncpg

from goncordia.driver.connections.forks import of_this_process
from goncordia.errors import ConfigurationError
from goncordia_driver_pg.addresses import Words, where
from goncordia_driver_pg.asyncpg_connections import AsyncpgLibrary, AsyncpgSide
from goncordia_driver_pg.dsn import checked_dsn
from goncordia_driver_pg.errors import unconnected

__all__ = ["WORDS", "Parameters"]

WORDS: Final = Words(
    library="asyncpg",
    known=frozenset(
        {
            *("host", "port", "dbname", "database", "user", "password", "passfile", "service"),
            *("sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslpassword"),
            *("sslnegotiation", "ssl_min_protocol_version", "ssl_max_protocol_version"),
            *("target_session_attrs", "krbsrvname", "gsslib"),
        }
    ),
    # What only libpq knows, and no server.
    unknown=frozenset(
        {
            *("channel_binding", "connect_timeout", "fallback_application_name", "gssdelegation"),
            *("gssencmode", "hostaddr", "keepalives", "keepalives_count", "keepalives_idle"),
            *("keepalives_interval", "load_balance_hosts", "require_auth", "requirepeer"),
            *("sslcertmode", "sslcompression", "sslcrldir", "sslsni"),
        }
    ),
    settings=True,
)

_NAME: Final = "application_name"
_COMMAND_TIMEOUT: Final = 60.0
"""Seconds for one statement on a connection of a pool of ours."""


_LIBRARY: Final = AsyncpgLibrary()


class Parameters:
    """What ``asyncpg.connect`` is called with.

    Args:
        args: by position.
        kwargs: by name.
        connect: what is called instead.
        field: what gave them, for messages.
        place: hosts and ports, for messages.
    """

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        connect: Callable[..., Awaitable[Any]] = asyncpg.connect,
        *,
        field: str = "pool",
        place: str = "the server",
    ) -> None:
        self._field = field
        self._place = place
        self._args = args
        self._kwargs = dict(kwargs)
        self._connect = connect

    @classmethod
    def of_dsn(cls, field: str, value: object, *, prepare: bool = True) -> Parameters:
        """Those of a DSN.

        Raises:
            ConfigurationError: it is none.
        """
        dsn = checked_dsn(field, value, WORDS)
        try:
            query = urlsplit(dsn).query
        except ValueError:
            raise ConfigurationError(
                f"{field}: asyncpg reads it with this Python's urllib, which takes an address in "
                "brackets only as the first host; put it first"
            ) from None
        kwargs: dict[str, Any] = {} if prepare else {"statement_cache_size": 0}
        if _NAME not in parse_qs(query):
            kwargs["server_settings"] = {_NAME: "goncordia"}
        return cls((dsn,), kwargs, field=field, place=where(dsn))

    @classmethod
    def of_pool(cls, pool: asyncpg.Pool[Any]) -> Parameters | None:
        """Those of a pool; None: this version of asyncpg keeps them elsewhere."""
        inside: Any = pool
        try:
            return cls(
                tuple(inside._connect_args),
                {
                    **inside._connect_kwargs,
                    "connection_class": inside._connection_class,
                    "record_class": inside._record_class,
                },
                getattr(inside, "_connect", asyncpg.connect),
            )
        except (AttributeError, TypeError):
            return None

    @property
    def prepares(self) -> bool:
        """Whether statements are prepared."""
        return bool(self._kwargs.get("statement_cache_size", 1))

    async def side(self) -> AsyncpgSide:
        """A connection for one task.

        Raises:
            ConfigurationError: asyncpg cannot do what is asked of it.
            DriverUnavailableError: the server cannot be reached.
        """
        return await self._connected(self._kwargs)

    async def pooled(self) -> AsyncpgSide:
        """As :meth:`side`, for a pool of ours: with a limit for each statement."""
        return await self._connected({"command_timeout": _COMMAND_TIMEOUT, **self._kwargs})

    async def _connected(self, kwargs: Mapping[str, Any]) -> AsyncpgSide:
        loop = asyncio.get_running_loop()
        try:
            made = await self._connect(*self._args, **kwargs, loop=loop)
            return AsyncpgSide(of_this_process(made))
        except asyncpg.ClientConfigurationError as error:
            raise ConfigurationError(f"{self._field}: {error}") from error
        except _LIBRARY.errors as error:
            if (ours := unconnected(_LIBRARY.failure(error, sent=False), self._place)) is None:
                raise
            raise ours from error
