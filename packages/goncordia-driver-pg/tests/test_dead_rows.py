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

BATCH = 50
ROUNDS = 60
SESSION = UUID(int=7)
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


async def _costs(queue: _Queue, operations: list[PostgresOperations]) -> list[int]:
    """What each exchange looked at, of pages."""
    costs: list[int] = []
    finishes: list[Finish] = []
    for number, each in enumerate(operations):
        request = FetchRequest(
            SESSION, number, BATCH, (QueueFetch("default", BATCH, {"k": BATCH}),)
        )
        before = await queue.pages()
        _, result = await transact_async(each.exchange(finishes, request), queue.side)
        costs.append(await queue.pages() - before)
        assert result is not None
        assert len(result.jobs) == BATCH
        finishes = [Finish(job.claim, "complete") for job in result.jobs if job.claim is not None]
    return costs


def _growth(costs: list[int]) -> int:
    """By how many pages the last exchanges cost more than the second: the first reads catalogs."""
    return min(costs[-5:]) - costs[1]


async def test_a_fetch_steps_past_them(queue: _Queue) -> None:
    operations = queue.operations()
    await queue.fill(operations, BATCH * ROUNDS)
    costs = await _costs(queue, [operations] * ROUNDS)
    assert _growth(costs) < 100, costs


async def test_one_that_remembers_nothing_steps_over_all_of_them(queue: _Queue) -> None:
    """What the marks are good for; and that the test above could fail."""
    await queue.fill(queue.operations(), BATCH * ROUNDS)
    costs = await _costs(queue, [queue.operations() for _ in range(ROUNDS)])
    assert _growth(costs) > 250, costs
