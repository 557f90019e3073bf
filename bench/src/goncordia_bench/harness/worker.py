"""A worker process on PostgreSQL: ``python -m goncordia_bench.harness.worker SYSTEM DSN …``.

By default it looks what it costs while it has nothing to do, says "ready", works until a line
comes, then tells as JSON that cost and when which handler started. With ``--drain`` it says
"ready", waits for a line, works off what is there, and tells which jobs it worked until when.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time

from goncordia_bench.harness.system import System
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import IDLE_SECONDS, SETTLE_SECONDS
from goncordia_bench.systems import system_of


async def _watch(system: System) -> None:
    starts: dict[int, int] = {}

    async def handler(n: int) -> None:
        starts[n] = time.monotonic_ns()

    async with system.worker(handler):
        await asyncio.sleep(SETTLE_SECONDS)
        before = time.process_time()
        await asyncio.sleep(IDLE_SECONDS)
        idle = (time.process_time() - before) / IDLE_SECONDS
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    print(json.dumps({"idle": idle, "starts": starts}), flush=True)


async def _drain(system: System, concurrency: int, pause: float) -> None:
    worked: list[int] = []
    last = 0

    async def handler(n: int) -> None:
        nonlocal last
        if pause:
            await asyncio.sleep(pause)
        worked.append(n)
        last = time.monotonic_ns()

    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    async with system.worker(handler, concurrency) as finish:
        await finish()
    print(json.dumps({"worked": worked, "last": last}), flush=True)


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("system")
    parser.add_argument("dsn")
    parser.add_argument("--drain", action="store_true")
    parser.add_argument("--concurrency", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.0)
    given = parser.parse_args()
    system = system_of(given.system)(given.dsn)
    if given.drain:
        run(_drain(system, given.concurrency or system.concurrency, given.pause))
    else:
        run(_watch(system))


if __name__ == "__main__":
    _main()
