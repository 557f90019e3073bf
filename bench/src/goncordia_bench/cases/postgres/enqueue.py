"""Enqueueing on PostgreSQL: one by one, in the user's transaction, many at once, from 16 tasks."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Final

from goncordia_bench.cases.postgres.common import against_peers, installed, levelled, subjects
from goncordia_bench.floor.sqlite import chunks
from goncordia_bench.harness.consumer import consumer
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting
from goncordia_bench.harness.system import Producer
from goncordia_bench.harness.watch import Stopwatch
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import Email, emails
from goncordia_bench.systems import FLOOR, ON_POOL, OURS, PEERS

__all__ = ["ENQUEUE", "ENQUEUE_MANY", "PRODUCERS"]

_AT_ONCE: Final = 1_000
_PRODUCERS: Final = 16


def _one_by_one(name: str, setting: Setting) -> Figures:
    async def main() -> Figures:
        async with installed(name, setting) as system:
            await levelled(system.dsn)
            async with system.producer() as producer:
                await producer.enqueue(next(emails(1)))
                watch = Stopwatch()
                for args in emails(jobs):
                    await producer.enqueue(args)
                alone = watch.rates(jobs)
                await producer.enqueue_tx(next(emails(1)))
                watch = Stopwatch()
                for args in emails(jobs):
                    await producer.enqueue_tx(args)
                inside = watch.rates(jobs)
        return {**alone, "tx jobs/s": inside["jobs/s"]}

    jobs = setting.size(4_000, 200)
    return run(main())


ENQUEUE: Final = Case(
    "postgres-enqueue",
    "PostgreSQL: enqueueing one by one",
    """
A loop that awaits each call; it returns when the job is committed. *In a transaction*: begin, a row
of the user's own table, the job, commit, on a connection of the user's that is kept. No worker
runs. Ours has a pool of its own; *over your own pool*: one of asyncpg as it comes, which sends
another statement to clean a connection up whenever it comes back. The floor is asyncpg alone: one
INSERT into our table that names only the columns that have to be given, the args encoded by
msgspec.
""",
    subjects(_one_by_one, (OURS, FLOOR, ON_POOL, *PEERS)),
    (
        Measure(
            "enqueue, against one insert",
            Key(OURS, "jobs/s"),
            Key(FLOOR, "jobs/s"),
            unit="jobs/s",
            at_least=0.9,
        ),
        Measure(
            "enqueue_tx, against one insert in the same transaction",
            Key(OURS, "tx jobs/s"),
            Key(FLOOR, "tx jobs/s"),
            unit="jobs/s",
            at_least=0.9,
        ),
        Measure(
            "enqueue over your own pool, against one insert",
            Key(ON_POOL, "jobs/s"),
            Key(FLOOR, "jobs/s"),
            unit="jobs/s",
        ),
        *against_peers("enqueue", Key(OURS, "jobs/s")),
        *against_peers("enqueue_tx", Key(OURS, "tx jobs/s")),
    ),
    needs_postgres=True,
)


def _many(name: str, setting: Setting) -> Figures:
    async def main() -> Figures:
        async with installed(name, setting) as system:
            await levelled(system.dsn)
            async with system.producer() as producer:
                await producer.enqueue(next(emails(1)))
                watch = Stopwatch()
                for chunk in given:
                    await producer.enqueue_many(chunk)
                return watch.rates(jobs)

    jobs = setting.size(100_000, 2_000)
    given = list(chunks(emails(jobs), _AT_ONCE))
    return run(main())


ENQUEUE_MANY: Final = Case(
    "postgres-enqueue-many",
    "PostgreSQL: enqueueing many at once",
    f"""
{_AT_ONCE:,} jobs at a time, each call one transaction, in the fastest way that each system
documents: PgQueuer by lists, awa by COPY, procrastinate by `batch_defer_async`, Oban by
`enqueue_many`. The floor is asyncpg alone: one INSERT of two arrays.
""",
    subjects(_many, (OURS, *PEERS, FLOOR)),
    (
        Measure(
            "enqueue_many, against an insert of arrays",
            Key(OURS, "jobs/s"),
            Key(FLOOR, "jobs/s"),
            unit="jobs/s",
            at_least=0.8,
        ),
        *against_peers("enqueue_many", Key(OURS, "jobs/s")),
    ),
    needs_postgres=True,
)


async def _produced(producer: Producer, jobs: int) -> float:
    numbers = count()

    async def produce() -> None:
        while (n := next(numbers)) < jobs:
            await producer.enqueue(Email("user@example.com", "Welcome", n))

    watch = Stopwatch()
    await asyncio.gather(*(produce() for _ in range(_PRODUCERS)))
    return watch.rates(jobs)["jobs/s"]


def _concurrently(name: str, setting: Setting) -> Figures:
    async def main() -> Figures:
        async with installed(name, setting) as system:
            await levelled(system.dsn)
            async with system.producer(_PRODUCERS) as producer:
                await _produced(producer, _PRODUCERS)
                alone = await _produced(producer, jobs)
                if name == FLOOR:
                    return {"jobs/s": alone}
                with consumer("harness.worker", name, system.dsn) as end:
                    watched = await _produced(producer, jobs)
                    await asyncio.to_thread(end)
        return {"jobs/s": alone, "watched jobs/s": watched}

    jobs = setting.size(20_000, 320)
    return run(main())


PRODUCERS: Final = Case(
    "postgres-producers",
    "PostgreSQL: 16 producers at once",
    f"""
{_PRODUCERS} tasks of one process enqueue one by one over {_PRODUCERS} connections, with the
notifications that each system sends as it comes. First no worker runs; then one works the jobs off
in a process of its own meanwhile. The floor notifies nobody.
""",
    subjects(_concurrently, (OURS, *PEERS, FLOOR)),
    (
        *against_peers("16 producers", Key(OURS, "jobs/s"), at_least=1.0),
        *against_peers("16 producers and a worker", Key(OURS, "watched jobs/s"), at_least=1.0),
        Measure(
            "16 producers, against inserts that notify nobody",
            Key(OURS, "jobs/s"),
            Key(FLOOR, "jobs/s"),
            unit="jobs/s",
        ),
        Measure(
            "16 producers and a worker, against without one",
            Key(OURS, "watched jobs/s"),
            Key(OURS, "jobs/s"),
            unit="jobs/s",
        ),
    ),
    needs_postgres=True,
)
