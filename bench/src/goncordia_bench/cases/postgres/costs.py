"""What a job costs beside time: statements and memory."""

from __future__ import annotations

import asyncio

import asyncpg

from goncordia_bench.cases.postgres.common import counting, filled, installed, subjects
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import emails
from goncordia_bench.probes.memory import resident
from goncordia_bench.probes.statements import StatementCounter
from goncordia_bench.systems import FLOOR, OURS, PEERS, SLOW

__all__ = ["MEMORY", "STATEMENTS"]


def _statements(name: str, setting: Setting) -> Figures:
    async def main() -> Figures:
        async with installed(name, setting) as system:
            await filled(system, jobs)
            connection = await asyncpg.connect(system.dsn)
            statements = await StatementCounter.of(connection)
            handler, ended = counting(jobs)
            async with system.worker(handler) as finish:
                await ended.wait()
                await finish()
            working = await statements.count()
            async with system.producer() as producer:
                for args in few:
                    await producer.enqueue(args)
                alone = await statements.count() - working
                for args in few:
                    await producer.enqueue_tx(args)
                inside = await statements.count() - working - alone
            await connection.close()
        return {
            "statements/job": working / jobs,
            "statements/enqueue": alone / len(few),
            "statements/enqueue_tx": inside / len(few),
        }

    jobs = setting.size(5_000 if name in SLOW else 20_000, 500)
    few = list(emails(setting.size(500, 50)))
    return run(main())


STATEMENTS = Case(
    "postgres-statements",
    "PostgreSQL: statements",
    """
How many statements clients send for a job, BEGIN and COMMIT among them, as `pg_stat_statements`
counts them (what a function does inside the server is not counted). *Working*: 20,000 jobs that do
nothing, all that the worker sends on the way, divided by the jobs. *enqueue_tx*: beside the BEGIN,
INSERT and COMMIT of the user's own.
""",
    subjects(_statements, (OURS, *PEERS, FLOOR)),
    tuple(
        Measure(f"statements per job, {what}, {name}", Key(name, figure))
        for what, figure in (
            ("working", "statements/job"),
            ("enqueue", "statements/enqueue"),
            ("enqueue_tx", "statements/enqueue_tx"),
        )
        for name in (OURS, *PEERS, FLOOR)
    ),
    once=True,
    needs_postgres=True,
)


def _claimed(setting: Setting) -> Figures:
    async def main() -> Figures:
        go, all_run = asyncio.Event(), asyncio.Event()
        running = 0

        async def handler(n: int) -> None:
            nonlocal running
            del n
            running += 1
            if running == jobs:
                all_run.set()
            await go.wait()

        async with installed(OURS, setting) as system:
            # One round brings in what every job shares.
            await filled(system, 1)
            warm, warmed = counting(1)
            async with system.worker(warm):
                await warmed.wait()
            await filled(system, jobs)
            before = resident()
            async with system.worker(handler, jobs) as finish:
                await all_run.wait()
                held = resident() - before
                go.set()
                await finish()
        return {"MiB/10,000": held / jobs * 10_000 / (1 << 20)}

    jobs = setting.size(10_000, 1_000)
    return run(main())


MEMORY = Case(
    "postgres-memory",
    "PostgreSQL: memory of claimed jobs",
    """
A pool runs 10,000 jobs at once, each waiting in its handler: what the process grew by: row, run,
task, context, the handler's frame.
""",
    (Subject("claimed", _claimed),),
    (Measure("memory of 10,000 claimed jobs", Key("claimed", "MiB/10,000"), unit="MiB"),),
    needs_postgres=True,
)
