"""The kit over the PostgreSQL drivers: asyncpg and psycopg, PostgreSQL 15 and 18, PgBouncer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, ClassVar, Literal
from uuid import UUID

import asyncpg
import psycopg
import pytest
import pytest_asyncio
from hypothesis import settings
from psycopg_pool import AsyncConnectionPool

from goncordia.driver import AnyDriver
from goncordia_conformance import (
    Borrowed,
    Breaks,
    Busy,
    CommitsOf,
    Conformance,
    CostOf,
    DriverConformance,
    MakeDriver,
    NetworkLink,
    SetSchema,
    StoredArgs,
    SyncTransaction,
    Transaction,
    Unreachable,
)
from goncordia_conformance.rules.capabilities import CapabilityTests, ExchangeTests
from goncordia_conformance.rules.claim import ClaimTests
from goncordia_conformance.rules.errors import ErrorTests
from goncordia_conformance.rules.groups import GroupTests
from goncordia_conformance.rules.machine import StateMachineTests
from goncordia_conformance.rules.migrations import MigrationTests
from goncordia_conformance.rules.order import OrderTests
from goncordia_conformance.rules.ownership import OwnershipTests
from goncordia_conformance.rules.payload import PayloadTests
from goncordia_conformance.rules.pool import PoolTests
from goncordia_conformance.rules.sessions import HeartbeaterTests
from goncordia_conformance.rules.sync import SyncTests
from goncordia_conformance.rules.time import SkewTests
from goncordia_conformance.rules.transactions import SyncTransactionTests, TransactionTests
from goncordia_conformance.rules.uniqueness import UniquenessTests
from goncordia_conformance.rules.wakeups import WakeupTests
from goncordia_conformance.servers.process import free_port
from goncordia_conformance.servers.schemas import own_schema
from goncordia_driver_pg import AsyncpgDriver
from goncordia_driver_pg.psycopg_driver import PsycopgDriver

FULL = os.environ.get("GONCORDIA_FULL") == "1"

EXAMPLES = 100 if FULL else 30
"""How long the state machine looks: every step of it goes to the server and back."""

MANY = 100_000 if FULL else 50_000
"""Rows beside which a fetch must stay flat; what grows is seen among half of them, too."""

KILLED = {"test_killed_pools_lose_nothing": "done with asyncpg, and with all in the long run"}

IMPATIENT = "?options=-c%20lock_timeout%3D100"
"""After a DSN: a connection that waits a tenth of a second for a lock."""


class Postgres(Conformance):
    """What is the same for every library."""

    @pytest.fixture
    def server(self, pg_dsn: str) -> str:
        """The server itself."""
        return pg_dsn

    @pytest.fixture
    def dsn(self, server: str) -> str:
        """Where the driver connects to."""
        return server

    @pytest.fixture
    def schema(self, server: str) -> Iterator[str]:
        with own_schema(server) as name:
            yield name

    @pytest.fixture
    def direct(self, server: str) -> Iterator[psycopg.Connection]:
        """A connection to look inside with."""
        with psycopg.connect(server, autocommit=True) as connection:
            yield connection

    @pytest.fixture
    def impatience(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Drivers that are made from now on do not wait long for an answer."""
        for name in ("asyncpg_parameters._COMMAND_TIMEOUT", "psycopg_connections.STATEMENT"):
            monkeypatch.setattr(f"goncordia_driver_pg.{name}", 0.3)
        for library in ("asyncpg", "psycopg"):
            monkeypatch.setattr(f"goncordia_driver_pg.{library}_connections._CLEAN_UP", 0.2)

    # ---------------------------------------------------------------- looking inside

    @pytest.fixture
    def cost_of(self, direct: psycopg.Connection, schema: str) -> CostOf:
        """The pages that statements in the database looked at: nobody else works there.

        What many changes at once leave behind is vacuum's to take away. How fetches bear it until
        then is tested with the driver.
        """
        direct.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        pages = """
            SELECT sum(shared_blks_hit + shared_blks_read)::bigint FROM pg_stat_statements
            WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND strpos(query, 'pg_stat_statements') = 0
            """

        forget = """
            SELECT pg_stat_statements_reset(0, oid, 0) FROM pg_database
            WHERE datname = current_database()
            """

        def looked_at() -> int:
            ((count,),) = direct.execute(pages).fetchall()
            assert isinstance(count, int)
            return count

        others = """
            SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)
            """

        async def cost_of(call: Callable[[], Awaitable[object]]) -> int:
            # What a test before this one has left, on a network that it froze, may be open still:
            # then vacuum takes nothing away.
            async with asyncio.timeout(90):
                while direct.execute(others).fetchall() != [(0,)]:  # noqa: ASYNC110  # nobody tells
                    await asyncio.sleep(0.05)
            direct.execute(f'VACUUM "{schema}".job'.encode())
            # A difference will not do: with many statements the oldest are forgotten.
            direct.execute(forget)
            await call()
            return looked_at()

        return cost_of

    @pytest.fixture
    def commits_of(self, direct: psycopg.Connection, schema: str) -> CommitsOf:
        """How many transactions wrote the rows that are there and were not before."""

        def writers() -> set[str]:
            query = f'SELECT DISTINCT xmin::text FROM "{schema}".job'
            return {str(xmin) for (xmin,) in direct.execute(query.encode())}

        async def commits_of(call: Callable[[], Awaitable[object]]) -> int:
            before = writers()
            await call()
            return len(writers() - before)

        return commits_of

    @pytest.fixture
    def stored_args(self, direct: psycopg.Connection, schema: str) -> StoredArgs:
        async def stored_args(job_id: UUID) -> object:
            query = f'SELECT args FROM "{schema}".jobs WHERE id = %s'
            ((args,),) = direct.execute(query.encode(), (job_id,)).fetchall()
            return args

        return stored_args

    @pytest.fixture
    def set_schema(self, direct: psycopg.Connection, schema: str) -> SetSchema:
        async def set_schema(to: Literal["older", "newer", "compatible"]) -> None:
            table = f'"{schema}".migration'
            if to == "older":
                direct.execute(f"DELETE FROM {table}".encode())
            else:
                query = f"INSERT INTO {table} VALUES (99, 'future', %s, now())"
                direct.execute(query.encode(), (99 if to == "newer" else 1,))

        return set_schema

    @contextmanager
    def locked(self, direct: psycopg.Connection, schema: str) -> Iterator[None]:
        """Nobody may write jobs."""
        with direct.transaction():
            direct.execute(f'LOCK TABLE "{schema}".job IN EXCLUSIVE MODE'.encode())
            yield


