"""SAQ: a list of ids and a string of JSON for each job. It acknowledges after the work.

Settings: its README advises hiredis; results are not kept (``ttl=-1``). A job that is to run again
after its worker died needs ``retries``, and then a timeout (10 s unless told) and the sweep that
looks for such jobs (every 60 s) have to pass.
"""
# mypy: disable-error-code="import-not-found,untyped-decorator"
# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from saq import Queue, Worker

from goncordia_bench.harness.peer import Args, Peer, Producer, run

__all__ = ["SaqPeer"]

_OPTIONS: Final = {"ttl": -1, "retries": 2}


class _SaqProducer(Producer):
    def __init__(self, queue: Any) -> None:
        self._queue = queue

    async def enqueue(self, job: Args) -> None:
        await self._queue.enqueue("email", to=job.to, subject=job.subject, n=job.n, **_OPTIONS)

    async def enqueue_many(self, jobs: Sequence[Args]) -> None:
        # It knows no batch; its connection pool is asked by many at once.
        await asyncio.gather(*(self.enqueue(job) for job in jobs))


class SaqPeer(Peer):
    ways = ("async",)
    concurrency = 50  # jobs/s in a sweep: 10 3.1k, 20 3.1k, 50 3.5k, 100 3.1k, 200 2.9k

    @asynccontextmanager
    async def producer(self) -> AsyncIterator[Producer]:
        queue = Queue.from_url(self.url)
        await queue.connect()
        yield _SaqProducer(queue)
        await queue.disconnect()

    def work(self) -> None:
        async def email(ctx: object, *, to: str, subject: str, n: int) -> None:
            del ctx, to, subject
            await self.async_job(n)

        async def main() -> None:
            queue = Queue.from_url(self.url)
            await queue.connect()
            worker = Worker(queue, [("email", email)], concurrency=self.concurrency)
            await worker.start()

        run(main())
