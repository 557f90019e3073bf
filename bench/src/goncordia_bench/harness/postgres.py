"""The PostgreSQL server that is measured: the user's, or one of the bench's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.postgres import BENCH, PostgresServer, find_postgres
from goncordia_conformance.servers.process import NotHereError

__all__ = ["Postgres", "ServerError", "asked", "dropped", "fresh", "own_server", "version"]

# Loaded but off, where it costs nothing; the case that counts statements turns it on for its
# database. Everything else is as the server comes, fsync too.
_STATEMENTS: Final = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "none",
}
# What the user's own server was told that matters for speed; nothing, if it is one of ours.
_CHANGED: Final = """
    SELECT name, current_setting(name) FROM pg_settings
    WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers',
        'max_wal_size', 'wal_compression', 'commit_delay') AND setting <> boot_val
        AND NOT (name = 'shared_buffers' AND current_setting(name) = '128MB')
    ORDER BY name
    """


class ServerError(Exception):
    """There is no server to be had; the text says what to do."""


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


# ---------------------------------------------------------------- a server


@contextmanager
def own_server(folder: Path) -> Iterator[str]:
    """Start a server of our own, as it comes from its package; it does not outlive us.

    Args:
        folder: where its data goes: on the disk that is to be measured.

    Yields:
        Its URL.

    Raises:
        ServerError: there are no binaries, or it did not start.
    """
    home = folder.resolve() / f"postgres-{uuid4().hex[:8]}"
    try:
        server = replace(
            PostgresServer.create(find_postgres(), {**BENCH, **_STATEMENTS}), home=home
        )
        with guarded(server.run) as dsn:
            yield dsn
    except NotHereError as error:
        raise ServerError(f"{error}: install one, or name a server by --dsn") from error
    except RuntimeError as error:
        raise ServerError(f"no PostgreSQL in {home}: {error}") from error
