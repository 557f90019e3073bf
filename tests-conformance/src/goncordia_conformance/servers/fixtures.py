"""Fixtures that give the servers of tests: the kit's second pytest plugin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from goncordia_conformance.backends import Backend, find_backend
from goncordia_conformance.servers.pgbouncer import pgbouncer_backend
from goncordia_conformance.servers.postgres import PG, PG18

if TYPE_CHECKING:
    from goncordia_conformance.servers.schemas import Roles

__all__ = ["pg18_dsn", "pg18_schema", "pg_dsn", "pg_roles", "pg_schema", "pgbouncer_dsn"]


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
