"""Run by CI with nothing installed but this package's wheel and what it asks for."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import dataclass
from typing import ClassVar

import goncordia
from goncordia import Client, Job, Registry, SyncClient, WorkerPool
from goncordia_driver_sqlite import SqliteDriver


@dataclass
class Note:
    kind: ClassVar[str] = "note"
    text: str


registry = Registry()
seen: list[str] = []


@registry.worker(Note)
async def note(job: Job[Note]) -> None:
    seen.append(job.args.text)


async def main() -> None:
    async with SqliteDriver("jobs.db") as driver:
        await driver.migrate()
        await Client(driver).enqueue(Note("by itself"))
        sync = SyncClient(driver)
        with sqlite3.connect("jobs.db", isolation_level=None) as connection:
            for text, ending in (("committed", "COMMIT"), ("rolled back", "ROLLBACK")):
                connection.execute("BEGIN IMMEDIATE")
                sync.enqueue_tx(connection, Note(text))
                connection.execute(ending)
        connection.close()
        async with WorkerPool(driver, registry, queues=["default"]) as pool:
            await pool.drain()
    assert sorted(seen) == ["by itself", "committed"], seen


asyncio.run(main())
assert isinstance(goncordia.connect("sqlite:///jobs.db"), SqliteDriver)
