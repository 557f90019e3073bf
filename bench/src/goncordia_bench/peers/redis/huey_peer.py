"""huey on Redis: a list of pickled tasks, worked by threads.

A task is gone from the list when it is taken: it acknowledges before the work, and a worker that is
killed loses what it had.

Settings: no results, nothing periodic.
"""
# mypy: disable-error-code="import-not-found,untyped-decorator"
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from huey import RedisHuey

from goncordia_bench.harness.peer import Args, Peer, SyncProducer, forever

__all__ = ["HueyPeer"]


class _HueyProducer(SyncProducer):
    def __init__(self, task: Any) -> None:
        self._task = task

    def enqueue(self, job: Args) -> None:
        self._task(to=job.to, subject=job.subject, n=job.n)

    def enqueue_many(self, jobs: Sequence[Args]) -> None:
        for job in jobs:  # it knows no batch
            self.enqueue(job)


class HueyPeer(Peer):
    ways = ("sync",)
    concurrency = 2  # jobs/s in a sweep: 1 6.3k, 2 7.3k, 4 7.2k, 8 4.0k

    def _huey(self) -> tuple[Any, Any]:
        huey = RedisHuey(url=self.url, results=False)

        def email(to: str, subject: str, n: int) -> None:
            del to, subject
            self.job(n)

        return huey, huey.task(name="email")(email)

    @contextmanager
    def sync_producer(self) -> Iterator[SyncProducer]:
        _, task = self._huey()
        yield _HueyProducer(task)

    def work(self) -> None:
        huey, _ = self._huey()
        consumer = huey.create_consumer(
            workers=self.concurrency, periodic=False, check_worker_health=False
        )
        consumer._set_signal_handlers = lambda: None
        consumer.start()
        forever()
