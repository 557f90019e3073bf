"""Room on a PostgreSQL server: a database for a process of tests, a schema and roles for a test.

A schema is much cheaper than a database: made, filled with tables and dropped again it takes a
tenth of the time that a copy of a template database does. But what the server counts, it often
counts by database, so processes do not share one. Needs psycopg, the kit's extra ``pg``.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import psycopg

__all__ = ["Roles", "own_database", "own_schema", "three_roles"]

PATIENCE = "20s"
"""How long a schema is waited for that a connection still uses when its test is over."""

PASSWORD = "goncordia"  # noqa: S105 - good for roles that live as long as a test


@contextmanager
def own_database(dsn: str) -> Generator[str, None, None]:
    """A new database on the server, dropped at the end; its DSN.

    Args:
        dsn: of the server's superuser.
    """
    name = f"test_{os.urandom(6).hex()}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        _do(connection, "CREATE DATABASE {name}", name=name)
    try:
        yield urlsplit(dsn)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            _do(connection, "DROP DATABASE {name} WITH (FORCE)", name=name)


@contextmanager
def own_schema(dsn: str) -> Generator[str, None, None]:
    """A name that no other schema has; what the test made under it is dropped at the end.

    Args:
        dsn: of the server's superuser.
    """
    name = f"test {os.urandom(6).hex()}"  # it has to be quoted, so that nobody forgets to
    try:
        yield name
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"SET lock_timeout = '{PATIENCE}'")
            _do(connection, "DROP SCHEMA IF EXISTS {schema} CASCADE", schema=name)


@dataclass(frozen=True)
class Roles:
    """Three users of one installation; two of them have no rights until they are granted.

    Attributes:
        schema: an empty schema; the migrator owns it.
        migrator: the DSN of the one who migrates, and may grant rights on what it made.
        worker: the DSN of the one who works.
        enqueuer: the DSN of the one who may only enqueue.
    """

    schema: str
    migrator: str
    worker: str
    enqueuer: str

    def grant(self, statements: str) -> None:
        """Run statements as the migrator.

        Args:
            statements: with ``{schema}``, ``{worker}`` and ``{enqueuer}`` in the places of names.
        """
        names = {
            "schema": self.schema,
            "worker": urlsplit(self.worker).username or "",
            "enqueuer": urlsplit(self.enqueuer).username or "",
        }
        with psycopg.connect(self.migrator, autocommit=True) as connection:
            _do(connection, statements, **names)


@contextmanager
def three_roles(dsn: str) -> Generator[Roles, None, None]:
    """Three roles and a schema for them; all is dropped at the end.

    Args:
        dsn: of the server's superuser.
    """
    mark = os.urandom(4).hex()
    names = [f"{role}_{mark}" for role in ("migrator", "worker", "enqueuer")]
    with own_schema(dsn) as schema, psycopg.connect(dsn, autocommit=True) as connection:
        for name in names:
            _do(connection, f"CREATE ROLE {{role}} LOGIN PASSWORD '{PASSWORD}'", role=name)
        try:
            statement = "CREATE SCHEMA {schema} AUTHORIZATION {role}"
            _do(connection, statement, schema=schema, role=names[0])
            yield Roles(schema, *(_as(dsn, name) for name in names))
        finally:
            for name in names:
                _do(connection, "DROP OWNED BY {role} CASCADE; DROP ROLE {role}", role=name)


def _do(connection: psycopg.Connection, statements: str, **names: str) -> None:
    """Run statements, with these names in their places, as quoted as they must be."""
    quoted = {word: f'"{name}"' for word, name in names.items()}
    connection.execute(statements.format_map(quoted).encode())


def _as(dsn: str, user: str) -> str:
    """The same server, for another user."""
    parts = urlsplit(dsn)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{user}:{PASSWORD}@{host}").geturl()
