"""An order and its confirmation in one transaction, and the worker that sends it."""

import asyncio
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID, uuid4

import aiosqlite

from goncordia import Client, Job, Registry, WorkerPool
from goncordia_driver_sqlite import SqliteDriver


@dataclass
class SendConfirmation:
    kind: ClassVar[str] = "send_confirmation"
    order_id: UUID
    email: str


registry = Registry()


@registry.worker(SendConfirmation, max_attempts=5, timeout=30)
async def send_confirmation(job: Job[SendConfirmation]) -> None:
    print(f"to {job.args.email}: thank you for order {job.args.order_id}")


async def main() -> None:
    async with SqliteDriver("shop.db") as driver:
        await driver.migrate()
        client = Client(driver)

        async with aiosqlite.connect("shop.db") as db:
            await db.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, item TEXT)")
            order_id = uuid4()
            await db.execute("INSERT INTO orders VALUES (?, ?)", (str(order_id), "teapot"))
            await client.enqueue_tx(db, SendConfirmation(order_id, "ann@example.com"))
            await db.commit()  # the order and its job are there, or neither is

        async with WorkerPool(driver, registry, queues=["default"], concurrency=10) as pool:
            await pool.drain()  # in production: await pool.run(), until SIGTERM comes


asyncio.run(main())
