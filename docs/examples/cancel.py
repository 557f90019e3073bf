"""Running jobs are cancelled: what an async function, a thread and a process see."""

import asyncio
import threading
import time
from dataclasses import dataclass
from typing import ClassVar

from goncordia import Client, Job, JobHandle, ProcessJob, Registry, SyncJob, WorkerPool
from goncordia.memory import MemoryDriver


@dataclass
class Download:
    kind: ClassVar[str] = "download"


@dataclass
class Convert:
    kind: ClassVar[str] = "convert"


@dataclass
class Render:
    kind: ClassVar[str] = "render"


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


@registry.worker(Render, execution="process")
def render(job: ProcessJob[Render]) -> None:
    job.checkpoint("begun")
    while True:  # looks at nothing: its process is killed
        pass


async def main() -> None:
    driver = MemoryDriver()
    client = Client(driver)
    async with WorkerPool(driver, registry) as pool:
        rendering = await client.enqueue(Render())
        jobs: list[JobHandle] = [
            await client.enqueue(Download()),
            await client.enqueue(Convert()),
            rendering,
        ]
        for _ in (download, convert):
            await asyncio.to_thread(begun.acquire)
        while (await client.get(rendering)).checkpoint is None:  # noqa: ASYNC110  # only stored
            await asyncio.sleep(0.01)
        for result in await client.cancel_many(jobs):
            print(f"{result.status}: the worker is asked to stop")
        await pool.drain()
    for job in jobs:
        info = await client.get(job)
        print(f"{info.kind} is {info.state}")
        assert info.state == "cancelled"


if __name__ == "__main__":  # the process imports this module
    asyncio.run(main())
