"""The executors of the memory driver: the store's operations, asynchronous and synchronous."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from goncordia.driver.capabilities import Capabilities
from goncordia.driver.executor import BaseExecutor, SyncExecutor
from goncordia.driver.requests import (
    Change,
    FetchRequest,
    Finish,
    ListFilter,
    Mark,
    PruneRequest,
)
from goncordia.driver.results import (
    Beat,
    Changed,
    FetchResult,
    InsertResult,
    Outcome,
    Page,
    PutResult,
    QueueState,
    QueueStats,
    SessionInfo,
)
from goncordia.driver.values import JobRow, NewJob, Record
from goncordia.memory.core import Core
from goncordia.memory.store import Store

__all__ = ["MemoryExecutor", "MemoryHeartbeater", "MemorySyncExecutor"]

R = TypeVar("R")


class MemoryExecutor(BaseExecutor):
    """The contract's operations on the store. No call ever waits."""

    def __init__(self, driver_name: str, capabilities: Capabilities, core: Core) -> None:
        super().__init__(driver_name, capabilities, core.clock)
        self._core = core

    def _call(self, operation: Callable[[Store, datetime], R]) -> R:
        return self._core.call(operation)

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`BaseExecutor.insert_many`."""
        return self._call(lambda store, now: store.insert_many(jobs, now))

    async def fetch(self, request: FetchRequest, /) -> FetchResult:
        """See :meth:`BaseExecutor.fetch`."""
        return self._call(lambda store, now: store.fetch(request, now))

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """See :meth:`BaseExecutor.finish_many`."""
        return self._call(lambda store, now: store.finish_many(finishes, now))

    async def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        """See :meth:`BaseExecutor.exchange`."""

        def operation(store: Store, now: datetime) -> tuple[list[Outcome], FetchResult | None]:
            outcomes = store.finish_many(finishes, now)
            return outcomes, None if request is None else store.fetch(request, now)

        return self._call(operation)

    async def held(self, session: UUID, fetch_no: int | None, limit: int, /) -> list[JobRow]:
        """See :meth:`BaseExecutor.held`."""
        return self._call(lambda store, now: store.held(session, fetch_no, limit, now))

    async def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        """See :meth:`BaseExecutor.get_many`."""
        return self._call(lambda store, now: store.get_many(ids, now))

    async def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        """See :meth:`BaseExecutor.list_jobs`."""
        return self._call(lambda store, now: store.list_jobs(where, page, limit, now))

    async def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        """See :meth:`BaseExecutor.change_many`."""
        return self._call(lambda store, now: store.change_many(changes, now))

    async def record_get(self, name: str, /) -> Record | None:
        """See :meth:`BaseExecutor.record_get`."""
        return self._call(lambda store, _: store.records.get(name))

    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> PutResult:
        """See :meth:`BaseExecutor.record_put`."""
        return self._call(lambda store, _: store.records.put(name, value, expected_version, token))

    async def record_list(self, prefix: str, /) -> list[Record]:
        """See :meth:`BaseExecutor.record_list`."""
        return self._call(lambda store, _: store.records.list_by(prefix))

    async def mark_many(self, marks: Sequence[Mark], /) -> list[Outcome]:
        """See :meth:`BaseExecutor.mark_many`."""
        return self._call(lambda store, now: store.mark_many(marks, now))

    async def session_open(self, session: UUID, worker_id: str, lease: float, /) -> None:
        """See :meth:`BaseExecutor.session_open`."""
        self._call(
            lambda store, now: store.session_open(
                session, worker_id, lease, now, self.clock.monotonic()
            )
        )

    async def session_beat(self, session: UUID, lease: float, /) -> Beat:
        """See :meth:`BaseExecutor.session_beat`."""
        return self._call(
            lambda store, now: store.session_beat(session, lease, now, self.clock.monotonic())
        )

    async def session_close(self, session: UUID, /) -> None:
        """See :meth:`BaseExecutor.session_close`."""
        self._call(lambda store, now: store.session_close(session, now))

    async def session_list(self) -> list[SessionInfo]:
        """See :meth:`BaseExecutor.session_list`."""
        return self._call(lambda store, _: store.session_list())

    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        """See :meth:`BaseExecutor.expire`."""
        return self._call(
            lambda store, now: store.expire(session, limit, now, self.clock.monotonic())
        )

    async def queue_pause(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_pause`."""
        self._call(lambda store, _: store.queue_set_paused(name, paused=True))

    async def queue_resume(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_resume`."""
        self._call(lambda store, _: store.queue_set_paused(name, paused=False))

    async def queue_list(self) -> list[QueueState]:
        """See :meth:`BaseExecutor.queue_list`."""
        return self._call(lambda store, _: store.queue_list())

    async def queue_stats(self) -> list[QueueStats]:
        """See :meth:`BaseExecutor.queue_stats`."""
        return self._call(lambda store, now: store.queue_stats(now))

    async def count(self, where: ListFilter, /) -> int:
        """See :meth:`BaseExecutor.count`."""
        return self._call(lambda store, now: store.count(where, now))

    async def prune(self, request: PruneRequest, /) -> int:
        """See :meth:`BaseExecutor.prune`."""
        return self._call(lambda store, now: store.prune(request, now))


class MemorySyncExecutor(SyncExecutor):
    """The operations for synchronous code, directly on the store."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`BaseExecutor.insert_many`."""
        return self._core.call(lambda store, now: store.insert_many(jobs, now))

    def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        """See :meth:`BaseExecutor.get_many`."""
        return self._core.call(lambda store, now: store.get_many(ids, now))

    def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        """See :meth:`BaseExecutor.list_jobs`."""
        return self._core.call(lambda store, now: store.list_jobs(where, page, limit, now))

    def count(self, where: ListFilter, /) -> int:
        """See :meth:`BaseExecutor.count`."""
        return self._core.call(lambda store, now: store.count(where, now))

    def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        """See :meth:`BaseExecutor.change_many`."""
        return self._core.call(lambda store, now: store.change_many(changes, now))

    def queue_pause(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_pause`."""
        self._core.call(lambda store, _: store.queue_set_paused(name, paused=True))

    def queue_resume(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_resume`."""
        self._core.call(lambda store, _: store.queue_set_paused(name, paused=False))

    def queue_list(self) -> list[QueueState]:
        """See :meth:`BaseExecutor.queue_list`."""
        return self._core.call(lambda store, _: store.queue_list())

    def queue_stats(self) -> list[QueueStats]:
        """See :meth:`BaseExecutor.queue_stats`."""
        return self._core.call(lambda store, now: store.queue_stats(now))

    def now(self) -> datetime:
        """See :meth:`BaseExecutor.now`."""
        return self._core.call(lambda _, now: now)


class MemoryHeartbeater:
    """Beats sessions from a thread."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def beat(self, session: UUID, lease: float, /) -> Beat:
        """See :meth:`BaseExecutor.session_beat`."""
        monotonic = self._core.clock.monotonic
        return self._core.call(
            lambda store, now: store.session_beat(session, lease, now, monotonic())
        )

    def close(self) -> None:
        """Nothing to give back."""
