"""Databases for the pages and examples that need a server."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from urllib.parse import urlsplit

import psycopg
import pytest

from goncordia_conformance.backends import Backend, find_backend
from goncordia_conformance.servers.containers import redis_container
from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.redis import RedisServer, find_here
from goncordia_conformance.servers.redis_cluster import RedisCluster
from goncordia_conformance.servers.redis_sentinel import RedisSentinel


@pytest.fixture
def database(pg_dsn: str) -> Iterator[str]:
    """The DSN of a new, empty PostgreSQL database."""
    name = f"docs_{os.urandom(6).hex()}"
    with psycopg.connect(pg_dsn, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield urlsplit(pg_dsn)._replace(path=f"/{name}").geturl()
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


# Pages use the prefix that everybody has, and set up whole servers: each has servers of its own.


@contextmanager
def _alone(kind: type[RedisServer | RedisCluster | RedisSentinel]) -> Generator[str, None, None]:
    with guarded(kind.create(find_here()).run) as url:
        yield url


_REDIS = {
    "redis": Backend(
        "redis",
        container=partial(redis_container, "redis", "8"),
        server=partial(_alone, RedisServer),
    ),
    "redis-cluster": Backend("redis-cluster", server=partial(_alone, RedisCluster)),
    "redis-sentinel": Backend("redis-sentinel", server=partial(_alone, RedisSentinel)),
}


@pytest.fixture
def redis_alone(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server for one test."""
    with find_backend(_REDIS["redis"], request.config, environ={}) as url:
        yield url


@pytest.fixture
def provide(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], None]]:
    """Sets the variables in which a page's programs find the servers that it names."""
    running = ExitStack()

    def provide(servers: str) -> None:
        for server in servers.split():
            if backend := _REDIS.get(server):
                url = running.enter_context(find_backend(backend, request.config, environ={}))
                monkeypatch.setenv("REDIS_URL", url)
                continue
            database = request.getfixturevalue("database")
            if server == "pg":
                monkeypatch.setenv("DATABASE_URL", database)
            else:
                assert server == "pgbouncer"
                bouncer = urlsplit(request.getfixturevalue("pgbouncer_dsn"))
                path = urlsplit(database).path
                monkeypatch.setenv("PGBOUNCER_URL", bouncer._replace(path=path).geturl())

    with running:
        yield provide
