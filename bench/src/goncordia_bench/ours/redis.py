"""Ours on Redis, with the pool's defaults but for the concurrency."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from goncordia import Client, Job, Registry, SyncClient, WorkerPool
from goncordia_bench.harness.peer import Args, Peer, Producer, SyncProducer, run
from goncordia_bench.payload import Email
from goncordia_driver_redis import RedisDriver

__all__ = ["GoncordiaPeer"]

_TIMEOUT = 30.0


def _email(job: Args) -> Email:
    return Email(job.to, job.subject, job.n)


class _GoncordiaProducer(Producer):
    def __init__(self, driver: RedisDriver) -> None:
        self._client = Client(driver)

    async def enqueue(self, job: Args) -> None:
        await self._client.enqueue(_email(job))

    async def enqueue_many(self, jobs: Sequence[Args]) -> None:
        await self._client.enqueue_many([_email(job) for job in jobs])


class _GoncordiaSyncProducer(SyncProducer):
    def __init__(self, driver: RedisDriver) -> None:
        self._client = SyncClient(driver)

    def enqueue(self, job: Args) -> None:
        self._client.enqueue(_email(job))

    def enqueue_many(self, jobs: Sequence[Args]) -> None:
        self._client.enqueue_many([_email(job) for job in jobs])


class GoncordiaPeer(Peer):
    """A worker pool with a timeout of 30 s on every job."""

    ways = ("async", "sync")
    concurrency = 200

    def install(self) -> None:
        """Run the migrations."""
        with RedisDriver(self.url) as driver:
            driver.migrate_sync()

    @asynccontextmanager
    async def producer(self) -> AsyncIterator[Producer]:
        async with RedisDriver(self.url) as driver:
            yield _GoncordiaProducer(driver)

    @contextmanager
    def sync_producer(self) -> Iterator[SyncProducer]:
        with RedisDriver(self.url) as driver:
            yield _GoncordiaSyncProducer(driver)

    def work(self) -> None:
        registry = Registry()

        @registry.worker(Email, timeout=None if self.hold else _TIMEOUT)
        async def email(job: Job[Email]) -> None:
            await self.async_job(job.args.n)

        async def main() -> None:
            async with RedisDriver(self.url) as driver:
                if self.lease is None:
                    pool = WorkerPool(driver, registry, concurrency=self.concurrency)
                else:
                    pool = WorkerPool(
                        driver,
                        registry,
                        concurrency=self.concurrency,
                        lease=self.lease,
                        heartbeat_interval=self.lease / 4,
                        rescue_interval=self.lease / 2,
                    )
                await pool.run()

        run(main())
