"""What the engine costs per job, against a bare loop of tasks."""

from __future__ import annotations

import gc
from typing import Final

from goncordia import Client, WorkerPool
from goncordia.memory import MemoryDriver
from goncordia_bench.floor.loop import bare_loop
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.harness.watch import Stopwatch
from goncordia_bench.ours.canned import CannedDriver
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import emails, registry_of
from goncordia_bench.peers.huey_peer import drained, memory_huey

__all__ = ["CASE"]

_CONCURRENCY: Final = 100


def _jobs(setting: Setting) -> int:
    return setting.size(60_000, 3_000)


def _bare(setting: Setting) -> Figures:
    jobs = _jobs(setting)
    seconds = run(bare_loop(jobs))
    return {"jobs/s": jobs / seconds, "µs/job": seconds / jobs * 1e6}


def _canned(setting: Setting) -> Figures:
    async def main() -> Figures:
        driver = CannedDriver(jobs)
        # The prepared rows are no work of the engine's: the collector leaves them alone.
        gc.collect()
        gc.freeze()
        watch = Stopwatch()
        async with WorkerPool(driver, registry_of(), concurrency=_CONCURRENCY) as pool:
            await pool.drain()
            rates = watch.rates(jobs)
        assert driver.canned.finished == jobs
        return rates

    jobs = _jobs(setting)
    return run(main())


def _memory(setting: Setting) -> Figures:
    async def main() -> Figures:
        driver = MemoryDriver()
        await Client(driver).enqueue_many(emails(jobs), atomic=False)
        gc.collect()
        watch = Stopwatch()
        async with WorkerPool(driver, registry_of(), concurrency=_CONCURRENCY) as pool:
            await pool.drain()
            return watch.rates(jobs)

    jobs = _jobs(setting)
    return run(main())


def _huey(setting: Setting) -> Figures:
    jobs = setting.size(20_000, 1_000)
    return drained(memory_huey(), jobs, workers=1)


CASE: Final = Case(
    "engine",
    "The engine alone",
    """
The floor is a bare loop: it decodes the args of each job with msgspec, and runs a coroutine in a
task of its own under `asyncio.timeout`, a hundred at a time, on uvloop. Nothing is claimed,
nothing finished, and nothing survives. *Canned rows*: a worker pool (`concurrency=100`, a timeout
on every job) on a driver that hands out rows which were made before, and swallows the results.
*Memory*: the same pool on the memory driver, with all that it does: sessions, claims, order,
finished jobs kept. huey is `MemoryHuey` with one worker thread.
""",
    (
        Subject("floor", _bare),
        Subject("canned", _canned),
        Subject("memory", _memory),
        Subject("huey", _huey),
    ),
    (
        Measure(
            "engine on canned rows, against the bare loop",
            Key("canned", "jobs/s"),
            Key("floor", "jobs/s"),
            unit="jobs/s",
            at_least=0.6,
        ),
        Measure(
            "engine on the memory driver, against the bare loop",
            Key("memory", "jobs/s"),
            Key("floor", "jobs/s"),
            unit="jobs/s",
            at_least=0.35,
        ),
        Measure(
            "memory drain, against huey's memory",
            Key("memory", "jobs/s"),
            Key("huey", "jobs/s"),
            unit="jobs/s",
        ),
    ),
)
