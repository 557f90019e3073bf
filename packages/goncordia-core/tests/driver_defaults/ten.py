"""An executor with exactly the ten required methods, over a network that can fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar
from uuid import UUID

import msgspec

from goncordia.clock import Clock
from goncordia.driver import (
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
from goncordia.errors import DriverBusyError, DriverUnavailableError
from goncordia.gontest import MockClock
from goncordia.ids import JobIds
from goncordia.memory import Store

R = TypeVar("R")
Fault = Literal["before", "after", "late", "refused"]

CAPABILITIES = Capabilities(max_batch=3)


class TenExecutor(BaseExecutor):
    """The ten methods over a store that may be shared; nothing here knows of sessions.

    ``faults`` holds, for the name of a method, what happens to its next calls: the connection
    breaks before the effect, or after it, or the effect comes later, by :meth:`deliver`; or the
    call is refused, so that it certainly has no effect. ``down`` names methods that fail until it
    is cleared.
    """

    def __init__(
        self, store: Store, clock: Clock, capabilities: Capabilities = CAPABILITIES
    ) -> None:
        super().__init__("ten", capabilities, clock)
        self.store = store
        self.faults: dict[str, list[Fault | None]] = {}
        self.down: set[str] = set()
        self.calls: list[str] = []
        self._late: list[Callable[[], object]] = []

    def deliver(self) -> None:
        """Let what was on its way arrive."""
        late, self._late = self._late, []
        for effect in late:
            effect()

    def _call(self, name: str, effect: Callable[[], R]) -> R:
        self.calls.append(name)
        faults = self.faults.get(name)
        fault = faults.pop(0) if faults else None
        if fault == "late":
            self._late.append(effect)
        if fault == "refused":
            raise DriverBusyError(f"{name}: not now", outcome="not_applied")
        if name in self.down or fault in {"before", "late"}:
            raise DriverUnavailableError(f"{name}: the connection broke")
        answer = effect()
        if fault == "after":
            raise DriverUnavailableError(f"{name}: the connection broke")
        return answer

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        return self._call("insert_many", lambda: self.store.insert_many(jobs, self.clock.now()))

    async def fetch(self, request: FetchRequest, /) -> FetchResult:
        def effect() -> FetchResult:
            # The store refuses sessions that it does not know; this driver's sessions are records.
            now = self.clock.now()
            self.store.session_open(request.session, "", math.inf, now, 0)
            return self.store.fetch(request, now)

        return self._call("fetch", effect)

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        assert len(finishes) <= self.capabilities.max_batch
        return self._call("finish_many", lambda: self.store.finish_many(finishes, self.clock.now()))

    async def held(self, session: UUID, fetch_no: int | None, limit: int, /) -> list[JobRow]:
        return self._call(
            "held", lambda: self.store.held(session, fetch_no, limit, self.clock.now())
        )

    async def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        return self._call("get_many", lambda: self.store.get_many(ids, self.clock.now()))

    async def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        obeyed = msgspec.structs.replace(
            ListFilter(),
            **{name: getattr(where, name) for name in self.capabilities.list_filters},
        )
        return self._call(
            "list_jobs", lambda: self.store.list_jobs(obeyed, page, limit, self.clock.now())
        )

    async def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        assert len(changes) <= self.capabilities.max_batch
        return self._call("change_many", lambda: self.store.change_many(changes, self.clock.now()))

    async def record_get(self, name: str, /) -> Record | None:
        return self._call("record_get", lambda: self.store.records.get(name))

    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> PutResult:
        return self._call(
            "record_put",
            lambda: self.store.records.put(name, value, expected_version, token),
        )

    async def record_list(self, prefix: str, /) -> list[Record]:
        return self._call("record_list", lambda: self.store.records.list_by(prefix))


class Lab:
    """A store, a mock clock, and one executor; more can be made, as if in other processes."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.store = Store()
        self.ids = JobIds(self.clock)
        self.ten = self.another()

    def another(self, capabilities: Capabilities = CAPABILITIES) -> TenExecutor:
        return TenExecutor(self.store, self.clock, capabilities)

    def insert(self, **fields: Any) -> UUID:
        job = NewJob(**{"id": self.ids(), "kind": "k", "args": b"{}", **fields})
        (answer,) = self.store.insert_many([job], self.clock.now())
        assert answer.status == "INSERTED"
        return job.id
