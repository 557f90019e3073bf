"""What the cases on Redis ask of a job system: of ours, each peer and the floor alike.

It runs in a process of its own, in an environment of its own: only the standard library here, and
in what is made from it only that and the system.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, ClassVar, Final, NamedTuple, NoReturn

from goncordia_bench.harness.board import Board

__all__ = ["Args", "Peer", "Producer", "SyncProducer", "args", "chunks", "forever", "run"]


class Args(NamedTuple):
    """Three small fields: 75 bytes as JSON, when ``n`` has six digits."""

    to: str
    subject: str
    n: int


_TO: Final = "user@example.com"
_SUBJECT: Final = "Welcome, and your next few"


def args(first: int, count: int) -> Iterator[Args]:
    """So many, each different, from the one with that number on."""
    return (Args(_TO, _SUBJECT, n) for n in range(first, first + count))


def chunks(jobs: Iterable[Args], size: int) -> Iterator[list[Args]]:
    """The jobs, so many at a time."""
    chunk: list[Args] = []
    for job in jobs:
        chunk.append(job)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


class Producer(ABC):
    """Enqueues from a coroutine; each call returns when the server has the jobs."""

    @abstractmethod
    async def enqueue(self, job: Args) -> None:
        """One job."""

    @abstractmethod
    async def enqueue_many(self, jobs: Sequence[Args]) -> None:
        """All of them, in the fastest way that the system documents."""


class SyncProducer(ABC):
    """The same from a plain function."""

    @abstractmethod
    def enqueue(self, job: Args) -> None:
        """One job."""

    @abstractmethod
    def enqueue_many(self, jobs: Sequence[Args]) -> None:
        """All of them, in the fastest way that the system documents."""


class Peer(ABC):
    """A job system on the Redis server at ``url``.

    Args:
        url: of the server, with the number of the database.
        board: of a worker: where it notes which job starts.
        hold: of a worker: how long each job takes, in seconds.
    """

    ways: ClassVar[Sequence[str]]
    """How it can enqueue, the best first: ``async``, ``sync``."""
    concurrency: ClassVar[int]
    """How many jobs at once: the best for jobs that do nothing, found by a sweep."""

    lease: ClassVar[float | None] = None
    """Of ours: how long a worker that was killed holds its jobs, if not as long as it comes."""

    def __init__(self, url: str, board: Board | None = None, hold: float = 0.0) -> None:
        self.url = url
        self.hold = hold
        self._board = board

    # ---------------------------------------------------------------- jobs

    def job(self, n: int) -> None:
        """The job with that number, run by a plain function."""
        assert self._board is not None
        self._board.note(n)
        if self.hold:
            time.sleep(self.hold)

    async def async_job(self, n: int) -> None:
        """The same in a coroutine."""
        assert self._board is not None
        self._board.note(n)
        if self.hold:
            await asyncio.sleep(self.hold)

    # ---------------------------------------------------------------- what a system does

    def install(self) -> None:  # noqa: B027  # most need nothing
        """Make what must be there before the first job."""

    def producer(self) -> AbstractAsyncContextManager[Producer]:
        """Of those that have the way ``async``."""
        raise NotImplementedError  # nobody is asked for a way that is not in ``ways``

    def sync_producer(self) -> AbstractContextManager[SyncProducer]:
        """Of those that have the way ``sync``."""
        raise NotImplementedError  # as above

    @abstractmethod
    def work(self) -> None:
        """Work jobs in this process until it is killed."""


def forever() -> NoReturn:
    """What the main thread of a worker of threads does."""
    while True:
        time.sleep(3600)


def run(main: Coroutine[Any, Any, None]) -> None:
    """On uvloop, which every asyncio system here is given."""
    import uvloop  # noqa: PLC0415  # systems of threads need none

    uvloop.run(main)
