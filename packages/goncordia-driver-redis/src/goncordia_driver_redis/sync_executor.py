"""The executor for synchronous code, on the calling thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from goncordia.driver import (
    Change,
    Changed,
    InsertResult,
    JobRow,
    ListFilter,
    NewJob,
    Page,
    QueueState,
    QueueStats,
    SyncExecutor,
)
from goncordia_driver_redis.operations import Operations
from goncordia_driver_redis.operations.call import Op
from goncordia_driver_redis.runner import SyncRunner
from goncordia_driver_redis.sync_pool import SyncPool

__all__ = ["RedisSyncExecutor"]

T = TypeVar("T")


class RedisSyncExecutor(SyncExecutor):
    """The contract's operations for synchronous code.

    Args:
        operations: the driver's.
        runner: runs operations.
        pool: gives the pool; opens the driver, if need be.
    """

    def __init__(
        self, operations: Operations, runner: SyncRunner, pool: Callable[[], SyncPool]
    ) -> None:
        self._ops = operations
        self._runner = runner
        self._pool = pool

    def _run(self, operation: Op[T], *, durable: bool = False) -> T:
        return self._runner.run(self._pool(), operation, durable=durable)

    def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`BaseExecutor.insert_many`."""
        return self._run(self._ops.insert_many(jobs), durable=True)

    def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        """See :meth:`BaseExecutor.get_many`."""
        return self._run(self._ops.get_many(ids))

    def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        """See :meth:`BaseExecutor.list_jobs`."""
        return self._run(self._ops.list_jobs(where, page, limit))

    def count(self, where: ListFilter, /) -> int:
        """See :meth:`BaseExecutor.count`."""
        return self._run(self._ops.count(where))

    def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        """See :meth:`BaseExecutor.change_many`."""
        return self._run(self._ops.change_many(changes))

    def queue_pause(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_pause`."""
        self._run(self._ops.queue_pause(name))

    def queue_resume(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_resume`."""
        self._run(self._ops.queue_resume(name))

    def queue_list(self) -> list[QueueState]:
        """See :meth:`BaseExecutor.queue_list`."""
        return self._run(self._ops.queue_list())

    def queue_stats(self) -> list[QueueStats]:
        """See :meth:`BaseExecutor.queue_stats`."""
        return self._run(self._ops.queue_stats())

    def now(self) -> datetime:
        """See :meth:`BaseExecutor.now`."""
        return self._run(self._ops.now())
