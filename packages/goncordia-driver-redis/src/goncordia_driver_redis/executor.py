"""The executor on a driver's own connections, for asyncio."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from goncordia.clock import Clock
from goncordia.driver import (
    BaseExecutor,
    Beat,
    Capabilities,
    Change,
    Changed,
    FetchRequest,
    FetchResult,
    Finish,
    InsertResult,
    JobRow,
    ListFilter,
    Mark,
    NewJob,
    Outcome,
    Page,
    PruneRequest,
    PutResult,
    QueueState,
    QueueStats,
    Record,
    SessionInfo,
)
from goncordia.driver.begun import Begun
from goncordia.driver.connections.pools import Pool
from goncordia_driver_redis.clients.links import AsyncLink
from goncordia_driver_redis.operations import Operations
from goncordia_driver_redis.operations.call import Op
from goncordia_driver_redis.runner import Runner

__all__ = ["RedisExecutor"]

T = TypeVar("T")


class RedisExecutor(BaseExecutor):
    """The contract's operations on the connections of a pool.

    Args:
        driver_name: named in errors.
        capabilities: those of the driver instance.
        clock: the driver's clock.
        operations: the driver's.
        runner: runs operations.
        pool: gives the pool of the running event loop.
        pool_here: the same, if it is there already.
    """

    begins = True

    def __init__(
        self,
        driver_name: str,
        capabilities: Capabilities,
        clock: Clock,
        operations: Operations,
        runner: Runner,
        pool: Callable[[], Awaitable[Pool[AsyncLink]]],
        pool_here: Callable[[], Pool[AsyncLink] | None],
    ) -> None:
        super().__init__(driver_name, capabilities, clock)
        self._ops = operations
        self._runner = runner
        self._pool = pool
        self._pool_here = pool_here

    async def _run(self, operation: Op[T], *, durable: bool = False) -> T:
        return await self._runner.run(await self._pool(), operation, durable=durable)

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`BaseExecutor.insert_many`."""
        return await self._run(self._ops.insert_many(jobs), durable=True)

    async def fetch(self, request: FetchRequest, /) -> FetchResult:
        """See :meth:`BaseExecutor.fetch`."""
        return await self._run(self._ops.fetch(request))

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """See :meth:`BaseExecutor.finish_many`."""
        return await self._run(self._ops.finish_many(finishes))

    async def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        """See :meth:`BaseExecutor.exchange`."""
        return await self._run(self._ops.exchange(finishes, request))

    def begin_exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> Begun[tuple[list[Outcome], FetchResult | None]] | None:
        """See :meth:`BaseExecutor.begin_exchange`."""
        pool = self._pool_here()
        link = None if pool is None else pool.next
        if pool is None or link is None or not link.is_wired:
            return None
        return Begun(self._runner.run(pool, self._ops.exchange(finishes, request)))

    async def held(self, session: UUID, fetch_no: int | None, limit: int, /) -> list[JobRow]:
        """See :meth:`BaseExecutor.held`."""
        return await self._run(self._ops.held(session, fetch_no, limit))

    async def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        """See :meth:`BaseExecutor.get_many`."""
        return await self._run(self._ops.get_many(ids))

    async def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        """See :meth:`BaseExecutor.list_jobs`."""
        return await self._run(self._ops.list_jobs(where, page, limit))

    async def count(self, where: ListFilter, /) -> int:
        """See :meth:`BaseExecutor.count`."""
        return await self._run(self._ops.count(where))

    async def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        """See :meth:`BaseExecutor.change_many`."""
        return await self._run(self._ops.change_many(changes))

    async def mark_many(self, marks: Sequence[Mark], /) -> list[Outcome]:
        """See :meth:`BaseExecutor.mark_many`."""
        return await self._run(self._ops.mark_many(marks))

    async def record_get(self, name: str, /) -> Record | None:
        """See :meth:`BaseExecutor.record_get`."""
        return await self._run(self._ops.record_get(name))

    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> PutResult:
        """See :meth:`BaseExecutor.record_put`."""
        return await self._run(self._ops.record_put(name, value, expected_version, token))

    async def record_list(self, prefix: str, /) -> list[Record]:
        """See :meth:`BaseExecutor.record_list`."""
        return await self._run(self._ops.record_list(prefix))

    async def session_open(self, session: UUID, worker_id: str, lease: float, /) -> None:
        """See :meth:`BaseExecutor.session_open`."""
        await self._run(self._ops.session_open(session, worker_id, lease))

    async def session_beat(self, session: UUID, lease: float, /) -> Beat:
        """See :meth:`BaseExecutor.session_beat`."""
        return await self._run(self._ops.session_beat(session, lease))

    async def session_close(self, session: UUID, /) -> None:
        """See :meth:`BaseExecutor.session_close`."""
        await self._run(self._ops.session_close(session))

    async def session_list(self) -> list[SessionInfo]:
        """See :meth:`BaseExecutor.session_list`."""
        return await self._run(self._ops.session_list())

    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        """See :meth:`BaseExecutor.expire`."""
        return await self._run(self._ops.expire(session, limit))

    async def queue_pause(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_pause`."""
        await self._run(self._ops.queue_pause(name))

    async def queue_resume(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_resume`."""
        await self._run(self._ops.queue_resume(name))

    async def queue_list(self) -> list[QueueState]:
        """See :meth:`BaseExecutor.queue_list`."""
        return await self._run(self._ops.queue_list())

    async def queue_stats(self) -> list[QueueStats]:
        """See :meth:`BaseExecutor.queue_stats`."""
        return await self._run(self._ops.queue_stats())

    async def prune(self, request: PruneRequest, /) -> int:
        """See :meth:`BaseExecutor.prune`."""
        return await self._run(self._ops.prune(request))

    async def now(self) -> datetime:
        """See :meth:`BaseExecutor.now`."""
        return await self._run(self._ops.now())
