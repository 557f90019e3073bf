"""The kit over the PostgreSQL drivers: asyncpg and psycopg, PostgreSQL 15 and 18, PgBouncer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Literal
from uuid import UUID

import asyncpg
import psycopg
import pytest
import pytest_asyncio

from goncordia.driver import AnyDriver
from goncordia_conformance import (
    Borrowed,
    Busy,
    CommitsOf,
    CostOf,
    DriverConformance,
    MakeDriver,
    SetSchema,
    StoredArgs,
    SyncTransaction,
    Transaction,
    Unreachable,
)
from goncordia_conformance.servers.process import free_port
from goncordia_driver_pg import AsyncpgDriver

IMPATIENT = "?options=-c%20lock_timeout%3D100"
"""After a DSN: a connection that waits a tenth of a second for a lock."""


class PostgresConformance(DriverConformance):
    """What is the same for every library and server."""

    @pytest.fixture
    def dsn(self, pg_dsn: str) -> str:
        """Where the driver connects to."""
        return pg_dsn

    @pytest.fixture
    def schema(self, pg_schema: str) -> str:
        return pg_schema

    @pytest.fixture
    def direct(self, dsn: str) -> Generator[psycopg.Connection]:
        """A connection to look inside with."""
        with psycopg.connect(dsn, autocommit=True) as connection:
            yield connection

    # ---------------------------------------------------------------- looking inside

    @pytest.fixture
    def cost_of(self, direct: psycopg.Connection, schema: str) -> CostOf:
        """The pages that were looked at by the statements that name the schema."""
        direct.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public")
        # Its own lines only: others are at work on the server.
        pages = """
            SELECT coalesce(sum(shared_blks_hit + shared_blks_read), 0)::bigint
            FROM public.pg_stat_statements WHERE strpos(query, %s) > 0
            """

        def looked_at() -> int:
            ((count,),) = direct.execute(pages, (f'"{schema}"',)).fetchall()
            assert isinstance(count, int)
            return count

        async def cost_of(call: Callable[[], Awaitable[object]]) -> int:
            before = looked_at()
            await call()
            return looked_at() - before

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
    def locked(self, direct: psycopg.Connection, schema: str) -> Generator[None]:
        """Nobody may write jobs."""
        with direct.transaction():
            direct.execute(f'LOCK TABLE "{schema}".job IN EXCLUSIVE MODE'.encode())
            yield


class AsyncpgConformance(PostgresConformance):
    """What is the same for asyncpg on every server."""

    @pytest.fixture
    def make_driver(self, dsn: str, schema: str) -> MakeDriver:
        return partial(AsyncpgDriver, dsn, schema=schema)

    @pytest.fixture
    def transaction(self, dsn: str) -> Transaction:
        @asynccontextmanager
        async def transaction(_: AnyDriver) -> AsyncGenerator[asyncpg.Connection[Any], None]:
            connection = await asyncpg.connect(dsn)
            try:
                async with connection.transaction():
                    yield connection
            finally:
                await connection.close()

        return transaction

    @pytest_asyncio.fixture
    async def _idle(self, dsn: str) -> AsyncGenerator[asyncpg.Connection[Any], None]:
        connection = await asyncpg.connect(dsn)
        yield connection
        await connection.close()

    @pytest.fixture
    def idle_connection(self, _idle: asyncpg.Connection[Any]) -> asyncpg.Connection[Any]:
        return _idle

    @pytest_asyncio.fixture
    async def _lent(self, dsn: str) -> AsyncGenerator[asyncpg.Pool[Any], None]:
        async with asyncpg.create_pool(dsn, min_size=1, max_size=4) as pool:
            yield pool

    @pytest.fixture
    def borrowed(self, _lent: asyncpg.Pool[Any], schema: str) -> Borrowed:
        async def works() -> bool:
            return await _lent.fetchval("SELECT 1") == 1

        return AsyncpgDriver(_lent, schema=schema), works

    @pytest.fixture
    def busy(self, dsn: str, direct: psycopg.Connection, schema: str) -> Busy:
        @asynccontextmanager
        async def busy() -> AsyncGenerator[AsyncpgDriver, None]:
            with self.locked(direct, schema):
                yield AsyncpgDriver(dsn + IMPATIENT, schema=schema)

        return busy

    @pytest.fixture
    def unreachable(self) -> Unreachable:
        dsn = f"postgresql://postgres@127.0.0.1:{free_port()}/postgres"
        return partial(AsyncpgDriver, dsn)


class TestAsyncpg(AsyncpgConformance):
    """All of it, on whichever PostgreSQL there is."""
