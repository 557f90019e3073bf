"""Ours on PostgreSQL, over asyncpg."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg

from goncordia import Client, Job, Registry, WorkerPool
from goncordia_bench.harness.system import Finish, Handler, Producer, System
from goncordia_bench.payload import Email
from goncordia_driver_pg import AsyncpgDriver

__all__ = ["GoncordiaOnPoolSystem", "GoncordiaSystem", "driver_of", "migrated"]


def driver_of(dsn: str) -> AsyncpgDriver:
    """A driver with a pool of its own."""
    return AsyncpgDriver(dsn)


async def migrated(dsn: str) -> None:
    """Make the driver's tables."""
    async with driver_of(dsn) as driver:
        await driver.migrate()


class _GoncordiaProducer(Producer):
    def __init__(self, driver: AsyncpgDriver, connection: asyncpg.Connection) -> None:
        self._client = Client(driver)
        self._connection = connection

    async def enqueue(self, args: Email) -> None:
        await self._client.enqueue(args)

    async def enqueue_tx(self, args: Email) -> None:
        async with self._connection.transaction():
            await self._connection.execute("INSERT INTO orders (n) VALUES ($1)", args.n)
            await self._client.enqueue_tx(self._connection, args)

    async def enqueue_many(self, jobs: Sequence[Email]) -> None:
        await self._client.enqueue_many(jobs)


class GoncordiaSystem(System):
    """A worker pool with a timeout of 30 s on every job."""

    name = "goncordia"
    # Jobs/s in a sweep, the better of two: 100 55.9k, 200 56.4k, 400 56.1k, 1000 57.1k.
    concurrency = 200

    async def install(self) -> None:
        """Run the migrations."""
        await migrated(self.dsn)

    @asynccontextmanager
    async def producer(self, connections: int = 1) -> AsyncIterator[Producer]:
        """A client over a pool of so many connections, the driver's own."""
        connection = await asyncpg.connect(self.dsn)
        try:
            async with AsyncpgDriver(self.dsn, pool_size=connections) as driver:
                yield _GoncordiaProducer(driver, connection)
        finally:
            await connection.close()

    @asynccontextmanager
    async def worker(
        self, handler: Handler, concurrency: int | None = None
    ) -> AsyncIterator[Finish]:
        """A worker pool; the time runs until the last result is committed."""
        registry = Registry()

        @registry.worker(Email, timeout=30.0)
        async def email(job: Job[Email]) -> None:
            await handler(job.args.n)

        async with (
            driver_of(self.dsn) as driver,
            WorkerPool(driver, registry, concurrency=concurrency or self.concurrency) as pool,
        ):
            yield pool.drain


class GoncordiaOnPoolSystem(GoncordiaSystem):
    """The same over a pool of the user's, which cleans each connection up when it comes back."""

    name = "goncordia, your pool"

    @asynccontextmanager
    async def producer(self, connections: int = 1) -> AsyncIterator[Producer]:
        """A client over a pool of asyncpg as it comes."""
        connection = await asyncpg.connect(self.dsn)
        try:
            async with (
                asyncpg.create_pool(self.dsn, min_size=connections, max_size=connections) as pool,
                AsyncpgDriver(pool) as driver,
            ):
                yield _GoncordiaProducer(driver, connection)
        finally:
            await connection.close()
