"""Room on a Redis server for a test: a prefix of its own, below which all is removed at the end.

Needs redis-py, the kit's extra ``redis``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry
from redis.sentinel import Sentinel

__all__ = ["connect_redis", "own_prefix"]

STEP = 5_000
"""How many keys are looked at, and removed, at once."""


@contextmanager
def connect_redis(url: str) -> Generator[Any, None, None]:
    """A client of whoever has the data, to look inside with; its answers are bytes.

    Args:
        url: of a server, a cluster or Sentinels, as the fixtures give it.
    """
    with _client(url) as client:
        yield client


def _client(url: str) -> Any:  # redis-py's types say little
    parts = urlsplit(url)
    if parts.scheme == "redis+cluster":
        nodes = [
            ClusterNode(host, port)  # type: ignore[no-untyped-call]  # redis-py's is not typed
            for host, port in _addresses(parts.netloc)
        ]
        return RedisCluster(startup_nodes=nodes)
    if parts.scheme == "redis+sentinel":
        name, _, database = parts.path.strip("/").partition("/")
        sentinels: Any = Sentinel(_addresses(parts.netloc))  # type: ignore[no-untyped-call]  # as above
        return sentinels.master_for(name, db=int(database or 0))
    redis_class: Any = redis.Redis
    return redis_class.from_url(url, retry=Retry(NoBackoff(), 0))


def _addresses(netloc: str) -> list[tuple[str, int]]:
    pairs = [one.rpartition(":") for one in netloc.split(",")]
    return [(host, int(port)) for host, _, port in pairs]


@contextmanager
def own_prefix(url: str) -> Generator[str, None, None]:
    """A prefix that no other has; what the test made below it is removed at the end.

    Args:
        url: as the fixtures give it.
    """
    # What a pattern or a script would take for its own, so that nobody forgets to quote it.
    prefix = f"test[{os.urandom(6).hex()}]*?'\"\\é"
    try:
        yield prefix
    finally:
        with connect_redis(url) as client:
            pattern = "{" + re.sub(r"([][*?\\^-])", r"\\\1", prefix) + "}:*"
            found: list[bytes] = []
            for key in client.scan_iter(match=pattern, count=STEP):
                found.append(key)
                if len(found) == STEP:
                    client.unlink(*found)
                    found.clear()
            if found:
                client.unlink(*found)
