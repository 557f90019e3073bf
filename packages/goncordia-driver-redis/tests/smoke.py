"""Run by CI with nothing installed but this package's wheel and what it asks for."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import ClassVar

import goncordia
from goncordia import Client, Job, Registry, SyncClient, WorkerPool
from goncordia.errors import DriverUnavailableError
from goncordia_driver_redis import RedisDriver


@dataclass
class Note:
    kind: ClassVar[str] = "note"
    text: str


registry = Registry()
seen: list[str] = []


@registry.worker(Note)
async def note(job: Job[Note]) -> None:
    seen.append(job.args.text)


async def main(url: str) -> None:
    async with RedisDriver(url, prefix=f"smoke-{os.getpid()}") as driver:
        await driver.migrate()
        handle = await Client(driver).enqueue(Note("by itself"))
        await asyncio.to_thread(SyncClient(driver).enqueue, Note("synchronous"))
        async with WorkerPool(driver, registry, queues=["default"]) as pool:
            await pool.drain()
        info = await Client(driver).get(handle.id)
        assert info is not None
        assert info.state == "completed", info
    assert sorted(seen) == ["by itself", "synchronous"], seen


async def without_a_server() -> None:
    driver = RedisDriver("redis://127.0.0.1:1")
    assert "schema" in driver.migration_script()
    try:
        await driver.open()
    except DriverUnavailableError:
        return
    raise AssertionError("nothing listens on port 1")


asyncio.run(without_a_server())
if url := os.environ.get("GONCORDIA_TEST_REDIS_DSN"):
    asyncio.run(main(url))
assert isinstance(goncordia.connect("redis://h/0"), RedisDriver)
