"""arq: a sorted set of ids and a pickled string for each job. It acknowledges after the work.

Settings: no results (``keep_result=0``) and no log lines of them. It looks for jobs every 0.5 s
(``poll_delay``), or at once while it finds some. What a dead worker ran is run again when its mark
expires: the timeout (300 s unless told) and 10 s later.
"""
# mypy: disable-error-code="import-not-found,untyped-decorator"
# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

from goncordia_bench.harness.peer import Args, Peer, Producer, run

__all__ = ["ArqPeer"]


class _ArqProducer(Producer):
    def __init__(self, pool: Any) -> None:
        self._pool = pool

    async def enqueue(self, job: Args) -> None:
        await self._pool.enqueue_job("email", to=job.to, subject=job.subject, n=job.n)

    async def enqueue_many(self, jobs: Sequence[Args]) -> None:
        # It knows no batch; its connection pool is asked by many at once.
        for begin in range(0, len(jobs), 20):
            await asyncio.gather(*(self.enqueue(job) for job in jobs[begin : begin + 20]))


class ArqPeer(Peer):
    ways = ("async",)
    concurrency = 500  # jobs/s in a sweep: 100 1.0k, 500 3.7k, 1000 3.6k, 4000 3.6k

    @asynccontextmanager
    async def producer(self) -> AsyncIterator[Producer]:
        pool = await create_pool(RedisSettings.from_dsn(self.url))
        yield _ArqProducer(pool)
        await pool.aclose()

    def work(self) -> None:
        async def email(ctx: object, *, to: str, subject: str, n: int) -> None:
            del ctx, to, subject
            await self.async_job(n)

        async def main() -> None:
            worker = Worker(
                [func(email, name="email")],
                redis_settings=RedisSettings.from_dsn(self.url),
                max_jobs=self.concurrency,
                keep_result=0,
                log_results=False,
                handle_signals=False,
            )
            await worker.async_run()

        run(main())
