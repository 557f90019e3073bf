"""How connections of asyncpg are made: from a DSN, or as a pool makes its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import asyncpg

from goncordia_driver_pg.asyncpg_connections import AsyncpgSide
from goncordia_driver_pg.dsn import checked_dsn

__all__ = ["Parameters"]

_NAME: Final = "application_name"
_COMMAND_TIMEOUT: Final = 60.0
"""Seconds for one statement on a connection of a pool of ours."""


class Parameters:
    """What ``asyncpg.connect`` is called with.

    Args:
        args: by position.
        kwargs: by name.
        connect: what is called instead.
    """

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        connect: Callable[..., Awaitable[Any]] = asyncpg.connect,
    ) -> None:
        self._args = args
        self._kwargs = dict(kwargs)
        self._connect = connect

    @classmethod
    def of_dsn(cls, field: str, value: object, *, prepare: bool = True) -> Parameters:
        """Those of a DSN.

        Raises:
            ConfigurationError: it is none.
        """
        dsn = checked_dsn(field, value)
        kwargs: dict[str, Any] = {} if prepare else {"statement_cache_size": 0}
        if _NAME not in parse_qs(urlsplit(dsn).query):
            kwargs["server_settings"] = {_NAME: "goncordia"}
        return cls((dsn,), kwargs)

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
        """A connection for one task."""
        loop = asyncio.get_running_loop()
        return AsyncpgSide(await self._connect(*self._args, **self._kwargs, loop=loop))

    async def pooled(self) -> AsyncpgSide:
        """A connection for a pool of ours: with a limit for each statement."""
        loop = asyncio.get_running_loop()
        kwargs = {"command_timeout": _COMMAND_TIMEOUT, **self._kwargs}
        return AsyncpgSide(await self._connect(*self._args, **kwargs, loop=loop))