class Asyncpg(Postgres):
    """What is asyncpg's."""

    options: ClassVar[Mapping[str, Any]] = {}
    """How a user connects."""

    @pytest.fixture
    def make_driver(self, dsn: str, schema: str) -> MakeDriver:
        return partial(AsyncpgDriver, dsn, schema=schema)

    @pytest.fixture
    def transaction(self, dsn: str) -> Transaction:
        @asynccontextmanager
        async def transaction(_: AnyDriver) -> AsyncGenerator[asyncpg.Connection[Any], None]:
            connection = await asyncpg.connect(dsn, **self.options)
            try:
                async with connection.transaction():
                    yield connection
            finally:
                await connection.close()

        return transaction

    @pytest_asyncio.fixture
    async def _idle(self, dsn: str) -> AsyncGenerator[asyncpg.Connection[Any], None]:
        connection = await asyncpg.connect(dsn, **self.options)
        yield connection
        await connection.close()

    @pytest.fixture
    def idle_connection(self, _idle: asyncpg.Connection[Any]) -> asyncpg.Connection[Any]:
        return _idle

    @pytest_asyncio.fixture
    async def _lent(self, dsn: str) -> AsyncGenerator[asyncpg.Pool[Any], None]:
        async with asyncpg.create_pool(dsn, min_size=1, max_size=4, **self.options) as pool:
            yield pool

    @pytest.fixture
    def borrowed(self, _lent: asyncpg.Pool[Any], schema: str) -> Borrowed:
        async def works() -> bool:
            return bool(await _lent.fetchval("SELECT true"))

        return AsyncpgDriver(_lent, schema=schema), works

    @pytest.fixture
    def busy(self, server: str, direct: psycopg.Connection, schema: str) -> Busy:
        @asynccontextmanager
        async def busy() -> AsyncGenerator[AsyncpgDriver, None]:
            with self.locked(direct, schema):
                yield AsyncpgDriver(server + IMPATIENT, schema=schema)

        return busy

    @pytest.fixture
    def unreachable(self) -> Unreachable:
        dsn = f"postgresql://postgres@127.0.0.1:{free_port()}/postgres"
        return partial(AsyncpgDriver, dsn)

    @pytest.fixture
    def breaks(self, dsn: str, schema: str, impatience: None) -> Breaks:
        return partial(NetworkLink.of, dsn, partial(AsyncpgDriver, schema=schema), freezes=True)


