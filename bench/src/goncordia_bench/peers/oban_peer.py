"""Oban for Python: on psycopg; it needs Python 3.12."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool

from goncordia_bench.harness.system import Finish, Handler, Producer, System, nothing_more
from goncordia_bench.payload import QUEUE, Email

__all__ = ["ObanSystem"]


def _given(args: Email) -> dict[str, Any]:
    return {"to": args.to, "subject": args.subject, "n": args.n}


def _worker_of(handler: Handler | None, timeout: float = 30.0) -> Any:
    # By name: in older Pythons it is not installed, so type checkers need not know it.
    oban: Any = import_module("oban")

    class EmailWorker:
        async def process(self, job: Any) -> None:
            assert handler is not None
            await handler(job.args["n"])

        def timeout(self, job: Any) -> float:
            return timeout

    return oban.worker(queue=QUEUE)(EmailWorker)


class _ObanProducer(Producer):
    def __init__(self, oban: Any, connection: psycopg.AsyncConnection[Any]) -> None:
        self._oban = oban
        self._connection = connection
        self._worker = _worker_of(None)

    async def enqueue(self, args: Email) -> None:
        await self._oban.enqueue(self._worker.new(_given(args)))

    async def enqueue_tx(self, args: Email) -> None:
        async with self._connection.transaction():
            await self._connection.execute("INSERT INTO orders (n) VALUES (%s)", (args.n,))
            await self._oban.enqueue(self._worker.new(_given(args)), conn=self._connection)

    async def enqueue_many(self, jobs: Sequence[Email]) -> None:
        await self._oban.enqueue_many([self._worker.new(_given(args)) for args in jobs])


class ObanSystem(System):
    name = "oban"
    # Jobs/s in a sweep of 12,000 jobs, each setting once a round, medians of five rounds: 50 3.4k,
    # 100 4.1k, 200 3.3k, 400 3.7k.
    concurrency = 100

    async def install(self) -> None:
        schema: Any = import_module("oban.schema")
        async with AsyncConnectionPool(self.dsn, min_size=1, max_size=1) as pool:
            await schema.install(pool)

    @asynccontextmanager
    async def producer(self, connections: int = 1) -> AsyncIterator[Producer]:
        oban: Any = import_module("oban")
        async with (
            AsyncConnectionPool(self.dsn, min_size=connections, max_size=connections) as pool,
            await psycopg.AsyncConnection.connect(self.dsn, autocommit=True) as connection,
        ):
            yield _ObanProducer(oban.Oban(pool=pool), connection)

    @asynccontextmanager
    async def worker(
        self, handler: Handler, concurrency: int | None = None
    ) -> AsyncIterator[Finish]:
        oban: Any = import_module("oban")
        _worker_of(handler)
        limit = concurrency or self.concurrency
        async with (
            AsyncConnectionPool(self.dsn, min_size=5, max_size=10) as pool,
            oban.Oban(pool=pool, queues={QUEUE: limit}),
        ):
            yield nothing_more
