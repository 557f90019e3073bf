"""The executors on the driver's own connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from goncordia.clock import Clock
from goncordia.driver import Capabilities, Change, Changed, InsertResult, NewJob
from goncordia_driver_sqlite.core import Core
from goncordia_sql import Op
from goncordia_sql.executors import SqlExecutor, SqlSyncExecutor, Told

__all__ = ["SqliteExecutor", "SqliteSyncExecutor"]

T = TypeVar("T")


class _Look(Told):
    """Has the thread that wakes listeners look at what was committed."""

    def __init__(self, core: Core) -> None:
        self._wakes = core.wakes

    def inserted(self, jobs: Sequence[NewJob], results: Sequence[InsertResult], /) -> None:
        """See :meth:`Told.inserted`."""
        self._wakes.look()

    def changed(self, changes: Sequence[Change], answers: Sequence[Changed], /) -> None:
        """See :meth:`Told.changed`."""
        self._wakes.look()

    def closed(self, session: UUID, /) -> None:
        """See :meth:`Told.closed`."""
        self._wakes.look()

    def paused_or_resumed(self, queue: str, /) -> None:
        """See :meth:`Told.paused_or_resumed`."""
        self._wakes.look()


class SqliteExecutor(SqlExecutor):
    """The contract's operations; see :class:`BaseExecutor`."""

    def __init__(
        self, driver_name: str, capabilities: Capabilities, clock: Clock, core: Core
    ) -> None:
        super().__init__(driver_name, capabilities, clock, core.operations, _Look(core))
        self._core = core

    async def write(self, operation: Callable[[], Op[T]], /) -> T:
        """See :meth:`SqlExecutor.write`."""
        return await self._core.writer.submit(operation)

    async def read(self, operation: Callable[[], Op[T]], /) -> T:
        """See :meth:`SqlExecutor.read`."""
        return await self._core.reader.submit(operation)

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`BaseExecutor.insert_many`."""
        if not jobs:
            return []
        results = await self._core.writer.submit_many(
            self._ops.insert.insert_many, jobs, lone=len(jobs) == 1
        )
        self._core.wakes.look()
        return results

    async def now(self) -> datetime:
        """The time that the operations go by."""
        return self._core.now()


class SqliteSyncExecutor(SqlSyncExecutor):
    """The operations for synchronous code, on the calling thread."""

    def __init__(self, core: Core) -> None:
        super().__init__(core.operations, _Look(core))
        self._core = core

    def write(self, operation: Callable[[], Op[T]], /) -> T:
        """See :meth:`SqlSyncExecutor.write`."""
        self._core.ready()
        return self._core.writer.call(operation)

    def read(self, operation: Callable[[], Op[T]], /) -> T:
        """See :meth:`SqlSyncExecutor.read`."""
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