class Psycopg(Postgres):
    """What is psycopg's."""

    @pytest.fixture
    def make_driver(self, dsn: str, schema: str) -> MakeDriver:
        return partial(PsycopgDriver, dsn, schema=schema)

    @pytest.fixture
    def transaction(self, dsn: str) -> Transaction:
        @asynccontextmanager
        async def transaction(_: AnyDriver) -> AsyncGenerator[psycopg.AsyncConnection, None]:
            async with (
                await psycopg.AsyncConnection.connect(dsn) as connection,
                connection.transaction(),
            ):
                yield connection

        return transaction

    @pytest_asyncio.fixture
    async def _idle(self, dsn: str) -> AsyncGenerator[psycopg.AsyncConnection, None]:
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
            yield connection

    @pytest.fixture
    def idle_connection(self, _idle: psycopg.AsyncConnection) -> psycopg.AsyncConnection:
        return _idle

    @pytest.fixture
    def sync_transaction(self, dsn: str) -> SyncTransaction:
        @contextmanager
        def transaction(_: AnyDriver) -> Iterator[psycopg.Connection]:
            with psycopg.connect(dsn) as connection, connection.transaction():
                yield connection

        return transaction

    @pytest.fixture
    def idle_sync_connection(self, dsn: str) -> Iterator[psycopg.Connection]:
        with psycopg.connect(dsn, autocommit=True) as connection:
            yield connection

    @pytest_asyncio.fixture
    async def _lent(self, dsn: str) -> AsyncGenerator[AsyncConnectionPool[Any], None]:
        async with AsyncConnectionPool(dsn, min_size=1, max_size=4, open=False) as pool:
            yield pool

    @pytest.fixture
    def borrowed(self, _lent: AsyncConnectionPool[Any], schema: str) -> Borrowed:
        async def works() -> bool:
            async with _lent.connection() as connection:
                cursor = await connection.execute("SELECT 1")
                return bool(await cursor.fetchone() == (1,))

        return PsycopgDriver(_lent, schema=schema), works

    @pytest.fixture
    def busy(self, server: str, direct: psycopg.Connection, schema: str) -> Busy:
        @asynccontextmanager
        async def busy() -> AsyncGenerator[PsycopgDriver, None]:
            with self.locked(direct, schema):
                yield PsycopgDriver(server + IMPATIENT, schema=schema)

        return busy

    @pytest.fixture
    def unreachable(self) -> Unreachable:
        return partial(PsycopgDriver, f"postgresql://postgres@127.0.0.1:{free_port()}/postgres")

    @pytest.fixture
    def breaks(self, dsn: str, schema: str, impatience: None) -> Breaks:
        return partial(NetworkLink.of, dsn, partial(PsycopgDriver, schema=schema), freezes=True)


class Postgres18(Postgres):
    """On another version."""

    @pytest.fixture
    def server(self, pg18_dsn: str) -> str:
        return pg18_dsn


class Bouncer(Asyncpg):
    """Through PgBouncer in transaction mode, but for who listens and beats."""

    options: ClassVar[Mapping[str, Any]] = {"statement_cache_size": 0}

    @pytest.fixture
    def dsn(self, pgbouncer_dsn: str) -> str:
        return pgbouncer_dsn

    @pytest.fixture
    def make_driver(self, dsn: str, server: str, schema: str) -> MakeDriver:
        return partial(AsyncpgDriver, dsn, schema=schema, side=server, prepare=False)

    @pytest.fixture
    def breaks(self, dsn: str, server: str, schema: str, impatience: None) -> Breaks:
        make = partial(AsyncpgDriver, schema=schema, side=server, prepare=False)
        return partial(NetworkLink.of, dsn, make, freezes=True)


class TestAsyncpg(Asyncpg, DriverConformance):
    """All of it, on whichever PostgreSQL there is."""

    machine_settings = settings(StateMachineTests.machine_settings, max_examples=EXAMPLES)
    many = MANY


# The rest of it all takes minutes, so for every change there is what may be different there.


class TestPsycopg(
    Psycopg,
    ClaimTests,
    HeartbeaterTests,
    SkewTests,
    PayloadTests,
    ErrorTests,
    OwnershipTests,
    MigrationTests,
    CapabilityTests,
    ExchangeTests,
    TransactionTests,
    SyncTransactionTests,
    WakeupTests,
    SyncTests,
    PoolTests,
):
    """What another library may change."""

    __test__ = not FULL
    not_applicable = KILLED


class TestAsyncpg18(
    Postgres18,
    Asyncpg,
    OrderTests,
    GroupTests,
    UniquenessTests,
    MigrationTests,
    WakeupTests,
):
    """What another version may change."""

    __test__ = not FULL


class TestPgBouncer(
    Bouncer,
    ClaimTests,
    HeartbeaterTests,
    ErrorTests,
    OwnershipTests,
    MigrationTests,
    ExchangeTests,
    TransactionTests,
    WakeupTests,
    SyncTests,
    PoolTests,
):
    """What somebody between us and the server may change."""

    __test__ = not FULL
    not_applicable: ClassVar[Mapping[str, str]] = {
        **KILLED,
        "test_nor_is_what_a_frozen_backend_did_not_apply": "done with each library by itself",
    }


class TestPsycopgWhole(Psycopg, DriverConformance):
    """All of it."""

    __test__ = FULL


class TestAsyncpg18Whole(Postgres18, Asyncpg, DriverConformance):
    """All of it."""

    __test__ = FULL


class TestPsycopg18Whole(Postgres18, Psycopg, DriverConformance):
    """All of it."""

    __test__ = FULL


class TestPgBouncerWhole(Bouncer, DriverConformance):
    """All of it."""

    __test__ = FULL
