"""Run by CI with nothing installed but this package's wheel: no extras, no driver package."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from goncordia import Client, CronScheduler, Job, PeriodicJob, Registry, WorkerPool, cron, gontest
from goncordia.memory import MemoryDriver


@dataclass
class Add:
    kind: ClassVar[str] = "add"
    left: int
    right: int


registry = Registry()
sums: list[int] = []


@registry.worker(Add)
async def add(job: Job[Add]) -> None:
    sums.append(job.args.left + job.args.right)


async def main() -> None:
    async with MemoryDriver() as driver:
        await driver.migrate()
        await Client(driver).enqueue(Add(20, 22))
        async with WorkerPool(driver, registry, queues=["default"]) as pool:
            await pool.drain()
        async with CronScheduler(driver, [PeriodicJob(cron("0 9 * * MON", tz="UTC"), Add(1, 2))]):
            pass
    assert sums == [42], sums
    # The test helpers ask for no test framework.
    assert (await gontest.require_work(add, Add(1, 2))).state == "completed"
    assert "pytest" not in sys.modules


asyncio.run(main())

# Without its extra the command says which one it wants, and nothing breaks.
command = Path(sys.executable).with_name("goncordia")
answer = subprocess.run([command, "--help"], capture_output=True, text=True, check=False)
assert answer.returncode != 0, answer
assert "goncordia-core[cli]" in answer.stderr, answer
assert "Traceback" not in answer.stderr, answer
