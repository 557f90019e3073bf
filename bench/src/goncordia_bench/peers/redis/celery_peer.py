"""Celery on Redis, by kombu.

Settings, from its guide of optimizing: no result backend and ``ignore_result``, no events, no
gossip, mingle or heartbeat between workers, a prefetch of many for jobs that are short, threads.
``acks_late``, which it advises for tasks that may run twice, so that it acknowledges after the work
as the others do. What a dead worker had is given back after the ``visibility_timeout``, 1 h unless
told.
"""
# mypy: disable-error-code="import-not-found,untyped-decorator"
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from celery import Celery

from goncordia_bench.harness.peer import Args, Peer, SyncProducer

__all__ = ["CeleryPeer"]


class _CeleryProducer(SyncProducer):
    def __init__(self, task: Any, producer: Any) -> None:
        self._task = task
        self._producer = producer

    def enqueue(self, job: Args) -> None:
        self._task.apply_async(kwargs=job._asdict(), producer=self._producer)

    def enqueue_many(self, jobs: Sequence[Args]) -> None:
        for job in jobs:  # it knows no batch
            self.enqueue(job)


class CeleryPeer(Peer):
    ways = ("sync",)
    concurrency = 10  # jobs/s in a sweep: 1 1.6k, 4 1.6k, 10 1.7k, 50 1.5k; the pool `solo` 1.8k
    pool: Final = "threads"

    def _app(self) -> tuple[Any, Any]:
        app = Celery("bench", broker=self.url)
        app.conf.update(
            task_ignore_result=True,
            task_acks_late=True,
            worker_prefetch_multiplier=16,
            worker_hijack_root_logger=False,
            broker_connection_retry_on_startup=True,
            worker_enable_remote_control=False,
        )

        def email(to: str, subject: str, n: int) -> None:
            del to, subject
            self.job(n)

        return app, app.task(name="email")(email)

    @contextmanager
    def sync_producer(self) -> Iterator[SyncProducer]:
        app, task = self._app()
        with app.producer_or_acquire() as producer:
            yield _CeleryProducer(task, producer)

    def work(self) -> None:
        app, _ = self._app()
        app.Worker(
            pool_cls=self.pool,
            concurrency=self.concurrency,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            optimization="default",
            loglevel="WARNING",
            quiet=True,
        ).start()
