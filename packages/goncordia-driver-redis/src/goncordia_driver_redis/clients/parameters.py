"""How to connect to one server: what both of redis-py's flavours of a connection are made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import redis
from redis.asyncio import connection as asynchronous

__all__ = ["ANSWER", "CONNECT", "Address", "Parameters", "carried"]

CONNECT: Final = 5.0
"""Seconds for connecting, where the client that was passed in does not say."""
ANSWER: Final = 10.0
"""Seconds for an answer, where the client that was passed in does not say."""

_CARRIED: Final = frozenset(
    {
        "db",
        "username",
        "password",
        "credential_provider",
        "client_name",
        "protocol",
        "socket_keepalive",
        "socket_keepalive_options",
        "socket_type",
        "lib_name",
        "lib_version",
        "driver_info",
    }
)
"""Of what a client's connections are made with, besides ``ssl_…``: who it is, not how it talks.

Its retries, decoding, health checks and notifications are left out: a call that may have been done
is never repeated below us, and our answers are bytes.
"""


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


AnyAddress: TypeAlias = Address | str
"""``str``: the path of a Unix socket."""


def carried(options: Mapping[str, Any]) -> dict[str, Any]:
    """Of a client's options, those that our connections are made with."""
    return {
        name: value
        for name, value in options.items()
        if name in _CARRIED or name.startswith("ssl_")
    }


class Parameters(NamedTuple):
    """How to connect to a server.

    Attributes:
        address: where it listens.
        tls: over TLS.
        options: for redis-py's connections.
        connect: seconds for connecting.
        answer: seconds for an answer.
        own_class: a class of the caller's for asynchronous connections; there is no synchronous
            twin of it.
        own_sync_class: the same for synchronous ones.
    """

    address: AnyAddress
    tls: bool = False
    options: Mapping[str, Any] = {}
    connect: float = CONNECT
    answer: float = ANSWER
    own_class: type[Any] | None = None
    own_sync_class: type[Any] | None = None

    def at(self, address: AnyAddress) -> Parameters:
        """The same for another server."""
        return self._replace(address=address)

    @property
    def is_synchronous(self) -> bool:
        """Whether synchronous connections can be made."""
        return self.own_class is None or self.own_sync_class is not None

    def speaking(self, protocol: int) -> Parameters:
        """The same in another version of the protocol."""
        return self._replace(options={**self.options, "protocol": protocol})

    def asynchronous(self) -> Any:
        """A connection of ``redis.asyncio``, not connected; its users bound their waits."""
        options = {**self._options(), "socket_timeout": None}
        if self.own_class is not None:
            return self.own_class(**options)
        kind: Any = asynchronous.SSLConnection if self.tls else asynchronous.Connection
        if isinstance(self.address, str):
            kind = asynchronous.UnixDomainSocketConnection
        return kind(**options)

    def synchronous(self, answer: float | None = None) -> Any:
        """A connection of ``redis``, not connected; its socket bounds every wait."""
        options = {**self._options(), "socket_timeout": answer or self.answer}
        if self.own_sync_class is not None:
            return self.own_sync_class(**options)
        kind: Any = redis.SSLConnection if self.tls else redis.Connection
        if isinstance(self.address, str):
            kind = redis.UnixDomainSocketConnection
        return kind(**options)

    def _options(self) -> dict[str, Any]:
        where = (
            {"path": self.address}
            if isinstance(self.address, str)
            else {"host": self.address.host, "port": self.address.port}
        )
        options = {**self.options, **where, "socket_connect_timeout": self.connect}
        if options.get("password") and not options.get("username"):
            # Its name matters where it needs no password: RESP2 refuses one alone, RESP3 does not.
            options["username"] = "default"
        return options
