"""Run by CI with nothing installed but this package's wheel and what it asks for."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import ClassVar

import asyncpg

import goncordia
from goncordia import Client, Job, Registry, SyncClient, WorkerPool
from goncordia.errors import DriverUnavailableError
from goncordia_driver_pg import AsyncpgDriver


@dataclass
class Note:
    kind: ClassVar[str] = "note"
    text: str


registry = Registry()
seen: list[str] = []


@registry.worker(Note)
async def note(job: Job[Note]) -> None:
    seen.append(job.args.text)


async def main(dsn: str) -> None:
    async with AsyncpgDriver(dsn, schema="goncordia smoke") as driver:
        await driver.migrate()
        await Client(driver).enqueue(Note("by itself"))
        await asyncio.to_thread(SyncClient(driver).enqueue, Note("synchronous"))
        connection = await asyncpg.connect(dsn)
        for text, commits in (("committed", True), ("rolled back", False)):
            transaction = connection.transaction()
            await transaction.start()
            await Client(driver).enqueue_tx(connection, Note(text))
            await (transaction.commit() if commits else transaction.rollback())
        async with WorkerPool(driver, registry, queues=["default"]) as pool:
            await pool.drain()
        await connection.execute('DROP SCHEMA "goncordia smoke" CASCADE')
        await connection.close()
    assert sorted(seen) == ["by itself", "committed", "synchronous"], seen


async def without_a_server() -> None:
    driver = AsyncpgDriver("postgresql://postgres@127.0.0.1:1/postgres")
    assert "CREATE TABLE" in driver.migration_script()
    try:
        await driver.open()
    except DriverUnavailableError:
        return
    raise AssertionError("nothing listens on port 1")


asyncio.run(without_a_server())
if dsn := os.environ.get("GONCORDIA_TEST_PG_DSN"):
    asyncio.run(main(dsn))
assert isinstance(goncordia.connect("postgresql://h/d"), AsyncpgDriver)
