"""Enqueueing many jobs at once on SQLite."""

from __future__ import annotations

from typing import Final

from goncordia import Client, SyncClient
from goncordia_bench.floor.sqlite import Floor, chunks
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.harness.watch import Stopwatch
from goncordia_bench.ours.database import migrated
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import emails
from goncordia_bench.probes.durability import Connections
from goncordia_driver_sqlite import SqliteDriver

__all__ = ["CASE"]

_AT_ONCE: Final = 5_000


def _jobs(setting: Setting) -> int:
    return setting.size(100_000, 5_000)


def _async(setting: Setting) -> Figures:
    async def main() -> Figures:
        async with SqliteDriver(path) as driver:
            client = Client(driver)
            await client.enqueue(next(emails(1)))
            watch = Stopwatch()
            for chunk in given:
                await client.enqueue_many(chunk)
            rates = watch.rates(jobs)
            connections.check("FULL")
            return rates

    jobs = _jobs(setting)
    given = list(chunks(emails(jobs), _AT_ONCE))
    path = migrated(setting.folder / "jobs.db")
    connections = Connections()
    return run(main())


def _sync(setting: Setting) -> Figures:
    jobs = _jobs(setting)
    given = list(chunks(emails(jobs), _AT_ONCE))
    path = migrated(setting.folder / "jobs.db")
    connections = Connections()
    with SqliteDriver(path) as driver:
        client = SyncClient(driver)
        client.enqueue(next(emails(1)))
        watch = Stopwatch()
        for chunk in given:
            client.enqueue_many(chunk)
        rates = watch.rates(jobs)
        connections.check("FULL")
    return rates


def _floor(setting: Setting) -> Figures:
    jobs = _jobs(setting)
    given = list(chunks(emails(jobs), _AT_ONCE))
    path = migrated(setting.folder / "jobs.db")
    connections = Connections()
    floor = Floor(path, "FULL")
    floor.insert_one_by_one(emails(1))
    watch = Stopwatch()
    for chunk in given:
        floor.insert_together(chunk)
    rates = watch.rates(jobs)
    connections.check("FULL")
    return rates


CASE: Final = Case(
    "enqueue_many",
    "SQLite: enqueueing many at once",
    f"""
`enqueue_many` of {_AT_ONCE:,} jobs at a time, each call one transaction, FULL. The floor is
`sqlite3` alone: one `executemany` in one transaction for as many, into the same table, the args
encoded by msgspec, an id counted up. huey cannot.
""",
    (Subject("async", _async), Subject("sync", _sync), Subject("floor", _floor)),
    (
        Measure(
            "enqueue_many, async, against executemany",
            Key("async", "jobs/s"),
            Key("floor", "jobs/s"),
            unit="jobs/s",
            at_least=0.6,
        ),
        Measure(
            "enqueue_many, sync, against executemany",
            Key("sync", "jobs/s"),
            Key("floor", "jobs/s"),
            unit="jobs/s",
            at_least=0.6,
        ),
    ),
)
