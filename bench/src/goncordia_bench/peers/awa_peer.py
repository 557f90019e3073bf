"""awa: an engine in Rust with handlers in Python; a deadline on every job as it comes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import awa
import awa.bridge

from goncordia_bench.harness.system import Finish, Handler, Producer, System, nothing_more
from goncordia_bench.payload import QUEUE, Email

__all__ = ["AwaSystem"]


class _AwaProducer(Producer):
    def __init__(self, client: awa.AsyncClient, connection: asyncpg.Connection) -> None:
        self._client = client
        self._connection = connection

    async def enqueue(self, args: Email) -> None:
        await self._client.insert(args, queue=QUEUE)

    async def enqueue_tx(self, args: Email) -> None:
        async with self._connection.transaction():
            await self._connection.execute("INSERT INTO orders (n) VALUES ($1)", args.n)
            await awa.bridge.insert_job(self._connection, args, queue=QUEUE)

    async def enqueue_many(self, jobs: Sequence[Email]) -> None:
        await self._client.enqueue_many_copy(list(jobs), queue=QUEUE)


class AwaSystem(System):
    name = "awa"
    # Jobs/s in a sweep of 20,000 jobs, each setting once a round, medians of five rounds: 200 6.7k,
    # 500 7.5k, 1000 7.3k, 2000 6.9k. In single runs more claimers and larger claims (`claimers`,
    # `claim_batch_size`) gave no more at 200 and 1000.
    concurrency = 500

    async def install(self) -> None:
        async with awa.AsyncClient(self.dsn) as client:
            await client.migrate()
            await client.install_queue_storage(schema="awa")

    @asynccontextmanager
    async def producer(self, connections: int = 1) -> AsyncIterator[Producer]:
        connection = await asyncpg.connect(self.dsn)
        try:
            async with awa.AsyncClient(self.dsn, max_connections=connections) as client:
                yield _AwaProducer(client, connection)
        finally:
            await connection.close()

    @asynccontextmanager
    async def worker(
        self, handler: Handler, concurrency: int | None = None
    ) -> AsyncIterator[Finish]:
        async with awa.AsyncClient(self.dsn, max_connections=20) as client:

            @client.task(Email, queue=QUEUE)
            async def email(job: Any) -> None:
                await handler(job.args.n)

            await client.start([(QUEUE, concurrency or self.concurrency)])
            try:
                yield nothing_more
            finally:
                await client.shutdown()
