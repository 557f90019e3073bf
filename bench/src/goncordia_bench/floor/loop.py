"""The bare loop: what running a job costs before there is a queue at all."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any, Final

import msgspec

from goncordia_bench.payload import ARGS, Email

__all__ = ["bare_loop"]

_AT_ONCE: Final = 100


class _Job:
    __slots__ = ("args",)

    def __init__(self, args: Any) -> None:
        self.args = args


async def _handler(job: _Job) -> None:
    assert job.args is not None


async def bare_loop(jobs: int, *, decode: bool = True, timeout: bool = True) -> float:
    """Decode the args of each job and run it in a task under ``asyncio.timeout``, 100 at a time.

    Args:
        jobs: how many.
        decode: False: the args are there already.
        timeout: False: without ``asyncio.timeout``.

    Returns:
        Seconds.
    """
    decoder = msgspec.json.Decoder(Email)
    ready = decoder.decode(ARGS)
    done = 0

    async def run() -> None:
        nonlocal done
        job = _Job(decoder.decode(ARGS) if decode else ready)
        if timeout:
            async with asyncio.timeout(30):
                await _handler(job)
        else:
            await _handler(job)
        done += 1

    create_task = asyncio.get_running_loop().create_task

    gc.collect()
    started = time.perf_counter()
    for begin in range(0, jobs, _AT_ONCE):
        for _ in range(min(_AT_ONCE, jobs - begin)):
            create_task(run())  # it never waits, and is done after one turn of the loop
        await asyncio.sleep(0)
    seconds = time.perf_counter() - started
    assert done == jobs
    return seconds
