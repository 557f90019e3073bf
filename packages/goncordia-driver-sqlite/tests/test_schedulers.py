"""Two schedulers in processes of their own, one of which is frozen for longer than it leads."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goncordia import Client, list_schedules
from goncordia_driver_sqlite import SqliteDriver

STEP = timedelta(seconds=0.1)
AHEAD = 6 * STEP
PATIENCE = 8.0  # who is frozen inside a transaction holds the others up: then it was no use

PROGRAM = """
import asyncio, sys
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from goncordia import CronScheduler, PeriodicJob, every
from goncordia_driver_sqlite import SqliteDriver

@dataclass
class Tick:
    kind: ClassVar[str] = "tick"

async def main(path, start):
    start_at = datetime.fromisoformat(start)
    job = PeriodicJob(every(0.1), Tick(), start_at=start_at, catch_up="all", catch_up_limit=10_000)
    async with SqliteDriver(path) as driver:
        await CronScheduler(driver, [job], lease=1).run()

asyncio.run(main(*sys.argv[1:]))
"""


@contextlib.asynccontextmanager
async def scheduler(
    path: Path, start: datetime
) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """A process with a scheduler, which is told to end at the end, and does so in order."""
    words = [sys.executable, "-W", "error", "-c", PROGRAM, str(path), start.isoformat()]
    process = await asyncio.create_subprocess_exec(*words)
    try:
        yield process
        process.terminate()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def last(driver: SqliteDriver) -> datetime | None:
    """What was enqueued last."""
    found = await list_schedules(driver)
    return found[0].last if found else None


async def goes_on(driver: SqliteDriver) -> bool:
    """Wait until some more occurrences are enqueued; whether they are, in time."""
    before: datetime | None = None
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while True:
                now = await last(driver)
                before = before or now
                if now is not None and before is not None and now >= before + AHEAD:
                    return True
                await asyncio.sleep(0.05)
    return False


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSTOP")
async def test_each_occurrence_is_enqueued_once_though_leaders_freeze(tmp_path: Path) -> None:
    path, start = tmp_path / "jobs.db", datetime.now(UTC)
    async with SqliteDriver(path) as driver:
        await driver.migrate()
        async with scheduler(path, start) as one, scheduler(path, start) as other:
            assert await goes_on(driver)
            for process in (one, other, one, other):
                # One of the two leads. While it is frozen, the other has to take over.
                went_on = False
                for _ in range(5):
                    os.kill(process.pid, signal.SIGSTOP)
                    try:
                        went_on = await goes_on(driver)
                    finally:
                        os.kill(process.pid, signal.SIGCONT)
                    if went_on:
                        break
                    assert await goes_on(driver)  # else it would be frozen where it was before
                assert went_on
            assert await goes_on(driver)
        upto = await last(driver)
        assert upto is not None
        times = Counter[datetime]()
        async for job in Client(driver).list_all(kind="tick"):
            times[datetime.fromisoformat(job.meta["cron.at"])] += 1
        expected = [start + n * STEP for n in range((upto - start) // STEP + 1)]
        assert [when for when in expected if when not in times] == []
        assert set(times.values()) == {1}
        assert all((when - start) % STEP == timedelta(0) for when in times)
