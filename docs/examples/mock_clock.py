"""An hour passes in no time: jobs under a clock that is moved by hand."""

import asyncio
from dataclasses import dataclass
from typing import ClassVar

from goncordia import Client, FixedRetry, Job, Registry, WorkerPool
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver


@dataclass
class Remind:
    kind: ClassVar[str] = "remind"
    whom: str


registry = Registry()


@registry.worker(Remind, retry_policy=FixedRetry(60))
async def remind(job: Job[Remind]) -> str:
    if job.attempt == 1:
        raise ConnectionError("no answer")
    return f"{job.args.whom} is reminded"


async def main() -> None:
    clock = MockClock()
    driver = MemoryDriver(clock)
    client = Client(driver)
    job = await client.enqueue(Remind("Ann"), delay=3600)

    async with WorkerPool(driver, registry):
        for seconds, state in [(3599, "scheduled"), (2, "retryable"), (60, "completed")]:
            await clock.advance(seconds)
            info = await client.get(job)
            print(f"{clock.now():%H:%M:%S} {info.state}")
            assert info.state == state
    assert await client.wait(job, timeout=0) == "Ann is reminded"


asyncio.run(main())
