"""Workers in processes, whose pool is killed: nothing of it goes on, and its slots come back."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path

import pytest

from goncordia import Client, JobState
from goncordia_driver_sqlite import SqliteDriver

PROGRAM = """
import asyncio, os, sys
from dataclasses import dataclass
from typing import ClassVar

from goncordia import Client, KindPolicy, ProcessJob, Registry, WorkerPool
from goncordia_driver_sqlite import SqliteDriver

registry = Registry()
GROUP = {"concurrency_key": "k", "concurrency_limit": 1}

@dataclass
class Spin:
    kind: ClassVar[str] = "spin"

@registry.worker(Spin, execution="process", retry_policy=lambda _: 0)
def spin(job: ProcessJob[Spin]) -> int:
    if job.attempt == 1 and job.meta.get("for ever"):
        print("pid", os.getpid(), flush=True)
        while True:
            pass
    return job.attempt

def pool(driver):
    return WorkerPool(
        driver,
        registry,
        lease=3,
        heartbeat_interval=0.3,
        rescue_interval=0.4,
        kind_policies={"spin": KindPolicy(concurrency=1)},
    )

async def main(path):
    async with SqliteDriver(path) as driver, pool(driver):
        await Client(driver).enqueue(Spin(), meta={"for ever": "1"}, **GROUP)
        await asyncio.sleep(600)

if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter: gone while it was read
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
async def test_the_slots_of_a_killed_pool_come_back(
    driver: SqliteDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "spinning.py"
    file.write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "spinning", raising=False)
    spinning = importlib.import_module("spinning")
    client = Client(driver)
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(file), str(driver.path), stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        try:
            assert process.stdout is not None
            word, pid = (await process.stdout.readline()).split()
            assert (word, is_alive(int(pid))) == (b"pid", True)
            behind = await client.enqueue(spinning.Spin(), **spinning.GROUP)
        finally:
            process.kill()
        await process.wait()
        while is_alive(int(pid)):  # noqa: ASYNC110 - the system ends it, and tells nobody
            await asyncio.sleep(0.01)
        async with spinning.pool(driver):
            assert await client.wait(behind, output=int) == 1
            for job in (await client.list()).jobs:
                await client.wait(job.id)
    jobs = (await client.list()).jobs
    assert [(job.state, job.attempt) for job in jobs] == [
        (JobState.COMPLETED, 1),
        (JobState.COMPLETED, 2),
    ]
