"""Reading a client that was passed in: only how it connects. Nothing runs over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import redis
import redis.asyncio
import redis.asyncio.client
import redis.asyncio.sentinel
import redis.client
import redis.sentinel
from redis.asyncio import connection as asynchronous

from goncordia.errors import ConfigurationError
from goncordia_driver_redis.clients.parameters import (
    ANSWER,
    CONNECT,
    Address,
    AnyAddress,
    Parameters,
    carried,
)
from goncordia_driver_redis.clients.places import ClusterPlace, FixedPlace, Place, SentinelPlace

__all__ = ["AnyClient", "AsyncClient", "Given", "SyncClient", "place_of"]

AsyncClient: TypeAlias = "redis.asyncio.Redis | redis.asyncio.RedisCluster"
SyncClient: TypeAlias = "redis.Redis | redis.RedisCluster"
AnyClient: TypeAlias = "AsyncClient | SyncClient"

_RIGHT: Final = (
    "a URL such as 'redis://localhost:6379/0', a redis.asyncio.Redis (of Sentinel.master_for, too) "
    "or a redis.asyncio.RedisCluster"
)
_KNOWN: Final[frozenset[type[Any]]] = frozenset(
    {
        asynchronous.Connection,
        asynchronous.SSLConnection,
        asynchronous.UnixDomainSocketConnection,
        redis.asyncio.sentinel.SentinelManagedConnection,
        redis.asyncio.sentinel.SentinelManagedSSLConnection,
        redis.Connection,
        redis.SSLConnection,
        redis.UnixDomainSocketConnection,
        redis.sentinel.SentinelManagedConnection,
        redis.sentinel.SentinelManagedSSLConnection,
    }
)


class Given(NamedTuple):
    """What a client says.

    Attributes:
        place: where the primary is.
        synchronous: it is a client for synchronous code.
    """

    place: Place
    synchronous: bool


def place_of(field: str, client: object, key: bytes) -> Given:
    """Where a client's primary is, and how to connect to it.

    Args:
        field: for messages.
        client: what was passed in.
        key: a key of the installation.

    Raises:
        ConfigurationError: it is no client, or one on which nothing can be written.
    """
    if isinstance(client, redis.asyncio.RedisCluster | redis.RedisCluster):
        return Given(_of_cluster(client, key), isinstance(client, redis.RedisCluster))
    if not isinstance(client, redis.asyncio.Redis | redis.Redis):
        raise ConfigurationError(f"{field}: {_named(client)} is not {_RIGHT}")
    pool: Any = client.connection_pool
    if isinstance(client, redis.client.Pipeline | redis.asyncio.client.Pipeline):
        raise ConfigurationError(
            f"{field}: it is a pipeline; the driver takes the client that it is of"
        )
    if isinstance(
        pool,
        redis.asyncio.sentinel.SentinelConnectionPool | redis.sentinel.SentinelConnectionPool,
    ):
        return Given(_of_sentinels(field, pool), isinstance(client, redis.Redis))
    return Given(FixedPlace(_of_pool(pool)), isinstance(client, redis.Redis))


def _named(client: object) -> str:
    kind = type(client)
    return f"{kind.__module__}.{kind.__qualname__}" if "." in kind.__module__ else kind.__qualname__


def _of_pool(pool: Any) -> Parameters:
    options: Mapping[str, Any] = pool.connection_kwargs
    return _parameters(options, _address(options), pool.connection_class)


def _address(options: Mapping[str, Any]) -> AnyAddress:
    path = options.get("path")
    if path is not None:
        return str(path)
    return Address(str(options.get("host") or "localhost"), int(options.get("port") or 6379))


def _parameters(
    options: Mapping[str, Any], address: AnyAddress, connection_class: type[Any]
) -> Parameters:
    own = connection_class not in _KNOWN
    awaits = issubclass(connection_class, asynchronous.AbstractConnection)
    return Parameters(
        address,
        tls=issubclass(connection_class, asynchronous.SSLConnection | redis.SSLConnection),
        options=carried(options),
        connect=float(options.get("socket_connect_timeout") or CONNECT),
        answer=float(options.get("socket_timeout") or ANSWER),
        own_class=connection_class if own and awaits else None,
        own_sync_class=connection_class if own and not awaits else None,
    )


def _of_sentinels(field: str, pool: Any) -> SentinelPlace:
    if not pool.is_master:
        raise ConfigurationError(
            f"{field}: it is for replicas, where nothing can be written; use "
            f"Sentinel.master_for({pool.service_name!r})"
        )
    options: Mapping[str, Any] = pool.connection_kwargs
    sentinels = [_of_pool(each.connection_pool) for each in pool.sentinel_manager.sentinels]
    # The address is the Sentinels' to say.
    parameters = _parameters(options, sentinels[0].address, pool.connection_class)
    return SentinelPlace(parameters, sentinels, str(pool.service_name))


def _of_cluster(client: Any, key: bytes) -> ClusterPlace:
    manager: Any = client.nodes_manager
    options: Mapping[str, Any] = manager.connection_kwargs
    nodes = [Address(str(node.host), int(node.port)) for node in manager.startup_nodes.values()]
    tls = bool(options.get("ssl")) or issubclass(
        options.get("connection_class", asynchronous.Connection),
        asynchronous.SSLConnection | redis.SSLConnection,
    )
    chosen = asynchronous.SSLConnection if tls else asynchronous.Connection
    parameters = _parameters(options, nodes[0], chosen)
    return ClusterPlace(parameters, nodes, key, manager.address_remap)
