"""Dramatiq: lists and hashes, a Lua script for each step. It acknowledges after the work.

Settings: a process with its 8 threads (the default), and its default middleware, which has the
timeouts and retries. What a dead worker had is given back when its heartbeat is 60 s old, by one of
about a thousand calls.
"""
# mypy: disable-error-code="import-not-found,untyped-decorator"
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from goncordia_bench.harness.peer import Args, Peer, SyncProducer, forever

__all__ = ["DramatiqPeer"]


class _DramatiqProducer(SyncProducer):
    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def enqueue(self, job: Args) -> None:
        self._actor.send(to=job.to, subject=job.subject, n=job.n)

    def enqueue_many(self, jobs: Sequence[Args]) -> None:
        for job in jobs:  # it knows no batch
            self.enqueue(job)


class DramatiqPeer(Peer):
    ways = ("sync",)
    concurrency = 64  # jobs/s in a sweep: 1 0.3k, 8 2.1k, 16 4.2k, 32 6.8k, 64 7.0k, 128 6.5k

    def _broker(self) -> tuple[Any, Any]:
        broker = RedisBroker(url=self.url)

        def email(to: str, subject: str, n: int) -> None:
            del to, subject
            self.job(n)

        return broker, dramatiq.actor(email, broker=broker)

    @contextmanager
    def sync_producer(self) -> Iterator[SyncProducer]:
        broker, actor = self._broker()
        yield _DramatiqProducer(actor)
        broker.close()

    def work(self) -> None:
        broker, _ = self._broker()
        dramatiq.Worker(broker, worker_threads=self.concurrency).start()
        forever()
