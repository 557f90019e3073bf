"""What a fetch costs on PostgreSQL behind millions of jobs of each kind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from statistics import mean, median
from typing import Any, Final
from uuid import UUID, uuid4

import asyncpg

from goncordia import Client, WorkerPool
from goncordia.driver import BaseExecutor, FetchRequest, Finish, QueueFetch
from goncordia_bench.cases.postgres.common import levelled
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.harness.postgres import fresh
from goncordia_bench.ours.loop import run
from goncordia_bench.ours.postgres import driver_of, migrated
from goncordia_bench.payload import QUEUE, Email, emails, registry_of
from goncordia_bench.probes.statements import StatementCounter
from goncordia_bench.systems import OURS

__all__ = ["CASE"]

_FEW: Final = 1_000
_AT_ONCE: Final = 20
_HOUR: Final = 3600.0
_COLUMNS: Final = """
    SELECT attname FROM pg_attribute
    WHERE attrelid = 'goncordia.job'::regclass AND attnum > 0 AND NOT attisdropped
      AND attgenerated = '' AND attname NOT IN ('id', 'run_at')
    """


async def _copied(connection: asyncpg.Connection, job: UUID, count: int, series: int) -> None:
    """Copies of a job as it is, each due a microsecond after the one before."""
    columns = ", ".join(f'"{row[0]}"' for row in await connection.fetch(_COLUMNS))
    await connection.execute(
        f"""
        INSERT INTO goncordia.job (id, run_at, {columns})
        SELECT lpad(to_hex($2::bigint * 1000000000 + i), 32, '0')::uuid,
            run_at - make_interval(secs => ($3::bigint - i) * 1e-6), {columns}
        FROM goncordia.job, generate_series(1, $3::bigint) AS i WHERE id = $1
        """,
        job,
        series,
        count,
        timeout=None,
    )


async def _one_of_each(client: Client[Any], driver: Any) -> list[UUID]:
    """A job that is completed, one for later, one whose group is full, one that is due."""
    registry = registry_of()
    done = await client.enqueue(next(emails(1)))
    async with WorkerPool(driver, registry) as pool:
        await pool.drain()
    args = next(emails(1))
    # The first is claimed and stays so; the second is parked.
    await client.enqueue(args, concurrency_key="full", concurrency_limit=1, priority=5)
    full = await client.enqueue(args, concurrency_key="full", concurrency_limit=1, priority=5)
    executor, session = driver.executor(), uuid4()
    await executor.session_open(session, "bench", 1000 * _HOUR)
    await _fetched(executor, session, 1)
    await _fetched(executor, session, 2)
    later = await client.enqueue(args, priority=10, delay=1000 * _HOUR)
    due = await client.enqueue(args)
    return [done.id, later.id, full.id, due.id]


async def _fetched(executor: BaseExecutor, session: UUID, number: int) -> Sequence[Any]:
    queues = (QueueFetch(QUEUE, _AT_ONCE, {Email.kind: _AT_ONCE}),)
    result = await executor.fetch(FetchRequest(session, number, _AT_ONCE, queues, "bench"))
    return result.jobs


async def _built(dsn: str, each: int, due: int) -> None:
    """So many of each kind that no fetch may look at, and so many that are due."""
    await migrated(dsn)
    connection = await asyncpg.connect(dsn)
    try:
        async with driver_of(dsn) as driver:
            jobs = await _one_of_each(Client(driver), driver)
        for series, (job, count) in enumerate(zip(jobs, (each, each, each, due), strict=True)):
            await _copied(connection, job, count, series + 1)
        # What the disk takes to commit would hide what the fetch costs.
        name = await connection.fetchval("SELECT quote_ident(current_database())")
        await connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        await StatementCounter.of(connection)
    finally:
        await connection.close()
    await levelled(dsn)


def _fetches(setting: Setting) -> Figures:
    async def main() -> Figures:
        many = setting.size(1_000_000, 2_000)
        built = setting.shared / "postgres-backlog"
        async with AsyncExitStack() as stack:
            kinds = (("few", 0, _FEW), ("many", many, many))
            dsns = []
            for name, each, due in kinds:
                dsn = setting.postgres.database(f"{setting.postgres.prefix}_backlog_{name}")
                if not built.exists():
                    await stack.enter_async_context(fresh(setting.postgres, f"backlog_{name}"))
                    await _built(dsn, each, due)
                dsns.append(dsn)
            built.touch()
            return await _measured(stack, dsns, setting.size(400, 10))

    return run(main())


async def _measured(stack: AsyncExitStack, dsns: Sequence[str], times: int) -> Figures:
    """Fetches from each in turn; what was claimed is given back."""
    executors: list[BaseExecutor] = []
    counters: list[StatementCounter] = []
    session = uuid4()
    for dsn in dsns:
        driver = await stack.enter_async_context(driver_of(dsn))
        executors.append(driver.executor())
        await executors[-1].session_open(session, "bench", 10 * _HOUR)
        connection = await asyncpg.connect(dsn)
        stack.push_async_callback(connection.close)
        counters.append(StatementCounter(connection))
    seconds: list[list[float]] = [[] for _ in dsns]
    pages: list[list[int]] = [[] for _ in dsns]
    for number in range(1, times + 1):
        for which, executor in enumerate(executors):
            before = await counters[which].pages()
            started = time.perf_counter()
            jobs = await _fetched(executor, session, number)
            seconds[which].append(time.perf_counter() - started)
            pages[which].append(await counters[which].pages() - before)
            assert len(jobs) == _AT_ONCE, f"{len(jobs)} jobs"
            await executor.finish_many([Finish(row.claim, "release") for row in jobs])
    few, many = (median(each) * 1e3 for each in seconds)
    few_pages, many_pages = (mean(each) for each in pages)
    return {
        "few, ms": few, "many, ms": many, "few, pages": few_pages, "many, pages": many_pages
    }  # fmt: skip


CASE: Final = Case(
    "postgres-backlog",
    "PostgreSQL: fetching from a long queue",
    f"""
One fetch of {_AT_ONCE} jobs from two databases in turn: {_FEW:,} jobs due and nothing else; and a
million due behind a million completed, a million of a higher priority that are scheduled for later,
and a million of a higher priority that are parked because their group is full. After each the jobs
are given back. `synchronous_commit` is off here: what the disk takes to commit would hide what the
fetch costs. *Pages*: the buffers that its statements asked for, the mean of all fetches, as
`pg_stat_statements` counts them.
""",
    (Subject(OURS, _fetches),),
    (
        Measure(
            "fetch behind four million, time, against an empty queue",
            Key(OURS, "many, ms"),
            Key(OURS, "few, ms"),
            unit="ms",
            at_most=1.2,
        ),
        Measure(
            "fetch behind four million, pages, against an empty queue",
            Key(OURS, "many, pages"),
            Key(OURS, "few, pages"),
            unit="pages",
            at_most=1.2,
        ),
    ),
    needs_postgres=True,
)
