"""Dead rows that no vacuum may take away, since a transaction is open: fetches step past them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import pytest

from goncordia.clock import SystemClock
from goncordia.driver import FetchRequest, Finish, NewJob, QueueFetch
from goncordia.ids import JobIds
from goncordia_driver_pg.asyncpg_connections import AsyncpgSide
from goncordia_sql import ParamStyle, transact_async
from goncordia_sql.postgres import PostgresDialect, PostgresOperations, migrations

JOBS = 20_000
LARGE, SMALL = 2_000, 10
SESSION = UUID(int=7)
FORGET = """
    SELECT pg_stat_statements_reset(0, oid, 0) FROM pg_database WHERE datname = current_database()
    """
PAGES = """
    SELECT coalesce(sum(shared_blks_hit + shared_blks_read), 0)::bigint FROM pg_stat_statements
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND strpos(query, 'pg_stat_statements') = 0
    """


class _Queue:
    """A queue of jobs in a schema, and somebody who never ends a transaction."""

    def __init__(self, connection: asyncpg.Connection, dialect: PostgresDialect) -> None:
        self.connection = connection
        self.side = AsyncpgSide(connection)
        self.dialect = dialect
        self.ids = JobIds(SystemClock(), random.Random(1).getrandbits)

    def operations(self) -> PostgresOperations:
        """Those of a process for which time stands still: no look from the head is due."""
        return PostgresOperations(self.dialect, lambda: 0.0)

    async def fill(self, operations: PostgresOperations, jobs: int) -> None:
        new = [NewJob(id=self.ids(), kind="k", args=b"{}") for _ in range(jobs)]
        await transact_async(operations.insert.insert_many(new), self.side)
        await transact_async(operations.sessions.session_open(SESSION, "w", 600.0), self.side)

    async def pages(self) -> int:
        pages: int = await self.connection.fetchval(PAGES)
        return pages


@pytest.fixture
async def queue(pg_dsn: str, pg_schema: str) -> AsyncIterator[_Queue]:
    connection = await asyncpg.connect(pg_dsn)
    idle = await asyncpg.connect(pg_dsn)
    try:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        dialect = PostgresDialect(ParamStyle.NUMBERED_DOLLAR, pg_schema)
        await connection.execute(migrations(dialect).script())
        await idle.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await idle.fetch(f"SELECT 1 FROM {dialect.job}")
        yield _Queue(connection, dialect)
    finally:
        await idle.close()
        await connection.close()


async def _exchange(queue: _Queue, operations: PostgresOperations, number: int, most: int) -> int:
    """Claim so many and complete them; what the claim looked at, of pages."""
    request = FetchRequest(SESSION, number, most, (QueueFetch("default", most, {"k": most}),))
    # From nothing each time: the server forgets old statements.
    await queue.connection.execute(FORGET)
    result = await transact_async(operations.claim(request), queue.side)
    cost = await queue.pages()
    assert len(result.jobs) == most
    finishes = [Finish(job.claim, "complete") for job in result.jobs if job.claim is not None]
    await transact_async(operations.finish.finish_many(finishes), queue.side)
    return cost


async def test_a_fetch_steps_past_them(queue: _Queue) -> None:
    operations = queue.operations()
    await queue.fill(operations, JOBS)
    await _exchange(queue, operations, 0, SMALL)
    first = await _exchange(queue, operations, 1, SMALL)
    for number in range(2, 11):
        await _exchange(queue, operations, number, LARGE)
    # The indexes of the ready jobs have 18,000 dead entries now. A fetch pays a few pages for a
    # tree that has grown; one that remembers nothing pays for all of them.
    last = await _exchange(queue, operations, 11, SMALL)
    forgetful = await _exchange(queue, queue.operations(), 12, SMALL)
    assert last < first + 100
    assert forgetful > first + 500
