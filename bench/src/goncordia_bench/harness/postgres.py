"""Databases on the PostgreSQL server that is measured."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

__all__ = ["Postgres", "asked", "dropped", "fresh", "version"]

# What the user's own server was told that matters for speed; nothing, if it is one of ours.
_CHANGED: Final = """
    SELECT name, current_setting(name) FROM pg_settings
    WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers',
        'max_wal_size', 'wal_compression', 'commit_delay') AND setting <> boot_val
        AND NOT (name = 'shared_buffers' AND current_setting(name) = '128MB')
    ORDER BY name
    """


@dataclass(frozen=True, slots=True)
class Postgres:
    """A server, and where on it the bench may make databases.

    Attributes:
        dsn: a URL of a database that is there, of a role that may create databases.
        prefix: of the names of this run's databases.
    """

    dsn: str
    prefix: str

    def database(self, name: str) -> str:
        """The URL of another database of the server."""
        return urlunsplit(urlsplit(self.dsn)._replace(path=f"/{name}"))


# ---------------------------------------------------------------- databases


@asynccontextmanager
async def fresh(postgres: Postgres, name: str = "") -> AsyncIterator[str]:
    """The URL of an empty database, which is dropped in the end.

    Args:
        postgres: the server.
        name: given if the database is to stay until the run is over: not dropped here.
    """
    database = f"{postgres.prefix}_{name or uuid4().hex[:12]}"
    connection = await asyncpg.connect(postgres.dsn)
    try:
        await connection.execute(f'CREATE DATABASE "{database}"')
        try:
            yield postgres.database(database)
        finally:
            if not name:
                await connection.execute(f'DROP DATABASE "{database}" WITH (FORCE)')
    finally:
        await connection.close()


async def dropped(postgres: Postgres) -> None:
    """Drop all databases of this run."""
    connection = await asyncpg.connect(postgres.dsn)
    try:
        like = postgres.prefix.replace("_", r"\_") + "%"
        rows = await connection.fetch("SELECT datname FROM pg_database WHERE datname LIKE $1", like)
        for (database,) in rows:
            await connection.execute(f'DROP DATABASE "{database}" WITH (FORCE)')
    finally:
        await connection.close()


async def version(dsn: str) -> str:
    """The server's version, with whatever it does not do as it comes."""
    connection = await asyncpg.connect(dsn)
    try:
        number: str = await connection.fetchval("SHOW server_version")
        changed = await connection.fetch(_CHANGED)
    finally:
        await connection.close()
    return ", ".join([number.split(maxsplit=1)[0], *(f"{name}={value}" for name, value in changed)])


async def asked(dsn: str, query: str, *args: Any) -> Any:
    """The first value of the first row."""
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query, *args)
    finally:
        await connection.close()
