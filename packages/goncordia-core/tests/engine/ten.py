"""A driver with exactly the ten required methods, over the memory driver's store."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from goncordia.clock import Clock
from goncordia.driver import (
    BaseDriver,
    BaseExecutor,
    Capabilities,
    Change,
    Changed,
    FetchRequest,
    FetchResult,
    Finish,
    InsertResult,
    JobRow,
    ListFilter,
    NewJob,
    Outcome,
    Page,
    PutResult,
    Record,
)
from goncordia.memory import Store

from .wire import Wire, wired

_CAPABILITIES = Capabilities(list_filters=frozenset(ListFilter.__struct_fields__))


class TenExecutor(BaseExecutor):
    """Sessions, pauses and all else are the defaults: over records, by the watcher's clock."""

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__("ten", _CAPABILITIES, clock)
        self._store = store

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        return self._store.insert_many(jobs, self.clock.now())

    async def fetch(self, request: FetchRequest, /) -> FetchResult:
        now, monotonic = self.clock.now(), self.clock.monotonic()
        # The store knows sessions, this backend does not: to it, all are open.
        self._store.session_open(request.session, "", 1e9, now, monotonic)
        return self._store.fetch(request, now)

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        return self._store.finish_many(finishes, self.clock.now())

    async def held(self, session: UUID, fetch_no: int | None, limit: int, /) -> list[JobRow]:
        return self._store.held(session, fetch_no, limit, self.clock.now())

    async def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        return self._store.get_many(ids, self.clock.now())

    async def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        return self._store.list_jobs(where, page, limit, self.clock.now())

    async def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        return self._store.change_many(changes, self.clock.now())

    async def record_get(self, name: str, /) -> Record | None:
        return self._store.records.get(name)

    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> PutResult:
        return self._store.records.put(name, value, expected_version, token)

    async def record_list(self, prefix: str, /) -> list[Record]:
        return self._store.records.list_by(prefix)


class TenDriver(BaseDriver):
    """One process's driver; several of them share a store, as processes do a backend."""

    name = "ten"

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(_CAPABILITIES, clock)
        self.wire = Wire()
        self._executor = wired(TenExecutor(store, clock), self.wire)

    async def open(self) -> None:
        pass

    async def aclose(self) -> None:
        await super().aclose()

    async def migrate(self) -> list[str]:
        return []

    def executor(self) -> BaseExecutor:
        return self._executor
