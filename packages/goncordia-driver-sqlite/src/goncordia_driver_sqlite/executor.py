"""The executors on the driver's own connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, TypeVar
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
    SyncExecutor,
)
from goncordia_driver_sqlite.core import Core
from goncordia_sql import Op

__all__ = ["SqliteExecutor", "SqliteSyncExecutor"]

T = TypeVar("T")

_STEPS: Final = 1000
"""How often a fetch goes on in a new transaction before it answers with nothing."""


class SqliteExecutor(BaseExecutor):
    """The contract's operations; see :class:`BaseExecutor`."""

    def __init__(
        self, driver_name: str, capabilities: Capabilities, clock: Clock, core: Core
    ) -> None:
        super().__init__(driver_name, capabilities, clock)
        self._core = core
        self._ops = core.operations

    async def _write(self, operation: Callable[[], Op[T]]) -> T:
        return await self._core.writer.submit(operation)

    async def _read(self, operation: Callable[[], Op[T]]) -> T:
        return await self._core.reader.submit(operation)

    # ---------------------------------------------------------------- jobs

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`BaseExecutor.insert_many`."""
        if not jobs:
            return []
        results = await self._core.writer.submit_many(
            self._ops.insert.insert_many, jobs, lone=len(jobs) == 1
        )
        self._core.wakes.look()
        return results

    async def fetch(self, request: FetchRequest, /) -> FetchResult:
        """See :meth:`BaseExecutor.fetch`."""
        result = await self._write(lambda: self._ops.fetch.fetch(request))
        for _ in range(_STEPS):
            if not _goes_on(result):
                break
            result = await self._write(lambda: self._ops.fetch.fetch(request))
        return result

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """See :meth:`BaseExecutor.finish_many`."""
        return await self._write(lambda: self._ops.finish.finish_many(finishes))

    async def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        """See :meth:`BaseExecutor.exchange`."""
        outcomes, result = await self._write(lambda: self._ops.exchange(finishes, request))
        if request is not None and result is not None and _goes_on(result):
            result = await self.fetch(request)
        return outcomes, result

    async def mark_many(self, marks: Sequence[Mark], /) -> list[Outcome]:
        """See :meth:`BaseExecutor.mark_many`."""
        return await self._write(lambda: self._ops.finish.mark_many(marks))

    async def held(self, session: UUID, fetch_no: int | None, limit: int, /) -> list[JobRow]:
        """See :meth:`BaseExecutor.held`."""
        return await self._read(lambda: self._ops.read.held(session, fetch_no, limit))

    async def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        """See :meth:`BaseExecutor.get_many`."""
        return await self._read(lambda: self._ops.read.get_many(ids))

    async def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        """See :meth:`BaseExecutor.list_jobs`."""
        return await self._read(lambda: self._ops.listing.list_jobs(where, page, limit))

    async def count(self, where: ListFilter, /) -> int:
        """See :meth:`BaseExecutor.count`."""
        return await self._read(lambda: self._ops.listing.count(where))

    async def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        """See :meth:`BaseExecutor.change_many`."""
        answers = await self._write(lambda: self._ops.change.change_many(changes))
        self._core.wakes.look()
        return answers

    async def prune(self, request: PruneRequest, /) -> int:
        """See :meth:`BaseExecutor.prune`."""
        return await self._write(lambda: self._ops.queues.prune(request))

    # ---------------------------------------------------------------- records

    async def record_get(self, name: str, /) -> Record | None:
        """See :meth:`BaseExecutor.record_get`."""
        return await self._read(lambda: self._ops.records.record_get(name))

    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> PutResult:
        """See :meth:`BaseExecutor.record_put`."""
        return await self._write(
            lambda: self._ops.records.record_put(name, value, expected_version, token)
        )

    async def record_list(self, prefix: str, /) -> list[Record]:
        """See :meth:`BaseExecutor.record_list`."""
        return await self._read(lambda: self._ops.records.record_list(prefix))

    # ---------------------------------------------------------------- sessions

    async def session_open(self, session: UUID, worker_id: str, lease: float, /) -> None:
        """See :meth:`BaseExecutor.session_open`."""
        await self._write(lambda: self._ops.sessions.session_open(session, worker_id, lease))

    async def session_beat(self, session: UUID, lease: float, /) -> Beat:
        """See :meth:`BaseExecutor.session_beat`."""
        return await self._write(lambda: self._ops.sessions.session_beat(session, lease))

    async def session_close(self, session: UUID, /) -> None:
        """See :meth:`BaseExecutor.session_close`."""
        await self._write(lambda: self._ops.sessions.session_close(session))

    async def session_list(self) -> list[SessionInfo]:
        """See :meth:`BaseExecutor.session_list`."""
        return await self._read(self._ops.sessions.session_list)

    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        """See :meth:`BaseExecutor.expire`."""
        return await self._write(lambda: self._ops.sessions.expire(session, limit))

    # ---------------------------------------------------------------- queues

    async def queue_pause(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_pause`."""
        await self._write(lambda: self._ops.queues.queue_pause(name))
        self._core.wakes.look()

    async def queue_resume(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_resume`."""
        await self._write(lambda: self._ops.queues.queue_resume(name))
        self._core.wakes.look()

    async def queue_list(self) -> list[QueueState]:
        """See :meth:`BaseExecutor.queue_list`."""
        return await self._read(self._ops.queues.queue_list)

    async def queue_stats(self) -> list[QueueStats]:
        """See :meth:`BaseExecutor.queue_stats`."""
        return await self._read(self._ops.queues.queue_stats)

    # ---------------------------------------------------------------- time

    async def now(self) -> datetime:
        """The time that the operations go by."""
        return self._core.now()


def _goes_on(result: FetchResult) -> bool:
    """Whether the fetch stopped for the length of its transaction, before it had anything."""
    return result.more and not result.jobs and result.next_due_in is None


class SqliteSyncExecutor(SyncExecutor):
    """The operations for synchronous code, on the calling thread."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._ops = core.operations

    def _write(self, operation: Callable[[], Op[T]]) -> T:
        self._core.ready()
        answer = self._core.writer.call(operation)
        self._core.wakes.look()
        return answer

    def _read(self, operation: Callable[[], Op[T]]) -> T:
        self._core.ready()
        return self._core.reader.call(operation)

    def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`BaseExecutor.insert_many`."""
        if not jobs:
            return []
        self._core.ready()
        results = self._core.writer.call_many(
            self._ops.insert.insert_many, jobs, lone=len(jobs) == 1
        )
        self._core.wakes.look()
        return results

    def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        """See :meth:`BaseExecutor.get_many`."""
        return self._read(lambda: self._ops.read.get_many(ids))

    def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        """See :meth:`BaseExecutor.list_jobs`."""
        return self._read(lambda: self._ops.listing.list_jobs(where, page, limit))

    def count(self, where: ListFilter, /) -> int:
        """See :meth:`BaseExecutor.count`."""
        return self._read(lambda: self._ops.listing.count(where))

    def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        """See :meth:`BaseExecutor.change_many`."""
        return self._write(lambda: self._ops.change.change_many(changes))

    def queue_pause(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_pause`."""
        self._write(lambda: self._ops.queues.queue_pause(name))

    def queue_resume(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_resume`."""
        self._write(lambda: self._ops.queues.queue_resume(name))

    def queue_list(self) -> list[QueueState]:
        """See :meth:`BaseExecutor.queue_list`."""
        return self._read(self._ops.queues.queue_list)
