"""A mail that nobody waits for: its job in Redis or Valkey, and the worker that sends it."""

import asyncio
import os
from dataclasses import dataclass
from typing import ClassVar

from goncordia import Client, Job, Registry, WorkerPool
from goncordia_driver_redis import RedisDriver


@dataclass
class SendWelcome:
    kind: ClassVar[str] = "send_welcome"
    user_id: int
    email: str


registry = Registry()


@registry.worker(SendWelcome, max_attempts=5, timeout=30)
async def send_welcome(job: Job[SendWelcome]) -> None:
    print(f"to {job.args.email}: welcome, user {job.args.user_id}")


async def main() -> None:
    async with RedisDriver(os.environ["REDIS_URL"]) as driver:
        await driver.migrate()
        client = Client(driver)

        await client.enqueue(SendWelcome(1, "ann@example.com"))
        await client.enqueue(SendWelcome(2, "bob@example.com"), delay=0.2, priority=5)

        async with WorkerPool(driver, registry, queues=["default"], concurrency=10) as pool:
            await pool.drain(within=60)  # in production: await pool.run(), until SIGTERM comes


asyncio.run(main())
