"""The PostgreSQL server that is measured: the user's, or one of the bench's own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

__all__ = ["Postgres", "ServerError", "asked", "dropped", "fresh", "own_server", "version"]

_START_SECONDS: Final = 60.0
_PLACES: Final = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
)
# Loaded but off, where it costs nothing; the case that counts statements turns it on for its
# database. Everything else is as the server comes, fsync too.
_STATEMENTS: Final = (
    "shared_preload_libraries=pg_stat_statements",
    "pg_stat_statements.track=none",
)


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
    """Start a server of our own, on a free port of the loopback, as it comes from its package.

    Args:
        folder: where its data goes: on the disk that is to be measured.

    Yields:
        Its URL.

    Raises:
        ServerError: there are no binaries, or it did not start.
    """
    binaries = _binaries()
    owner = _owner()
    data = Path(tempfile.mkdtemp(dir=folder, prefix="postgres-"))
    try:
        if owner is not None:
            os.chown(data, owner, -1)
        _initialized(binaries, data, owner)
        port = _free_port()
        with _running(binaries, data, port, owner):
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        shutil.rmtree(data, ignore_errors=True)


def _binaries() -> Path:
    on_path = shutil.which("postgres")
    if on_path:
        return Path(on_path).resolve().parent
    found = [
        path
        for pattern in _PLACES
        for path in Path("/").glob(pattern.removeprefix("/"))
        if (path / "postgres").exists()
    ]
    if not found:
        raise ServerError("no PostgreSQL on this machine: install one, or name one by --dsn")
    return max(found, key=lambda path: [int(part) for part in path.parts[-2] if part.isdigit()])


def _owner() -> int | None:
    """Whom the server runs as: it refuses to run as root."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return None
    import pwd  # noqa: PLC0415  # there is none on Windows

    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    raise ServerError("a server cannot run as root: run the bench as another user, or use --dsn")


def _initialized(binaries: Path, data: Path, owner: int | None) -> None:
    done = subprocess.run(
        [str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
         "--locale=C"],
        user=owner, cwd="/", capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ServerError(f"initdb failed: {done.stderr.strip()}")


@contextmanager
def _running(binaries: Path, data: Path, port: int, owner: int | None) -> Iterator[None]:
    settings = [
        f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories=", *_STATEMENTS
    ]  # fmt: skip
    words = [word for setting in settings for word in ("-c", setting)]
    log = data / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [binaries / "postgres", "-D", data, *words],
            user=owner, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        ready = [str(binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
        began = time.monotonic()
        while subprocess.run(ready, check=False).returncode:
            if process.poll() is not None or time.monotonic() - began > _START_SECONDS:
                raise ServerError(f"the server did not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGINT)  # ends the connections that are left; SIGTERM waits
        process.wait(_START_SECONDS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
