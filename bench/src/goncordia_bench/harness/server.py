"""A PostgreSQL server of the bench's own, for who names none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import uuid4

from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.postgres import BENCH, PostgresServer, find_postgres
from goncordia_conformance.servers.process import NotHereError

__all__ = ["ServerError", "own_server"]

# Loaded but off, where it costs nothing; the case that counts statements turns it on for its
# database. Everything else is as the server comes, fsync too.
_STATEMENTS: Final = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "none",
}


class ServerError(Exception):
    """There is no server to be had; the text says what to do."""


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
    with ExitStack() as stack:
        try:
            server = PostgresServer.create(find_postgres(), {**BENCH, **_STATEMENTS})
            dsn = stack.enter_context(guarded(replace(server, home=home).run))
        except NotHereError as error:
            raise ServerError(f"{error}: install one, or name a server by --dsn") from error
        except RuntimeError as error:
            raise ServerError(f"no PostgreSQL in {home}: {error}") from error
        yield dsn
