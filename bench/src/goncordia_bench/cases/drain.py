"""Working off what is there, on SQLite, in one process."""

from __future__ import annotations

import time
from functools import partial
from typing import Final

from goncordia import Client, WorkerPool
from goncordia_bench.floor.sqlite import Floor, chunks
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.ours.database import migrated, settled
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import emails, registry_of
from goncordia_bench.peers.huey_peer import drained, sqlite_huey
from goncordia_bench.probes.commits import CommitCounter
from goncordia_bench.probes.durability import Connections, Synchronous
from goncordia_driver_sqlite import SqliteDriver

__all__ = ["CASE"]

_CONCURRENCY: Final = 100
_BATCH: Final = 100


def _jobs(setting: Setting) -> int:
    return setting.size(40_000, 2_000)


def _ours(synchronous: Synchronous, setting: Setting) -> Figures:
    async def main() -> Figures:
        async with SqliteDriver(path, synchronous=synchronous) as driver:
            await Client(driver).enqueue_many(emails(jobs), atomic=False)
            settled(path)
            commits = CommitCounter(path)
            before = commits()
            started = time.perf_counter()
            async with WorkerPool(driver, registry_of(), concurrency=_CONCURRENCY) as pool:
                await pool.drain()
                seconds = time.perf_counter() - started
                made = commits() - before
            connections.check(synchronous)
        return {"jobs/s": jobs / seconds, "commits/job": made / jobs}

    jobs = _jobs(setting)
    path = migrated(setting.folder / "jobs.db")
    connections = Connections()
    return run(main())


def _floor(synchronous: Synchronous, setting: Setting) -> Figures:
    jobs = _jobs(setting)
    path = migrated(setting.folder / "jobs.db")
    connections = Connections()
    floor = Floor(path, synchronous)
    for chunk in chunks(emails(jobs), 10_000):
        floor.insert_together(chunk)
    settled(path)
    commits = CommitCounter(path)
    before = commits()
    started = time.perf_counter()
    done = floor.drain(_BATCH)
    seconds = time.perf_counter() - started
    assert done == jobs
    connections.check(synchronous)
    return {"jobs/s": jobs / seconds, "commits/job": (commits() - before) / jobs}


def _huey(synchronous: Synchronous, setting: Setting) -> Figures:
    jobs = setting.size(10_000, 500)
    path = setting.folder / "huey.db"
    connections = Connections()
    huey = sqlite_huey(path, synchronous)
    seconds = drained(huey, jobs, workers=1)
    connections.check(synchronous)
    return {"jobs/s": jobs / seconds}


CASE: Final = Case(
    "drain",
    "SQLite: working jobs off",
    f"""
Jobs are enqueued, the write-ahead log is emptied, then one process works them all; the time runs
from before the pool (the consumer) is started until the last result is committed. Ours:
`concurrency={_CONCURRENCY}`, uvloop, a timeout on every job. huey: `SqliteHuey` in WAL mode with
one worker thread, which is its fastest (more wait for each other); its clock stops when the last
task has run. Ours commits a claim and a result for each job, and a killed worker loses none; huey
deletes a task when it takes it, so that one that was taken by a killed worker is gone. The floor
is `sqlite3` alone on the same table, {_BATCH} jobs at a time, one transaction with one UPDATE that
completes and one that claims. Commits are counted by SQLite itself, in its shared memory.
""",
    (
        Subject("goncordia, FULL", partial(_ours, "FULL")),
        Subject("huey, FULL", partial(_huey, "FULL")),
        Subject("floor, FULL", partial(_floor, "FULL")),
        Subject("goncordia, NORMAL", partial(_ours, "NORMAL")),
        Subject("huey, NORMAL", partial(_huey, "NORMAL")),
        Subject("floor, NORMAL", partial(_floor, "NORMAL")),
    ),
    (
        Measure(
            "drain, FULL, against huey",
            Key("goncordia, FULL", "jobs/s"),
            Key("huey, FULL", "jobs/s"),
            unit="jobs/s",
            at_least=4.0,
        ),
        Measure(
            "drain, NORMAL, against huey",
            Key("goncordia, NORMAL", "jobs/s"),
            Key("huey, NORMAL", "jobs/s"),
            unit="jobs/s",
            at_least=4.0,
        ),
        Measure(
            "drain, commits per job, FULL",
            Key("goncordia, FULL", "commits/job"),
            unit="commits",
            at_most=0.05,
        ),
        Measure(
            "drain, commits per job, NORMAL",
            Key("goncordia, NORMAL", "commits/job"),
            unit="commits",
            at_most=0.05,
        ),
        Measure(
            "drain, FULL, against the floor",
            Key("goncordia, FULL", "jobs/s"),
            Key("floor, FULL", "jobs/s"),
            unit="jobs/s",
        ),
        Measure(
            "drain, NORMAL, against the floor",
            Key("goncordia, NORMAL", "jobs/s"),
            Key("floor, NORMAL", "jobs/s"),
            unit="jobs/s",
        ),
    ),
)
