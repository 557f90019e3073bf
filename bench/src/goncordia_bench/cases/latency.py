"""From the call of enqueue in one process to the start of the handler in another, both idle."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple

from goncordia import Client
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.harness.stats import percentile
from goncordia_bench.ours.database import migrated
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import Email
from goncordia_bench.peers.huey_peer import sqlite_huey, task_of
from goncordia_driver_sqlite import SqliteDriver

__all__ = ["CASE"]

_SHORTEST: Final = 0.03
_LONGEST: Final = 0.12


class _Told(NamedTuple):
    """What a consumer told: when which job started, and its share of a core while it was idle."""

    starts: dict[int, int]
    idle: float


@contextmanager
def _consumer(module: str, *words: str) -> Iterator[Callable[[], _Told]]:
    """A consumer in a process of its own; gives a function that ends it and says what it told."""
    command = [sys.executable, "-m", f"goncordia_bench.{module}", *words]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"

            def end() -> _Told:
                text, _ = process.communicate("end\n", timeout=60)
                told = json.loads(text)
                starts = {int(n): started for n, started in told["starts"].items()}
                return _Told(starts, told["idle"])

            yield end
        finally:
            process.kill()


def _figures(sent: Sequence[int], returned: Sequence[int], told: _Told) -> Figures:
    starts = told.starts
    assert len(starts) == len(sent), f"{len(sent)} were sent, {len(starts)} started"
    taken = [(starts[n] - at) / 1e6 for n, at in enumerate(sent)]
    return {
        "p50 ms": percentile(taken, 0.5),
        "p99 ms": percentile(taken, 0.99),
        "commit p99 ms": percentile(
            [(after - at) / 1e6 for at, after in zip(sent, returned, strict=True)], 0.99
        ),
        "idle %": told.idle * 100,
    }


def _pauses(count: int) -> Iterator[float]:
    rng = random.Random(count)
    return (rng.uniform(_SHORTEST, _LONGEST) for _ in range(count))


def _ours(setting: Setting) -> Figures:
    async def produce() -> None:
        async with SqliteDriver(path) as driver:
            client = Client(driver)
            await driver.ready()
            for n, pause in enumerate(_pauses(count)):
                await asyncio.sleep(pause)
                sent.append(time.monotonic_ns())
                await client.enqueue(Email("user@example.com", "Welcome", n))
                returned.append(time.monotonic_ns())
            await asyncio.sleep(1.0)

    count = setting.size(300, 15)
    path = migrated(setting.folder / "jobs.db")
    sent: list[int] = []
    returned: list[int] = []
    with _consumer("ours.consumer", str(path)) as end:
        run(produce())
        return _figures(sent, returned, end())


def _huey(delay: float | None, setting: Setting) -> Figures:
    def email(to: str, subject: str, n: int) -> None:
        """Only enqueued here."""

    count = setting.size(100, 5)
    path = setting.folder / "huey.db"
    task = task_of(sqlite_huey(path, "FULL"), email)
    sent: list[int] = []
    returned: list[int] = []
    words = [] if delay is None else [str(delay)]
    with _consumer("peers.huey_consumer", str(path), *words) as end:
        for n, pause in enumerate(_pauses(count)):
            time.sleep(pause)
            sent.append(time.monotonic_ns())
            task("user@example.com", "Welcome", n)
            returned.append(time.monotonic_ns())
        time.sleep(2.0)
        return _figures(sent, returned, end())


CASE: Final = Case(
    "latency",
    "SQLite: from enqueue to the start of the handler",
    f"""
One process enqueues a job now and then, {_SHORTEST * 1000:g} to {_LONGEST * 1000:g} ms apart, FULL;
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
