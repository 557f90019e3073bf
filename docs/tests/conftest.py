"""Databases for the pages and examples that need a server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import psycopg
import pytest


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


@pytest.fixture
def provide(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], None]:
    """Sets the variables in which a page's programs find the servers that it names."""

    def provide(servers: str) -> None:
        for server in servers.split():
            database = request.getfixturevalue("database")
            if server == "pg":
                monkeypatch.setenv("DATABASE_URL", database)
            else:
                assert server == "pgbouncer"
                bouncer = urlsplit(request.getfixturevalue("pgbouncer_dsn"))
                path = urlsplit(database).path
                monkeypatch.setenv("PGBOUNCER_URL", bouncer._replace(path=path).geturl())

    return provide
