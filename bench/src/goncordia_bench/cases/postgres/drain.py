"""Working off what is there, on PostgreSQL, in one process."""

from __future__ import annotations

from typing import Final

import asyncpg

from goncordia_bench.cases.postgres.common import (
    against_peers,
    counting,
    filled,
    installed,
    subjects,
)
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting
from goncordia_bench.harness.watch import Stopwatch
from goncordia_bench.ours.loop import run
from goncordia_bench.systems import FLOOR, OURS, PEERS, SLOW

__all__ = ["CASE"]

_WAL: Final = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"


def _drain(name: str, setting: Setting) -> Figures:
    async def main() -> Figures:
        async with installed(name, setting) as system:
            await filled(system, jobs)
            connection = await asyncpg.connect(system.dsn)
            handler, ended = counting(jobs)
            before = await connection.fetchval(_WAL)
            watch = Stopwatch()
            async with system.worker(handler) as finish:
                await ended.wait()
                await finish()
                rates = watch.rates(jobs)
            written = await connection.fetchval(_WAL) - before
            await connection.close()
        return {**rates, "WAL bytes/job": float(written) / jobs}

    jobs = setting.size(10_000 if name in SLOW else 100_000, 1_000)
    return run(main())


_OURS: Final = Key(OURS, "jobs/s")

CASE: Final = Case(
    "postgres-drain",
    "PostgreSQL: working jobs off",
    """
100,000 jobs are there, the tables are analyzed, a checkpoint is done; then one process works them
all, each system at the concurrency that was its best here. The time runs from before the worker is
started until the last handler has run; ours and the floor until the last result is committed.
uvloop for all. Ours and Oban have a timeout of 30 s on every job, awa its deadline; PgQueuer and
procrastinate know none. procrastinate is given 10,000 jobs, in the first round only: it would take
minutes. The floor is asyncpg alone on our table: two connections, each with one statement that
completes 100 jobs and claims the next 100 from the low-water mark on; no task is made for a job.
""",
    subjects(_drain, (OURS, *PEERS, FLOOR), slow_once=True),
    (
        *against_peers("drain", _OURS, at_least=2.0),
        Measure(
            "drain, against the floor",
            _OURS,
            Key(FLOOR, "jobs/s"),
            unit="jobs/s",
            at_least=0.5,
        ),
        Measure("drain, processor time of the worker", Key(OURS, "processor µs/job"), unit="µs"),
        *(
            Measure(f"drain, WAL per job, {name}", Key(name, "WAL bytes/job"), unit="bytes")
            for name in (OURS, *PEERS, FLOOR)
        ),
    ),
    needs_postgres=True,
)
