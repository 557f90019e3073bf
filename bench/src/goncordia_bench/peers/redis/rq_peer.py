"""RQ: a list of ids and a hash for each job. It acknowledges after the work.

Settings: a worker that does not fork for each job (``SimpleWorker``, several times as fast), no
results (``result_ttl=0``), batches by ``enqueue_many``. What a dead worker ran goes on with
``Retry`` only, when its mark expired (90 s after the last beat) and the cleaning that looks for it,
every 10 min, has come.
"""
# mypy: disable-error-code="import-not-found,untyped-decorator"
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from redis import Redis
from rq import Queue, Retry, SimpleWorker

from goncordia_bench.harness.peer import Args, Peer, SyncProducer

__all__ = ["RqPeer", "email"]

_TASK: Final = f"{__name__}.email"


def email(to: str, subject: str, n: int) -> None:
    del to, subject
    assert RqPeer.working is not None
    RqPeer.working.job(n)


class _RqProducer(SyncProducer):
    def __init__(self, queue: Any) -> None:
        self._queue = queue

    def enqueue(self, job: Args) -> None:
        self._queue.enqueue_call(
            _TASK, kwargs=job._asdict(), result_ttl=0, retry=Retry(max=1), description="email"
        )

    def enqueue_many(self, jobs: Sequence[Args]) -> None:
        self._queue.enqueue_many(
            [
                Queue.prepare_data(
                    _TASK,
                    kwargs=job._asdict(),
                    result_ttl=0,
                    retry=Retry(max=1),
                    description="email",
                )
                for job in jobs
            ]
        )


class RqPeer(Peer):
    ways = ("sync",)
    concurrency = 1
    working: ClassVar[RqPeer | None] = None

    @contextmanager
    def sync_producer(self) -> Iterator[SyncProducer]:
        with Redis.from_url(self.url) as connection:
            yield _RqProducer(Queue(connection=connection))

    def work(self) -> None:
        RqPeer.working = self
        connection = Redis.from_url(self.url)
        SimpleWorker([Queue(connection=connection)], connection=connection).work(
            logging_level="WARNING"
        )
