"""PostgreSQL under load while the network fails, the server crashes and workers are killed.

Afterwards the ledger must balance: every job that was enqueued is completed, no pool has stopped,
and where no session was lost no job has run twice.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeAlias

import psycopg
import pytest

from goncordia.driver import AnyDriver
from goncordia_conformance.backends import needed
from goncordia_conformance.ledger import (
    Ledger,
    outlive_a_freeze,
    outlive_workers,
)
from goncordia_conformance.ledger import endure as endure_rounds
from goncordia_conformance.proxy import ChaosProxy, Direction
from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.postgres import (
    PG_VERSION,
    Binaries,
    PostgresServer,
    find_postgres,
)
from goncordia_conformance.servers.process import NotHereError
from goncordia_conformance.servers.schemas import own_schema
from goncordia_driver_pg import AsyncpgDriver
from goncordia_driver_pg.psycopg_driver import PsycopgDriver

FULL = os.environ.get("GONCORDIA_FULL") == "1"
ROUNDS = 20 if FULL else 3
"""How often each trouble comes."""

Library: TypeAlias = Callable[..., AnyDriver]
LIBRARIES: list[Library] = [AsyncpgDriver, PsycopgDriver]
both = pytest.mark.parametrize("library", LIBRARIES)
one_or_both = pytest.mark.parametrize("library", LIBRARIES if FULL else LIBRARIES[:1])
either = pytest.mark.parametrize("library", LIBRARIES if FULL else LIBRARIES[1:])
only_full = pytest.mark.skipif(not FULL, reason="GONCORDIA_FULL is not set: it takes long")

WAYS: tuple[Direction | None, ...] = ("up", "down", None)

pytestmark = pytest.mark.timeout(600 if FULL else 180)


def find_binaries() -> Binaries:
    try:
        return find_postgres(PG_VERSION)
    except NotHereError:
        return find_postgres()


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server of our own, since it is crashed: no container, and so not always every version."""
    made = PostgresServer.create(needed("pg", request.config, find_binaries))
    with guarded(made.run):
        yield made


@pytest.fixture
def schema(server: PostgresServer) -> Iterator[str]:
    with own_schema(server.dsn) as name:
        yield name


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[ChaosProxy]:
    with ChaosProxy.of(server.dsn) as proxy:
        yield proxy


@asynccontextmanager
async def open_ledger(server: PostgresServer, schema: str) -> AsyncIterator[Ledger]:
    """A ledger that sees the server itself."""
    async with AsyncpgDriver(server.dsn, schema=schema, timeout=5) as driver:
        await driver.migrate()
        yield Ledger(driver)


endure = partial(endure_rounds, rounds=ROUNDS)


# ---------------------------------------------------------------- the network


@both
async def test_cut_connections(
    library: Library, server: PostgresServer, schema: str, proxy: ChaosProxy
) -> None:
    async def cut(number: int) -> None:
        # At once, or after a time in which requests arrive and answers do not.
        if number % 2:
            proxy.freeze("down")
            await asyncio.sleep(0.1)
        proxy.cut()
        proxy.thaw()

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, proxy.before(server.dsn), schema=schema, timeout=5)
        await endure(ledger, make_driver, cut)
    assert proxy.accepted > 4 * ROUNDS


@only_full
@both
async def test_cut_directions(
    library: Library, server: PostgresServer, schema: str, proxy: ChaosProxy
) -> None:
    async def cut(number: int) -> None:
        proxy.cut("up" if number % 2 else "down")

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, proxy.before(server.dsn), schema=schema, timeout=5)
        await endure(ledger, make_driver, cut)


@one_or_both
async def test_frozen_and_slow_connections(
    library: Library, server: PostgresServer, schema: str, proxy: ChaosProxy
) -> None:
    async def freeze(number: int) -> None:
        proxy.freeze(WAYS[number % 3])
        await asyncio.sleep(1.0)
        proxy.thaw()
        proxy.delay(0.05, "down" if number % 2 else "up")

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, proxy.before(server.dsn), schema=schema, timeout=5)
        await endure(ledger, make_driver, freeze)


@only_full
@both
async def test_a_server_that_cannot_be_reached(
    library: Library, server: PostgresServer, schema: str, proxy: ChaosProxy
) -> None:
    async def part(_: int) -> None:
        proxy.refuse()
        proxy.cut()
        await asyncio.sleep(1.0)
        proxy.admit()

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, proxy.before(server.dsn), schema=schema, timeout=5)
        await endure(ledger, make_driver, part)


@one_or_both
async def test_a_pool_that_is_frozen_for_longer_than_its_lease(
    library: Library, server: PostgresServer, schema: str, proxy: ChaosProxy
) -> None:
    async with open_ledger(server, schema) as ledger:
        frozen_driver = partial(library, proxy.before(server.dsn), schema=schema, timeout=5)
        other_driver = partial(library, server.dsn, schema=schema)
        await outlive_a_freeze(ledger, frozen_driver, other_driver, proxy, rounds=5 if FULL else 1)


# ---------------------------------------------------------------- the server


@one_or_both
async def test_a_server_that_crashes(library: Library, server: PostgresServer, schema: str) -> None:
    async def crash(_: int) -> None:
        await asyncio.to_thread(server.stop, "immediate")
        await asyncio.to_thread(server.start)

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, server.dsn, schema=schema, timeout=5)
        await endure(ledger, make_driver, crash, calm=1.0)


@only_full
@both
async def test_a_server_that_is_restarted(
    library: Library, server: PostgresServer, schema: str
) -> None:
    async def restart(_: int) -> None:
        await asyncio.to_thread(server.stop, "fast")
        await asyncio.to_thread(server.start)

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, server.dsn, schema=schema, timeout=5)
        await endure(ledger, make_driver, restart, calm=1.0)


@either
async def test_terminated_backends(library: Library, server: PostgresServer, schema: str) -> None:
    query = """
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE usename = 'postgres' AND pid <> pg_backend_pid()
        """

    async def terminate(_: int) -> None:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(query)

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, server.dsn, schema=schema, timeout=5)
        await endure(ledger, make_driver, terminate)


@only_full  # connecting has its time-out, too: it rests on the machine's speed
@both
async def test_locks_time_outs_and_a_pool_that_is_too_small(
    library: Library, server: PostgresServer, schema: str
) -> None:
    async def lock(_: int) -> None:
        async with await psycopg.AsyncConnection.connect(server.dsn) as connection:
            query = f'LOCK TABLE "{schema}".job IN ACCESS EXCLUSIVE MODE'
            await connection.execute(query.encode())
            await asyncio.sleep(1.5)

    options = "options=-c%20lock_timeout%3D800%20-c%20statement_timeout%3D1000"
    dsn = f"{server.dsn}{'&' if '?' in server.dsn else '?'}{options}"
    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, dsn, schema=schema, pool_size=1, timeout=1)
        await endure(ledger, make_driver, lock)


# ---------------------------------------------------------------- the workers


@one_or_both
async def test_killed_workers_and_cut_connections(
    library: Library, server: PostgresServer, schema: str, proxy: ChaosProxy
) -> None:
    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, proxy.before(server.dsn), schema=schema, timeout=5)
        await outlive_workers(ledger, make_driver, proxy, rounds=10 if FULL else 2)
