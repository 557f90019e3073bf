"""A worker process that notes when its handlers start: ``python -m goncordia_bench.ours.consumer``.

It looks what it costs while it has nothing to do, says "ready", works until a line comes, then
tells as JSON that cost and the starts.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from goncordia import Job, Registry, WorkerPool
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import IDLE_SECONDS, SETTLE_SECONDS, Email
from goncordia_driver_sqlite import SqliteDriver


async def _main(path: str) -> None:
    starts: dict[int, int] = {}
    registry = Registry()

    @registry.worker(Email)
    async def email(job: Job[Email]) -> None:
        starts[job.args.n] = time.monotonic_ns()

    async with SqliteDriver(path) as driver, WorkerPool(driver, registry):
        await asyncio.sleep(SETTLE_SECONDS)
        before = time.process_time()
        await asyncio.sleep(IDLE_SECONDS)
        idle = (time.process_time() - before) / IDLE_SECONDS
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    print(json.dumps({"idle": idle, "starts": starts}), flush=True)


if __name__ == "__main__":
    run(_main(sys.argv[1]))
