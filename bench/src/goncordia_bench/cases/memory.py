"""How much memory jobs take, and whether what they took comes back."""

from __future__ import annotations

import asyncio
from typing import Final

from goncordia import Client, Job, Registry, WorkerPool
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.ours.database import migrated
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import Email, emails, registry_of
from goncordia_bench.probes.memory import resident
from goncordia_driver_sqlite import SqliteDriver

__all__ = ["CASE"]

_MEBIBYTE: Final = 1 << 20
_SLICES: Final = 20
_WARM: Final = 2
"""Slices after which everything has grown to its size."""


def _claimed(setting: Setting) -> Figures:
    async def main() -> Figures:
        go, all_run = asyncio.Event(), asyncio.Event()
        running = 0
        registry = Registry()

        @registry.worker(Email)
        async def email(job: Job[Email]) -> None:
            nonlocal running
            running += job.args is not None
            if running == jobs:
                all_run.set()
            await go.wait()

        async with SqliteDriver(path, synchronous="NORMAL") as driver:
            client = Client(driver)
            # The first job brings in what every job shares.
            await client.enqueue(next(emails(1)), queue="warm")
            async with WorkerPool(driver, registry_of(), queues=["warm"]) as warm:
                await warm.drain()
            await client.enqueue_many(emails(jobs), atomic=False)
            before = resident()
            async with WorkerPool(driver, registry, concurrency=jobs) as pool:
                await all_run.wait()
                held = resident() - before
                go.set()
                await pool.drain()
        return {"bytes": held / jobs}

    jobs = setting.size(20_000, 2_000)
    path = migrated(setting.folder / "jobs.db")
    return run(main())


def _long_run(setting: Setting) -> Figures:
    async def main() -> Figures:
        sizes: list[int] = []
        async with SqliteDriver(path, synchronous="NORMAL") as driver:
            client = Client(driver)
            async with WorkerPool(driver, registry_of(), concurrency=100) as pool:
                for _ in range(_SLICES):
                    await client.enqueue_many(emails(jobs // _SLICES), atomic=False)
                    await pool.drain()
                    sizes.append(resident())
        return {"early MiB": sizes[_WARM - 1] / _MEBIBYTE, "late MiB": sizes[-1] / _MEBIBYTE}

    jobs = setting.size(1_000_000, 10_000)
    path = migrated(setting.folder / "jobs.db")
    return run(main())


CASE: Final = Case(
    "memory",
    "Memory",
    f"""
*Per claimed job*: a pool on SQLite runs 20,000 jobs at once, each waiting in its handler; what the
process grew by, for each: row, run, task, context, the handler's frame. *Long run*: a pool on
SQLite works 1,000,000 jobs, enqueued in {_SLICES} slices by the same process; its resident memory
at the end, against that after 100,000. Finished jobs stay in the database.
""",
    (Subject("claimed", _claimed), Subject("long run", _long_run)),
    (
        Measure("memory per claimed and running job", Key("claimed", "bytes"), unit="bytes"),
        Measure(
            "resident memory after 1,000,000 jobs, against after 100,000",
            Key("long run", "late MiB"),
            Key("long run", "early MiB"),
            unit="MiB",
            at_most=1.1,
        ),
    ),
    once=True,
)
