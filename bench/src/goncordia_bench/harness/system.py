"""What a case asks of a job system on PostgreSQL: of ours and of each peer alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import ClassVar, Final, TypeAlias

from goncordia_bench.payload import Email

__all__ = ["ORDERS", "Finish", "Handler", "Producer", "System", "nothing_more"]

Handler: TypeAlias = Callable[[int], Awaitable[None]]
"""What a worker calls with the ``n`` of a job's args."""

ORDERS: Final = "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n bigint)"
"""A table of the user's own."""

Finish: TypeAlias = Callable[[], Awaitable[None]]
"""Returns when the results of all jobs are committed."""


async def nothing_more() -> None:
    """What a system has that cannot tell: its clock stops when its last handler has run."""


class Producer(ABC):
    """Enqueues; each call returns when its jobs are committed."""

    @abstractmethod
    async def enqueue(self, args: Email) -> None:
        """One job."""

    @abstractmethod
    async def enqueue_tx(self, args: Email) -> None:
        """A row of ``orders`` and one job, in a transaction of the user's on a kept connection."""

    @abstractmethod
    async def enqueue_many(self, jobs: Sequence[Email]) -> None:
        """All of them, in the fastest way that the system documents."""


class System(ABC):
    """A job system in a database of its own.

    Args:
        dsn: the database.
    """

    name: ClassVar[str]
    """Of the subject."""
    concurrency: ClassVar[int]
    """The best for jobs that do nothing; found by a sweep."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    @abstractmethod
    async def install(self) -> None:
        """Make its tables."""

    @abstractmethod
    def producer(self, connections: int = 1) -> AbstractAsyncContextManager[Producer]:
        """Something that enqueues, over so many connections."""

    @abstractmethod
    def worker(
        self, handler: Handler, concurrency: int | None = None
    ) -> AbstractAsyncContextManager[Finish]:
        """Work jobs while inside, in this process.

        Args:
            handler: called with each job's ``n``.
            concurrency: how many at once; None: the system's best.
        """
