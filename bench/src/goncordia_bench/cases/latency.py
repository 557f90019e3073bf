"""From the call of enqueue in one process to the start of the handler in another, both idle."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Final

from goncordia import Client
from goncordia_bench.harness.consumer import LONGEST, SHORTEST, consumer, latencies, pauses
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.ours.database import migrated
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import Email
from goncordia_bench.peers.huey_peer import sqlite_huey, task_of
from goncordia_driver_sqlite import SqliteDriver

__all__ = ["CASE"]


def _ours(setting: Setting) -> Figures:
    async def produce() -> None:
        async with SqliteDriver(path) as driver:
            client = Client(driver)
            await driver.ready()
            for n, pause in enumerate(pauses(count)):
                await asyncio.sleep(pause)
                sent.append(time.monotonic_ns())
                await client.enqueue(Email("user@example.com", "Welcome", n))
                returned.append(time.monotonic_ns())
            await asyncio.sleep(1.0)

    count = setting.size(300, 15)
    path = migrated(setting.folder / "jobs.db")
    sent: list[int] = []
    returned: list[int] = []
    with consumer("ours.consumer", str(path)) as end:
        run(produce())
        return latencies(sent, returned, end())


def _huey(delay: float | None, setting: Setting) -> Figures:
    def email(to: str, subject: str, n: int) -> None:
        """Only enqueued here."""

    count = setting.size(100, 5)
    path = setting.folder / "huey.db"
    task = task_of(sqlite_huey(path, "FULL"), email)
    sent: list[int] = []
    returned: list[int] = []
    words = [] if delay is None else [str(delay)]
    with consumer("peers.huey_consumer", str(path), *words) as end:
        for n, pause in enumerate(pauses(count)):
            time.sleep(pause)
            sent.append(time.monotonic_ns())
            task("user@example.com", "Welcome", n)
            returned.append(time.monotonic_ns())
        time.sleep(2.0)
        return latencies(sent, returned, end())


CASE: Final = Case(
    "latency",
    "SQLite: from enqueue to the start of the handler",
    f"""
One process enqueues a job now and then, {SHORTEST * 1000:g} to {LONGEST * 1000:g} ms apart, FULL;
a worker in another, otherwise idle, notes when its handler starts, on the clock that all processes
share. The time runs from before the call of `enqueue`, so it has the commit in it. huey's consumer
polls: by default every 0.1 s at first and then less and less often, up to 10 s (jobs that come so
close keep it near 0.1 s); beside it one told to poll every 5 ms. *Idle*: the processor time of a
worker that has nothing to do, as a share of one core.
""",
    (
        Subject("goncordia", _ours),
        Subject("huey", partial(_huey, None)),
        Subject("huey, polling every 5 ms", partial(_huey, 0.005)),
    ),
    (
        Measure(
            "enqueue to handler start, another process, p50",
            Key("goncordia", "p50 ms"),
            unit="ms",
            at_most=5.0,
        ),
        Measure(
            "enqueue to handler start, another process, p99",
            Key("goncordia", "p99 ms"),
            unit="ms",
            at_most=20.0,
        ),
        Measure(
            "of which the call of enqueue itself, p99",
            Key("goncordia", "commit p99 ms"),
            unit="ms",
        ),
        Measure("processor time of an idle worker", Key("goncordia", "idle %"), unit="%"),
        Measure("the same, huey's default, p50", Key("huey", "p50 ms"), unit="ms"),
        Measure("the same, huey's default, p99", Key("huey", "p99 ms"), unit="ms"),
        Measure(
            "the same, huey polling every 5 ms, p50",
            Key("huey, polling every 5 ms", "p50 ms"),
            unit="ms",
        ),
        Measure(
            "the same, huey polling every 5 ms, p99",
            Key("huey, polling every 5 ms", "p99 ms"),
            unit="ms",
        ),
        Measure(
            "processor time of an idle worker, huey's default", Key("huey", "idle %"), unit="%"
        ),
        Measure(
            "processor time of an idle worker, huey polling every 5 ms",
            Key("huey, polling every 5 ms", "idle %"),
            unit="%",
        ),
    ),
)
