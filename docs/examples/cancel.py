"""Running jobs are cancelled: what an async function sees, and what a thread sees."""

import asyncio
import threading
import time
from dataclasses import dataclass
from typing import ClassVar

from goncordia import Client, Job, JobHandle, Registry, SyncJob, WorkerPool
from goncordia.memory import MemoryDriver


@dataclass
class Download:
    kind: ClassVar[str] = "download"


@dataclass
class Convert:
    kind: ClassVar[str] = "convert"


registry = Registry()
begun = threading.Semaphore(0)


@registry.worker(Download)
async def download(job: Job[Download]) -> None:
    begun.release()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print(f"{job.kind}: interrupted; removing the half of the file")
        raise


@registry.worker(Convert)
def convert(job: SyncJob[Convert]) -> None:
    begun.release()
    while not job.cancelled:
        time.sleep(0.01)  # a piece of the work
    raise InterruptedError("convert: told to stop")


async def main() -> None:
    driver = MemoryDriver()
    client = Client(driver)
    async with WorkerPool(driver, registry) as pool:
        jobs: list[JobHandle] = [
            await client.enqueue(Download()),
            await client.enqueue(Convert()),
        ]
        for _ in jobs:
            await asyncio.to_thread(begun.acquire)
        for result in await client.cancel_many(jobs):
            print(f"{result.status}: the worker is asked to stop")
        await pool.drain()
    for job in jobs:
        info = await client.get(job)
        print(f"{info.kind} is {info.state}")
        assert info.state == "cancelled"


asyncio.run(main())
