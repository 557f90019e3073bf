"""Working off what is there, on SQLite, in one process."""

from __future__ import annotations

from functools import partial
from typing import Final

from goncordia import Client, WorkerPool
from goncordia_bench.floor.sqlite import Floor, chunks
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.harness.watch import Stopwatch
from goncordia_bench.ours.database import migrated, settled
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import emails, registry_of
from goncordia_bench.peers.huey_peer import drained, sqlite_huey
from goncordia_bench.probes.commits import CommitCounter
from goncordia_bench.probes.durability import LEVELS, Connections, Synchronous
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
            watch = Stopwatch()
            async with WorkerPool(driver, registry_of(), concurrency=_CONCURRENCY) as pool:
                await pool.drain()
                rates = watch.rates(jobs)
                made = commits() - before
            connections.check(synchronous)
        return {**rates, "commits/job": made / jobs}

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
    watch = Stopwatch()
    done = floor.drain(_BATCH)
    rates = watch.rates(jobs)
    assert done == jobs
    connections.check(synchronous)
    return {**rates, "commits/job": (commits() - before) / jobs}


def _huey(synchronous: Synchronous, setting: Setting) -> Figures:
    jobs = setting.size(10_000, 500)
    path = setting.folder / "huey.db"
    connections = Connections()
    huey = sqlite_huey(path, synchronous)
    rates = drained(huey, jobs, workers=1)
    connections.check(synchronous)
    return rates


def _measures(level: Synchronous) -> tuple[Measure, ...]:
    ours, huey, floor = (f"{who}, {level}" for who in ("goncordia", "huey", "floor"))
    return (
        Measure(
            f"drain, {level}, against huey",
            Key(ours, "jobs/s"),
            Key(huey, "jobs/s"),
            unit="jobs/s",
            at_least=4.0,
        ),
        Measure(
            f"drain, {level}, commits per job",
            Key(ours, "commits/job"),
            unit="commits",
            at_most=0.05,
        ),
        Measure(
            f"drain, {level}, against the floor",
            Key(ours, "jobs/s"),
            Key(floor, "jobs/s"),
            unit="jobs/s",
        ),
        Measure(
            f"drain, {level}, processor time, against huey",
            Key(ours, "processor µs/job"),
            Key(huey, "processor µs/job"),
            unit="µs",
        ),
    )


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
    tuple(
        Subject(f"{who}, {level}", partial(run_it, level))
        for level in LEVELS
        for who, run_it in (("goncordia", _ours), ("huey", _huey), ("floor", _floor))
    ),
    tuple(measure for level in LEVELS for measure in _measures(level)),
)
