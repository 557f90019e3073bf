"""The executors of the SQL drivers: the contract's methods, each one of the shared operations.

A driver says how an operation is run, in a transaction of its own or in the caller's, and is told
what has happened.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
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
    SyncExecutor,
    SyncTxExecutor,
    TxExecutor,
)
from goncordia_sql.ops import Operations
from goncordia_sql.statement import Op

__all__ = [
    "SqlExecutor",
    "SqlSyncExecutor",
    "SqlSyncTxExecutor",
    "SqlTxExecutor",
    "Told",
    "TxOps",
]

T = TypeVar("T")


class Told:
    """Is told what was committed, for wake-ups. Here it does nothing of it."""

    def inserted(self, jobs: Sequence[NewJob], results: Sequence[InsertResult], /) -> None:
        """Jobs were inserted, or were there."""

    def finished(self, finishes: Sequence[Finish], outcomes: Sequence[Outcome], /) -> None:
        """Claims were ended."""

    def changed(self, changes: Sequence[Change], answers: Sequence[Changed], /) -> None:
        """Jobs were changed."""

    def closed(self, session: UUID, /) -> None:
        """A session was closed, which gave back what it held."""

    def paused_or_resumed(self, queue: str, /) -> None:
        """A queue was paused or resumed."""


class SqlExecutor(BaseExecutor):
    """The contract's operations; see :class:`BaseExecutor`.

    Args:
        driver_name: named in errors.
        capabilities: those of the driver instance.
        clock: the driver's clock.
        operations: those of the driver's dialect.
        told: told of what was committed.
    """

    def __init__(
        self,
        driver_name: str,
        capabilities: Capabilities,
        clock: Clock,
        operations: Operations,
        told: Told,
    ) -> None:
        super().__init__(driver_name, capabilities, clock)
        self._ops = operations
        self._told = told

    @abstractmethod
    async def write(self, operation: Callable[[], Op[T]], /) -> T:
        """Run an operation, in a transaction where it needs one."""

    @abstractmethod
    async def read(self, operation: Callable[[], Op[T]], /) -> T:
        """Run an operation that changes nothing."""

    # ---------------------------------------------------------------- jobs

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`BaseExecutor.insert_many`."""
        if not jobs:
            return []
        results = await self.write(self._ops.insert.attempts(jobs))
        self._told.inserted(jobs, results)
        return results

    async def fetch(self, request: FetchRequest, /) -> FetchResult:
        """See :meth:`BaseExecutor.fetch`."""
        return await self.write(lambda: self._ops.claim(request))

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """See :meth:`BaseExecutor.finish_many`."""
        outcomes = await self.write(lambda: self._ops.finish.finish_many(finishes, wait=False))
        self._told.finished(finishes, outcomes)
        return outcomes

    async def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        """See :meth:`BaseExecutor.exchange`."""
        outcomes, result = await self.write(lambda: self._ops.exchange(finishes, request))
        self._told.finished(finishes, outcomes)
        return outcomes, result

    async def mark_many(self, marks: Sequence[Mark], /) -> list[Outcome]:
        """See :meth:`BaseExecutor.mark_many`."""
        return await self.write(lambda: self._ops.finish.mark_many(marks))

    async def held(self, session: UUID, fetch_no: int | None, limit: int, /) -> list[JobRow]:
        """See :meth:`BaseExecutor.held`."""
        return await self.read(lambda: self._ops.read.held(session, fetch_no, limit))

    async def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        """See :meth:`BaseExecutor.get_many`."""
        return await self.read(lambda: self._ops.read.get_many(ids))

    async def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        """See :meth:`BaseExecutor.list_jobs`."""
        return await self.read(lambda: self._ops.listing.list_jobs(where, page, limit))

    async def count(self, where: ListFilter, /) -> int:
        """See :meth:`BaseExecutor.count`."""
        return await self.read(lambda: self._ops.listing.count(where))

    async def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        """See :meth:`BaseExecutor.change_many`."""
        answers = await self.write(lambda: self._ops.change.change_many(changes))
        self._told.changed(changes, answers)
        return answers

    async def prune(self, request: PruneRequest, /) -> int:
        """See :meth:`BaseExecutor.prune`."""
        return await self.write(lambda: self._ops.prune(request))

    # ---------------------------------------------------------------- records

    async def record_get(self, name: str, /) -> Record | None:
        """See :meth:`BaseExecutor.record_get`."""
        return await self.read(lambda: self._ops.records.record_get(name))

    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> PutResult:
        """See :meth:`BaseExecutor.record_put`."""
        return await self.write(
            lambda: self._ops.records.record_put(name, value, expected_version, token)
        )

    async def record_list(self, prefix: str, /) -> list[Record]:
        """See :meth:`BaseExecutor.record_list`."""
        return await self.read(lambda: self._ops.records.record_list(prefix))

    # ---------------------------------------------------------------- sessions

    async def session_open(self, session: UUID, worker_id: str, lease: float, /) -> None:
        """See :meth:`BaseExecutor.session_open`."""
        await self.write(lambda: self._ops.sessions.session_open(session, worker_id, lease))

    async def session_beat(self, session: UUID, lease: float, /) -> Beat:
        """See :meth:`BaseExecutor.session_beat`."""
        return await self.write(lambda: self._ops.sessions.session_beat(session, lease))

    async def session_close(self, session: UUID, /) -> None:
        """See :meth:`BaseExecutor.session_close`."""
        await self.write(lambda: self._ops.sessions.session_close(session))
        self._told.closed(session)

    async def session_list(self) -> list[SessionInfo]:
        """See :meth:`BaseExecutor.session_list`."""
        return await self.read(self._ops.sessions.session_list)

    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        """See :meth:`BaseExecutor.expire`."""
        return await self.write(lambda: self._ops.sessions.expire(session, limit))

    # ---------------------------------------------------------------- queues

    async def queue_pause(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_pause`."""
        await self.write(lambda: self._ops.queues.queue_pause(name))
        self._told.paused_or_resumed(name)

    async def queue_resume(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_resume`."""
        await self.write(lambda: self._ops.queues.queue_resume(name))
        self._told.paused_or_resumed(name)

    async def queue_list(self) -> list[QueueState]:
        """See :meth:`BaseExecutor.queue_list`."""
        return await self.read(self._ops.queues.queue_list)

    async def queue_stats(self) -> list[QueueStats]:
        """See :meth:`BaseExecutor.queue_stats`."""
        return await self.read(self._ops.queues.queue_stats)

    # ---------------------------------------------------------------- time

    async def now(self) -> datetime:
        """The time that the operations go by."""
        return self._ops.dialect.times.decode(await self.read(self._ops.dialect.now))


class SqlSyncExecutor(SyncExecutor):
    """The operations for synchronous code; see :class:`SyncExecutor`.

    Args:
        operations: those of the driver's dialect.
        told: told of what was committed.
    """

    def __init__(self, operations: Operations, told: Told) -> None:
        self._ops = operations
        self._told = told

    @abstractmethod
    def write(self, operation: Callable[[], Op[T]], /) -> T:
        """Run an operation, in a transaction where it needs one."""

    @abstractmethod
    def read(self, operation: Callable[[], Op[T]], /) -> T:
        """Run an operation that changes nothing."""

    def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`BaseExecutor.insert_many`."""
        if not jobs:
            return []
        results = self.write(self._ops.insert.attempts(jobs))
        self._told.inserted(jobs, results)
        return results

    def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        """See :meth:`BaseExecutor.get_many`."""
        return self.read(lambda: self._ops.read.get_many(ids))

    def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        """See :meth:`BaseExecutor.list_jobs`."""
        return self.read(lambda: self._ops.listing.list_jobs(where, page, limit))

    def count(self, where: ListFilter, /) -> int:
        """See :meth:`BaseExecutor.count`."""
        return self.read(lambda: self._ops.listing.count(where))

    def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        """See :meth:`BaseExecutor.change_many`."""
        answers = self.write(lambda: self._ops.change.change_many(changes))
        self._told.changed(changes, answers)
        return answers

    def queue_pause(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_pause`."""
        self.write(lambda: self._ops.queues.queue_pause(name))
        self._told.paused_or_resumed(name)

    def queue_resume(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_resume`."""
        self.write(lambda: self._ops.queues.queue_resume(name))
        self._told.paused_or_resumed(name)

    def queue_list(self) -> list[QueueState]:
        """See :meth:`BaseExecutor.queue_list`."""
        return self.read(self._ops.queues.queue_list)

    def queue_stats(self) -> list[QueueStats]:
        """See :meth:`BaseExecutor.queue_stats`."""
        return self.read(self._ops.queues.queue_stats)

    def now(self) -> datetime:
        """See :meth:`SqlExecutor.now`."""
        return self._ops.dialect.times.decode(self.read(self._ops.dialect.now))


class TxOps:
    """What may be done in the caller's transaction.

    Args:
        operations: those of the driver's dialect.
    """

    def __init__(self, operations: Operations) -> None:
        self._ops = operations

    def insert_many(self, jobs: Sequence[NewJob], /) -> Op[list[InsertResult]]:
        """See :meth:`TxExecutor.insert_many`."""
        return self._ops.insert.insert_many(jobs)

    def cancel_many(self, ids: Sequence[UUID], /) -> Op[list[Changed]]:
        """See :meth:`TxExecutor.cancel_many`."""
        return self._ops.change.cancel_many(ids)

    def finish_many(self, finishes: Sequence[Finish], /) -> Op[list[Outcome]]:
        """See :meth:`TxExecutor.finish_many`."""
        return self._ops.finish.finish_many(finishes)


class SqlTxExecutor(TxExecutor):
    """The operations in a transaction of the caller's; see :class:`TxExecutor`."""

    def __init__(self, ops: TxOps) -> None:
        self._ops = ops

    @abstractmethod
    async def run(self, operation: Op[T], /) -> T:
        """Run an operation inside the transaction."""

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`TxExecutor.insert_many`."""
        return await self.run(self._ops.insert_many(jobs)) if jobs else []

    async def cancel_many(self, ids: Sequence[UUID], /) -> list[Changed]:
        """See :meth:`TxExecutor.cancel_many`."""
        return await self.run(self._ops.cancel_many(ids)) if ids else []

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """See :meth:`TxExecutor.finish_many`."""
        return await self.run(self._ops.finish_many(finishes)) if finishes else []


class SqlSyncTxExecutor(SyncTxExecutor):
    """The same for synchronous transactions; see :class:`SyncTxExecutor`."""

    def __init__(self, ops: TxOps) -> None:
        self._ops = ops

    @abstractmethod
    def run(self, operation: Op[T], /) -> T:
        """Run an operation inside the transaction."""

    def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`TxExecutor.insert_many`."""
        return self.run(self._ops.insert_many(jobs)) if jobs else []

    def cancel_many(self, ids: Sequence[UUID], /) -> list[Changed]:
        """See :meth:`TxExecutor.cancel_many`."""
        return self.run(self._ops.cancel_many(ids)) if ids else []

    def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """See :meth:`TxExecutor.finish_many`."""
        return self.run(self._ops.finish_many(finishes)) if finishes else []
