"""Fixtures that give the servers of tests: the kit's second pytest plugin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from goncordia_conformance.backends import Backend, find_backend
from goncordia_conformance.servers.pgbouncer import pgbouncer_backend
from goncordia_conformance.servers.postgres import PG, PG18
from goncordia_conformance.servers.redis import REDIS, REDIS8, VALKEY
from goncordia_conformance.servers.redis_cluster import REDIS_CLUSTER
from goncordia_conformance.servers.redis_sentinel import REDIS_SENTINEL

if TYPE_CHECKING:
    from goncordia_conformance.servers.schemas import Roles

__all__ = [
    "pg18_dsn",
    "pg18_schema",
    "pg_dsn",
    "pg_roles",
    "pg_schema",
    "pgbouncer_dsn",
    "redis8_url",
    "redis_cluster_url",
    "redis_prefix",
    "redis_sentinel_url",
    "redis_url",
    "valkey_url",
]


@pytest.fixture(scope="session")
def pg_dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of this process, on whichever PostgreSQL there is: the DSN of a superuser."""
    yield from _database(PG, request.config)


@pytest.fixture(scope="session")
def pg18_dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    """As ``pg_dsn``, on PostgreSQL 18."""
    yield from _database(PG18, request.config)


def _database(backend: Backend, config: pytest.Config) -> Iterator[str]:
    with find_backend(backend, config) as dsn:
        # Not before: it needs psycopg, which who tests another database need not have.
        from goncordia_conformance.servers.schemas import own_database

        with own_database(dsn) as own:
            yield own


@pytest.fixture(scope="session")
def pgbouncer_dsn(request: pytest.FixtureRequest, pg_dsn: str) -> Iterator[str]:
    """PgBouncer in transaction mode, before the database of ``pg_dsn``."""
    with find_backend(pgbouncer_backend(pg_dsn), request.config) as dsn:
        # It is shared with other processes, which have databases of their own.
        yield urlsplit(dsn)._replace(path=urlsplit(pg_dsn).path).geturl()


@pytest.fixture
def pg_schema(pg_dsn: str) -> Iterator[str]:
    """The name of a schema that is not there yet, and is dropped at the end."""
    from goncordia_conformance.servers.schemas import own_schema

    with own_schema(pg_dsn) as name:
        yield name


@pytest.fixture
def pg18_schema(pg18_dsn: str) -> Iterator[str]:
    """As ``pg_schema``, on PostgreSQL 18."""
    from goncordia_conformance.servers.schemas import own_schema

    with own_schema(pg18_dsn) as name:
        yield name


@pytest.fixture
def pg_roles(pg_dsn: str) -> Iterator[Roles]:
    """Three roles of few rights, and an empty schema that one of them owns."""
    from goncordia_conformance.servers.schemas import three_roles

    with three_roles(pg_dsn) as roles:
        yield roles


# ---------------------------------------------------------------- Redis


@pytest.fixture(scope="session")
def redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server of this process, whichever Redis or Valkey there is."""
    with find_backend(REDIS, request.config) as url:
        yield url


@pytest.fixture(scope="session")
def redis8_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """As ``redis_url``, of Redis 8."""
    with find_backend(REDIS8, request.config) as url:
        yield url


@pytest.fixture(scope="session")
def valkey_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """As ``redis_url``, of Valkey."""
    with find_backend(VALKEY, request.config) as url:
        yield url


@pytest.fixture(scope="session")
def redis_cluster_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A cluster of three nodes; all processes share it."""
    with find_backend(REDIS_CLUSTER, request.config) as url:
        yield url


@pytest.fixture(scope="session")
def redis_sentinel_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A primary and its replica, which a Sentinel knows; all processes share them."""
    with find_backend(REDIS_SENTINEL, request.config) as url:
        yield url


@pytest.fixture
def redis_prefix(redis_url: str) -> Iterator[str]:
    """A prefix that is not there yet, and below which all is removed at the end."""
    from goncordia_conformance.servers.prefixes import own_prefix

    with own_prefix(redis_url) as prefix:
        yield prefix
