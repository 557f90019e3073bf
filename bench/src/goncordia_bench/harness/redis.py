"""The Redis server that is measured: one of the bench's own, which it may empty."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import redis

from goncordia_bench.harness.server import ServerError
from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.process import NotHereError
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


@contextmanager
def own_redis(folder: Path) -> Iterator[str]:
    """Start a server of our own; it does not outlive us.

    Args:
        folder: where its data goes: on the disk that is to be measured.

    Yields:
        Its URL.

    Raises:
        ServerError: there is no program, or it did not start.
    """
    home = folder.resolve() / f"redis-{uuid4().hex[:8]}"
    with ExitStack() as stack:
        try:
            server = RedisServer.create(find_redis(), _SETTINGS)
            url = stack.enter_context(guarded(replace(server, home=home).run))
        except NotHereError as error:
            raise ServerError(f"{error}: install one (apt-get install redis-server)") from error
        except RuntimeError as error:
            raise ServerError(f"no Redis in {home}: {error}") from error
        yield url
