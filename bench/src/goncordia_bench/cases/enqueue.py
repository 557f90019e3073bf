"""Enqueueing one job at a time on SQLite."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from goncordia import Client, SyncClient
from goncordia_bench.floor.sqlite import Floor
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.harness.watch import Stopwatch
from goncordia_bench.ours.database import migrated
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import emails
from goncordia_bench.peers.huey_peer import fill, sqlite_huey
from goncordia_bench.probes.commits import CommitCounter
from goncordia_bench.probes.durability import LEVELS, Connections, Synchronous
from goncordia_driver_sqlite import SqliteDriver

__all__ = ["CASE"]

_PRODUCERS: Final = 16


def _jobs(setting: Setting) -> int:
    return setting.size(8_000, 400)


def _sync(synchronous: Synchronous, setting: Setting) -> Figures:
    jobs = _jobs(setting)
    path = migrated(setting.folder / "jobs.db")
    connections = Connections()
    with SqliteDriver(path, synchronous=synchronous) as driver:
        client = SyncClient(driver)
        client.enqueue(next(emails(1)))
        commits = CommitCounter(path)
        before = commits()
        watch = Stopwatch()
        for args in emails(jobs):
            client.enqueue(args)
        rates = watch.rates(jobs)
        made = commits() - before
        connections.check(synchronous)
    return {**rates, "commits/job": made / jobs}


def _async(synchronous: Synchronous, producers: int, setting: Setting) -> Figures:
    async def main() -> Figures:
        async with SqliteDriver(path, synchronous=synchronous) as driver:
            client = Client(driver)

            async def produce(count: int) -> None:
                for args in emails(count):
                    await client.enqueue(args)

            await produce(1)
            commits = CommitCounter(path)
            before = commits()
            watch = Stopwatch()
            await asyncio.gather(*(produce(jobs // producers) for _ in range(producers)))
            rates = watch.rates(jobs)
            made = commits() - before
            connections.check(synchronous)
        return {**rates, "commits/job": made / jobs}

    jobs = _jobs(setting) * (1 if producers == 1 else 4)
    path = migrated(setting.folder / "jobs.db")
    connections = Connections()
    return run(main())


def _floor(synchronous: Synchronous, setting: Setting) -> Figures:
    jobs = _jobs(setting)
    path = migrated(setting.folder / "jobs.db")
    connections = Connections()
    floor = Floor(path, synchronous)
    floor.insert_one_by_one(emails(1))
    commits = CommitCounter(path)
    before = commits()
    watch = Stopwatch()
    floor.insert_one_by_one(emails(jobs))
    rates = watch.rates(jobs)
    assert commits() - before == jobs
    connections.check(synchronous)
    return rates


def _huey(synchronous: Synchronous, setting: Setting) -> Figures:
    jobs = _jobs(setting)
    connections = Connections()
    huey = sqlite_huey(setting.folder / "huey.db", synchronous)
    fill(huey, 1)
    watch = Stopwatch()
    fill(huey, jobs)
    rates = watch.rates(jobs)
    connections.check(synchronous)
    return rates


def _against(synchronous: Synchronous) -> tuple[Measure, ...]:
    floor = Key(f"floor, {synchronous}", "jobs/s")
    many = f"{_PRODUCERS} producers, {synchronous}"
    return (
        Measure(
            f"enqueue, sync, {synchronous}, against one insert per commit",
            Key(f"sync, {synchronous}", "jobs/s"),
            floor,
            unit="jobs/s",
            at_least=0.9,
        ),
        Measure(
            f"enqueue, async, {synchronous}, against one insert per commit",
            Key(f"async, {synchronous}", "jobs/s"),
            floor,
            unit="jobs/s",
            at_least=0.6,
        ),
        Measure(
            f"enqueue, {_PRODUCERS} async producers, {synchronous}, against one insert per commit",
            Key(many, "jobs/s"),
            floor,
            unit="jobs/s",
            at_least=3.0,
        ),
        Measure(
            f"enqueue, {_PRODUCERS} async producers, {synchronous}, commits per job",
            Key(many, "commits/job"),
            unit="commits",
        ),
        Measure(
            f"enqueue, sync, {synchronous}, against huey",
            Key(f"sync, {synchronous}", "jobs/s"),
            Key(f"huey, {synchronous}", "jobs/s"),
            unit="jobs/s",
        ),
    )


def _subjects(synchronous: Synchronous) -> tuple[Subject, ...]:
    return (
        Subject(f"sync, {synchronous}", partial(_sync, synchronous)),
        Subject(f"floor, {synchronous}", partial(_floor, synchronous)),
        Subject(f"async, {synchronous}", partial(_async, synchronous, 1)),
        Subject(f"{_PRODUCERS} producers, {synchronous}", partial(_async, synchronous, _PRODUCERS)),
        Subject(f"huey, {synchronous}", partial(_huey, synchronous)),
    )


CASE: Final = Case(
    "enqueue",
    "SQLite: enqueueing one by one",
    f"""
Each call returns when its job is committed. *sync*: `SyncClient.enqueue` in a loop; *async*:
`await Client.enqueue` in a loop on uvloop; *{_PRODUCERS} producers*: so many such loops as tasks
of one event loop, whose jobs share commits. The floor is `sqlite3` alone in autocommit: one INSERT
per job into the same table (only the columns named that have to be; the same indexes), the args
encoded by msgspec, an id counted up; one commit per job, as SQLite itself counts. Ours also
proves that the args come back equal, and checks the options. huey's table has four columns and one
index.
""",
    tuple(subject for level in LEVELS for subject in _subjects(level)),
    tuple(measure for level in LEVELS for measure in _against(level)),
)
