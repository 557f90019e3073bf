"""Servers of the bench's own: PostgreSQL, for who names none, and what starts any."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import uuid4

from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.postgres import BENCH, PostgresServer, find_postgres
from goncordia_conformance.servers.process import NotHereError, Start

__all__ = ["ServerError", "own_server", "started"]

# Loaded but off, where it costs nothing; the case that counts statements turns it on for its
# database. Everything else is as the server comes, fsync too.
_STATEMENTS: Final = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "none",
}


class ServerError(Exception):
    """There is no server to be had; the text says what to do."""


@contextmanager
def started(make: Callable[[Path], Start], folder: Path, name: str, advice: str) -> Iterator[str]:
    """Start a server of our own; it does not outlive us.

    Args:
        make: finds the programs and gives what runs one of them with its data in this folder.
        folder: where its data goes, in a folder of its own: on the disk that is to be measured.
        name: what it is called, for messages.
        advice: what to do where there are no programs.

    Yields:
        Its URL.

    Raises:
        ServerError: there are no programs, or it did not start.
    """
    home = folder.resolve() / f"{name.lower()}-{uuid4().hex[:8]}"
    with ExitStack() as stack:
        try:
            url = stack.enter_context(guarded(make(home)))
        except NotHereError as error:
            raise ServerError(f"{error}: {advice}") from error
        except RuntimeError as error:
            raise ServerError(f"no {name} in {home}: {error}") from error
        yield url


def own_server(folder: Path) -> AbstractContextManager[str]:
    """A PostgreSQL server of our own, as it comes from its package; see :func:`started`."""

    def make(home: Path) -> Start:
        server = PostgresServer.create(find_postgres(), {**BENCH, **_STATEMENTS})
        return replace(server, home=home).run

    return started(make, folder, "PostgreSQL", "install one, or name a server by --dsn")
