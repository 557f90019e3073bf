"""The executors on a driver's own connections, the same for each library."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from goncordia.clock import Clock
from goncordia.driver import (
    Capabilities,
    FetchRequest,
    FetchResult,
    Finish,
    InsertResult,
    NewJob,
    Outcome,
)
from goncordia_driver_pg.connections import AsyncPool, Runner, SyncPool, SyncRunner
from goncordia_driver_pg.notifier import Notifier, SyncNotifier
from goncordia_sql import Op
from goncordia_sql.executors import SqlExecutor, SqlSyncExecutor
from goncordia_sql.postgres import PostgresOperations
from goncordia_sql.postgres.notify import watched

__all__ = ["PgExecutor", "PgSyncExecutor"]

T = TypeVar("T")


class PgExecutor(SqlExecutor):
    """The contract's operations on the connections of a pool.

    Args:
        driver_name: named in errors.
        capabilities: those of the driver instance.
        clock: the driver's clock.
        operations: the driver's.
        notifier: tells what was committed.
        runner: runs operations.
        pool: gives the pool of the running event loop.
    """

    def __init__(
        self,
        driver_name: str,
        capabilities: Capabilities,
        clock: Clock,
        operations: PostgresOperations,
        notifier: Notifier,
        runner: Runner,
        pool: Callable[[], Awaitable[AsyncPool]],
    ) -> None:
        super().__init__(driver_name, capabilities, clock, operations, notifier)
        self._insert = operations.insert
        self._notifier = notifier
        self._runner = runner
        self._pool = pool
        self._ends_of_groups = operations.groups.entering

    async def write(self, operation: Callable[[], Op[T]], /) -> T:
        """See :meth:`SqlExecutor.write`."""
        return await self._runner.run(await self._pool(), operation)

    async def read(self, operation: Callable[[], Op[T]], /) -> T:
        """See :meth:`SqlExecutor.read`."""
        return await self._runner.run(await self._pool(), operation, writes=False)

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`BaseExecutor.insert_many`."""
        message = self._notifier.carried(jobs)
        if message is None:
            return await super().insert_many(jobs)
        return await self.write(lambda: self._insert.insert_many(jobs, message))

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """See :meth:`BaseExecutor.finish_many`."""
        return (await self.exchange(finishes, None))[0]

    async def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        """See :meth:`BaseExecutor.exchange`."""
        if not finishes:
            return [], None if request is None else await self.fetch(request)
        freed = False

        def free() -> None:
            nonlocal freed
            freed = True

        outcomes, result = await self.write(
            lambda: watched(self._ops.exchange(finishes, request), self._ends_of_groups, free)
        )
        self._notifier.finished(finishes, outcomes)
        if freed:
            self._notifier.freed()
        return outcomes, result


class PgSyncExecutor(SqlSyncExecutor):
    """The operations for synchronous code, on the calling thread.

    Args:
        operations: the driver's.
        notifier: tells what was committed.
        runner: runs operations.
        pool: gives the pool; opens the driver, if need be.
    """

    def __init__(
        self,
        operations: PostgresOperations,
        notifier: SyncNotifier,
        runner: SyncRunner,
        pool: Callable[[], SyncPool],
    ) -> None:
        super().__init__(operations, notifier)
        self._insert = operations.insert
        self._notifier = notifier
        self._runner = runner
        self._pool = pool

    def write(self, operation: Callable[[], Op[T]], /) -> T:
        """See :meth:`SqlSyncExecutor.write`."""
        return self._runner.run(self._pool(), operation)

    def read(self, operation: Callable[[], Op[T]], /) -> T:
        """See :meth:`SqlSyncExecutor.read`."""
        return self._runner.run(self._pool(), operation, writes=False)

    def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`PgExecutor.insert_many`."""
        message = self._notifier.carried(jobs)
        if message is None:
            return super().insert_many(jobs)
        return self.write(lambda: self._insert.insert_many(jobs, message))
