"""What a fetch costs when a million jobs wait."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Final
from uuid import uuid4

from goncordia import AnyDriver, Client
from goncordia.driver import FetchRequest, Finish, QueueFetch
from goncordia.memory import MemoryDriver
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.ours.database import migrated, settled
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import QUEUE, Email, emails
from goncordia_driver_sqlite import SqliteDriver

__all__ = ["CASE"]

_FEW: Final = 1_000
_AT_ONCE: Final = 20
_HOUR: Final = 3600.0


async def _fill(driver: AnyDriver, due: int, later: int) -> None:
    """So many jobs that are due, and before them by priority so many that are not."""
    client = Client(driver)
    await client.enqueue_many(emails(later), priority=10, delay=1000 * _HOUR, atomic=False)
    await client.enqueue_many(emails(due), atomic=False)


async def _seconds_of_fetches(drivers: Sequence[AnyDriver], times: int) -> list[float]:
    """The median of each driver's fetches, taken in turn; what was claimed is given back."""
    sessions = [uuid4() for _ in drivers]
    for driver, session in zip(drivers, sessions, strict=True):
        await driver.executor().session_open(session, "bench", 10 * _HOUR)
    taken: list[list[float]] = [[] for _ in drivers]
    queues = (QueueFetch(QUEUE, _AT_ONCE, {Email.kind: _AT_ONCE}),)
    for number in range(times):
        for driver, session, seconds in zip(drivers, sessions, taken, strict=True):
            executor = driver.executor()
            request = FetchRequest(session, number, _AT_ONCE, queues, "bench")
            started = time.perf_counter()
            result = await executor.fetch(request)
            seconds.append(time.perf_counter() - started)
            assert len(result.jobs) == _AT_ONCE
            claims = [row.claim for row in result.jobs if row.claim is not None]
            await executor.finish_many([Finish(claim, "release") for claim in claims])
    for driver, session in zip(drivers, sessions, strict=True):
        await driver.executor().session_close(session)
    return [median(seconds) for seconds in taken]


async def _measured(drivers: Sequence[AnyDriver], setting: Setting) -> Figures:
    few, many, behind = await _seconds_of_fetches(drivers, setting.size(400, 20))
    return {"few, ms": few * 1e3, "many, ms": many * 1e3, "behind, ms": behind * 1e3}


def _shapes(setting: Setting) -> list[tuple[int, int]]:
    many = setting.size(1_000_000, 10_000)
    return [(_FEW, 0), (many, 0), (_FEW, many)]


def _sqlite(setting: Setting) -> Figures:
    async def built(due: int, later: int) -> Path:
        path = setting.shared / f"backlog-{due}-{later}.db"
        if not path.exists():
            building = migrated(path.with_suffix(".building"))
            async with SqliteDriver(building, synchronous="NORMAL") as driver:
                await _fill(driver, due, later)
                settled(building)
            os.replace(building, path)
        return path

    async def main() -> Figures:
        async with AsyncExitStack() as stack:
            drivers = [
                await stack.enter_async_context(SqliteDriver(path, synchronous="NORMAL"))
                for path in [await built(*shape) for shape in _shapes(setting)]
            ]
            return await _measured(drivers, setting)

    return run(main())


def _memory(setting: Setting) -> Figures:
    async def main() -> Figures:
        drivers = [MemoryDriver() for _ in range(3)]
        for driver, shape in zip(drivers, _shapes(setting), strict=True):
            await _fill(driver, *shape)
        return await _measured(drivers, setting)

    return run(main())


def _measures(subject: str, named: Callable[[str], str]) -> tuple[Measure, ...]:
    few = Key(subject, "few, ms")
    return (
        Measure(
            named("1,000,000 waiting, against 1,000"),
            Key(subject, "many, ms"),
            few,
            unit="ms",
            at_most=1.2,
        ),
        Measure(
            named("behind 1,000,000 scheduled at higher priority, against none"),
            Key(subject, "behind, ms"),
            few,
            unit="ms",
            at_most=1.2,
        ),
    )


CASE: Final = Case(
    "backlog",
    "Fetching from a long queue",
    f"""
One fetch of {_AT_ONCE} jobs, its commit included, from three databases in turn: 1,000 jobs due;
1,000,000 due; 1,000 due and 1,000,000 of a higher priority that are due later. After each the jobs
are given back, so that the queues stay as they are. SQLite with `synchronous=NORMAL`: what the
disk takes to commit would hide what the fetch costs. The ratio is of medians of one process.
""",
    (Subject("sqlite", _sqlite), Subject("memory", _memory)),
    (
        *_measures("sqlite", lambda what: f"SQLite fetch, {what}"),
        *_measures("memory", lambda what: f"memory fetch, {what}"),
    ),
)
