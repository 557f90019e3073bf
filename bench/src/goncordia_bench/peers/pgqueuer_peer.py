"""PgQueuer: a queue on asyncpg. A job that succeeded is deleted, and a row of its log written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import asyncpg
import msgspec
from pgqueuer import AsyncpgDriver, AsyncpgPoolDriver, PgQueuer, Queries
from pgqueuer.models import Job

from goncordia_bench.harness.system import Finish, Handler, Producer, System, nothing_more
from goncordia_bench.payload import Email

__all__ = ["PgQueuerSystem"]

_MANAGERS: Final = 2
_encode = msgspec.json.Encoder().encode


class _PgQueuerProducer(Producer):
    def __init__(self, queries: Queries, connection: asyncpg.Connection) -> None:
        self._queries = queries
        self._connection = connection
        self._in_transaction = Queries(AsyncpgDriver(connection))

    async def enqueue(self, args: Email) -> None:
        await self._queries.enqueue(Email.kind, _encode(args))

    async def enqueue_tx(self, args: Email) -> None:
        async with self._connection.transaction():
            await self._connection.execute("INSERT INTO orders (n) VALUES ($1)", args.n)
            await self._in_transaction.enqueue(Email.kind, _encode(args))

    async def enqueue_many(self, jobs: Sequence[Email]) -> None:
        await self._queries.enqueue(
            [Email.kind] * len(jobs), [_encode(args) for args in jobs], [0] * len(jobs)
        )


class PgQueuerSystem(System):
    """So many managers, each with a connection of its own, as in its own benchmark."""

    name = "pgqueuer"
    # Its batch. Jobs/s in a sweep of 40,000 jobs, each setting once a round, medians of five
    # rounds, by managers and batch: 1 and 200 18.3k, 1 and 400 17.9k, 2 and 200 18.2k, 2 and 400
    # 18.3k, 1 and 800 16.6k, 2 and 800 17.1k: the first four are one within what they swing by.
    concurrency = 200

    async def install(self) -> None:
        connection = await asyncpg.connect(self.dsn)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    @asynccontextmanager
    async def producer(self, connections: int = 1) -> AsyncIterator[Producer]:
        async with AsyncExitStack() as stack:
            connection = await asyncpg.connect(self.dsn)
            stack.push_async_callback(connection.close)
            if connections == 1:
                queries = Queries(AsyncpgDriver(connection))
            else:
                pool = await stack.enter_async_context(
                    asyncpg.create_pool(self.dsn, min_size=connections, max_size=connections)
                )
                queries = Queries(AsyncpgPoolDriver(pool))
            yield _PgQueuerProducer(queries, connection)

    @asynccontextmanager
    async def worker(
        self, handler: Handler, concurrency: int | None = None
    ) -> AsyncIterator[Finish]:
        decode = msgspec.json.Decoder(Email).decode

        async def email(job: Job) -> None:
            await handler(decode(job.payload or b"").n)

        batch = concurrency or self.concurrency
        async with AsyncExitStack() as stack:
            managers: list[PgQueuer] = []
            for _ in range(_MANAGERS):
                connection = await asyncpg.connect(self.dsn)
                stack.push_async_callback(connection.close)
                manager = PgQueuer(AsyncpgDriver(connection))
                manager.entrypoint(Email.kind)(email)
                managers.append(manager)
            running = [asyncio.create_task(manager.run(batch_size=batch)) for manager in managers]
            try:
                yield nothing_more
            finally:
                for manager in managers:
                    manager.shutdown.set()
                await asyncio.gather(*running)
