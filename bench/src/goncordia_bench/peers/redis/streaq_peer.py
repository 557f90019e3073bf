"""streaQ: streams, functions on the server, coredis. It acknowledges after the work.

Settings: no results (``ttl=0``, ``silent``). What a dead worker ran is taken over after
``idle_timeout``, 60 s unless told.
"""
# mypy: disable-error-code="import-not-found,untyped-decorator"
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from streaq import Worker

from goncordia_bench.harness.peer import Args, Peer, Producer, run

__all__ = ["StreaqPeer"]


class _StreaqProducer(Producer):
    def __init__(self, worker: Any, task: Any) -> None:
        self._worker = worker
        self._task = task

    async def enqueue(self, job: Args) -> None:
        await self._task.enqueue(to=job.to, subject=job.subject, n=job.n)

    async def enqueue_many(self, jobs: Sequence[Args]) -> None:
        await self._worker.enqueue_many(
            [self._task.enqueue(to=job.to, subject=job.subject, n=job.n) for job in jobs]
        )


class StreaqPeer(Peer):
    ways = ("async",)
    concurrency = 50  # jobs/s in a sweep: 16 1.2k, 50 1.6k, 100 1.7k, 200 1.2k

    def _worker(self) -> tuple[Any, Any]:
        worker = Worker(
            redis_url=self.url,
            concurrency=self.concurrency,
            handle_signals=False,
            anyio_kwargs={"use_uvloop": True},
        )

        @worker.task(name="email", silent=True, ttl=0)
        async def email(*, to: str, subject: str, n: int) -> None:
            del to, subject
            await self.async_job(n)

        return worker, email

    @asynccontextmanager
    async def producer(self) -> AsyncIterator[Producer]:
        worker, task = self._worker()
        async with worker:
            yield _StreaqProducer(worker, task)

    def work(self) -> None:
        worker, _ = self._worker()
        run(worker.run_async())
