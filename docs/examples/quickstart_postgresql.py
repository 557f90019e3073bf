"""An order and its confirmation in one transaction of PostgreSQL, and the worker that sends it."""

import asyncio
import os
from dataclasses import dataclass
from typing import ClassVar

import asyncpg

from goncordia import Client, Job, Registry, WorkerPool
from goncordia_driver_pg import AsyncpgDriver


@dataclass
class SendConfirmation:
    kind: ClassVar[str] = "send_confirmation"
    order_id: int
    email: str


registry = Registry()


@registry.worker(SendConfirmation, max_attempts=5, timeout=30)
async def send_confirmation(job: Job[SendConfirmation]) -> None:
    print(f"to {job.args.email}: thank you for order {job.args.order_id}")


async def main() -> None:
    async with (
        asyncpg.create_pool(os.environ["DATABASE_URL"]) as pool,
        AsyncpgDriver(pool) as driver,
    ):
        await driver.migrate()
        client = Client(driver)
        await pool.execute(
            "CREATE TABLE IF NOT EXISTS orders"
            " (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text NOT NULL)"
        )

        async with pool.acquire() as connection, connection.transaction():
            order_id = await connection.fetchval(
                "INSERT INTO orders (item) VALUES ($1) RETURNING id", "teapot"
            )
            await client.enqueue_tx(connection, SendConfirmation(order_id, "ann@example.com"))
        # Both are committed now; had anything failed above, neither would be there.

        async with WorkerPool(driver, registry, queues=["default"], concurrency=10) as workers:
            await workers.drain()  # in production: await workers.run(), until SIGTERM comes


asyncio.run(main())
