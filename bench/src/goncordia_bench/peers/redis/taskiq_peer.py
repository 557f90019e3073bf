"""Taskiq with the stream broker of taskiq-redis. It acknowledges after the work.

Settings: no result backend, unless told; 100 tasks at once (its own default), and as many fetched
beyond them. Types of the args are not checked anew. A message that nobody acknowledged is taken
over after ``idle_timeout``, 10 min unless told, and only when another message comes.
"""
# mypy: disable-error-code="import-not-found,untyped-decorator"
# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

from goncordia_bench.harness.peer import Args, Peer, Producer, run

__all__ = ["TaskiqPeer"]


class _TaskiqProducer(Producer):
    def __init__(self, task: Any) -> None:
        self._task = task

    async def enqueue(self, job: Args) -> None:
        await self._task.kiq(to=job.to, subject=job.subject, n=job.n)

    async def enqueue_many(self, jobs: Sequence[Args]) -> None:
        # It knows no batch; its connection pool is asked by many at once.
        for begin in range(0, len(jobs), 20):
            await asyncio.gather(*(self.enqueue(job) for job in jobs[begin : begin + 20]))


class TaskiqPeer(Peer):
    ways = ("async",)
    concurrency = 100  # jobs/s in a sweep: 20 4.4k, 100 5.2k, 200 5.0k, 1000 4.6k

    def _broker(self) -> tuple[Any, Any]:
        broker = RedisStreamBroker(self.url, consumer_id="0")

        @broker.task(task_name="email")
        async def email(*, to: str, subject: str, n: int) -> None:
            del to, subject
            await self.async_job(n)

        return broker, email

    @asynccontextmanager
    async def producer(self) -> AsyncIterator[Producer]:
        broker, task = self._broker()
        await broker.startup()
        yield _TaskiqProducer(task)
        await broker.shutdown()

    def work(self) -> None:
        async def main() -> None:
            broker, _ = self._broker()
            broker.is_worker_process = True
            await run_receiver_task(
                broker,
                validate_params=False,
                max_async_tasks=self.concurrency,
                max_prefetch=self.concurrency,
                run_startup=True,
            )

        run(main())
