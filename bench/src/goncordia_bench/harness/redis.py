"""The Redis server that is measured: one of the bench's own, which it may empty."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import redis

from goncordia_bench.harness.server import started
from goncordia_conformance.servers.process import Start
from goncordia_conformance.servers.redis import RedisServer, find_redis

__all__ = ["Redis", "own_redis"]

_SETTINGS: Final = {"save": '""', "appendonly": "no", "appendfsync": "everysec", "databases": "16"}
_POLL: Final = 0.01


class Redis:
    """The server.

    Args:
        url: of its database 0.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._client: Any = redis.Redis.from_url(url, decode_responses=True)

    def database(self, number: int) -> str:
        """The URL of another of its databases."""
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{number}"))

    def emptied(self, *, append: bool = False) -> None:
        """Let it begin anew.

        Args:
            append: write everything to a file that is pressed to the disk every second.
        """
        self._client.config_set("appendonly", "no")
        self._client.flushall()
        self._client.config_resetstat()
        if append:
            self._client.config_set("appendonly", "yes")
            while self._client.info("persistence")["aof_rewrite_in_progress"]:
                time.sleep(_POLL)

    def memory(self) -> int:
        """The bytes that it uses."""
        used: int = self._client.info("memory")["used_memory"]
        return used

    def script_seconds(self) -> float:
        """How long it spent in scripts since it was emptied."""
        found = self._client.info("commandstats").get("cmdstat_evalsha", {"usec": 0})
        return float(found["usec"]) / 1e6

    def setting(self, name: str) -> str:
        """What it is set to."""
        found: str = self._client.config_get(name)[name]
        return found

    def version(self) -> str:
        """Its name and version."""
        told = self._client.info("server")
        if "valkey_version" in told:
            return f"Valkey {told['valkey_version']}"
        return f"Redis {told['redis_version']}"

    def close(self) -> None:
        """Hang up."""
        self._client.close()


def own_redis(folder: Path) -> AbstractContextManager[str]:
    """A Redis server of our own; see :func:`~goncordia_bench.harness.server.started`."""

    def make(home: Path) -> Start:
        return replace(RedisServer.create(find_redis(), _SETTINGS), home=home).run

    return started(make, folder, "Redis", "install one (apt-get install redis-server)")
