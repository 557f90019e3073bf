"""procrastinate: tasks on psycopg. A worker claims and finishes each job by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import procrastinate
import psycopg

from goncordia_bench.harness.system import Finish, Handler, Producer, System, nothing_more
from goncordia_bench.payload import Email

__all__ = ["ProcrastinateSystem"]


def _given(args: Email) -> dict[str, Any]:
    return {"to": args.to, "subject": args.subject, "n": args.n}


class _ProcrastinateProducer(Producer):
    def __init__(self, task: Any, connection: psycopg.AsyncConnection[Any]) -> None:
        self._task = task
        self._connection = connection

    async def enqueue(self, args: Email) -> None:
        await self._task.defer_async(**_given(args))

    async def enqueue_tx(self, args: Email) -> None:
        async with self._connection.transaction():
            await self._connection.execute("INSERT INTO orders (n) VALUES (%s)", (args.n,))
            deferrer = self._task.configure(connection=self._connection)
            await deferrer.defer_async(**_given(args))

    async def enqueue_many(self, jobs: Sequence[Email]) -> None:
        await self._task.batch_defer_async(*(_given(args) for args in jobs))


class ProcrastinateSystem(System):
    name = "procrastinate"
    # Jobs/s in a sweep of 3,000 jobs, each setting once a round, medians of five rounds: 1 0.71k,
    # 2 1.07k, 3 1.05k, 5 1.00k, 20 0.88k.
    concurrency = 2

    async def install(self) -> None:
        async with self._app(1).open_async() as app:
            await app.schema_manager.apply_schema_async()

    def _app(self, connections: int) -> procrastinate.App:
        connector = procrastinate.PsycopgConnector(
            conninfo=self.dsn, min_size=connections, max_size=connections
        )
        return procrastinate.App(connector=connector)

    @asynccontextmanager
    async def producer(self, connections: int = 1) -> AsyncIterator[Producer]:
        async def email(to: str, subject: str, n: int) -> None:
            """Only enqueued here."""

        app = self._app(connections)
        task = app.task(name=Email.kind)(email)
        async with (
            app.open_async(),
            await psycopg.AsyncConnection.connect(self.dsn, autocommit=True) as connection,
        ):
            yield _ProcrastinateProducer(task, connection)

    @asynccontextmanager
    async def worker(
        self, handler: Handler, concurrency: int | None = None
    ) -> AsyncIterator[Finish]:
        async def email(to: str, subject: str, n: int) -> None:
            del to, subject
            await handler(n)

        at_once = concurrency or self.concurrency
        app = self._app(min(at_once, 20))
        app.task(name=Email.kind)(email)
        async with app.open_async():
            running = asyncio.create_task(
                app.run_worker_async(concurrency=at_once, install_signal_handlers=False)
            )
            try:
                yield nothing_more
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
