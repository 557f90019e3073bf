"""The kit over sound drivers that can do little: it must not ask for what nobody claimed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from goncordia.clock import Clock, SystemClock
from goncordia.driver import (
    BaseDriver,
    BaseExecutor,
    Capabilities,
    FetchRequest,
    FetchResult,
    InsertResult,
    ListFilter,
    NewJob,
    Page,
)
from goncordia.errors import UnsupportedError
from goncordia.memory import MemoryDriver, Store
from goncordia.memory.core import Core
from goncordia.memory.executor import MemoryExecutor
from goncordia.memory.sessions import Session
from goncordia_conformance import DriverConformance
from goncordia_conformance.rules.transactions import SyncTransaction, Transaction
from goncordia_conformance.selftest import BrokenFetch, MemoryStores, OneEach

LITTLE = Capabilities(
    list_filters=frozenset(),
    strict_fetch_order=True,
    atomic_insert=10,
    max_payload=1 << 16,
    max_batch=50,
)


class TenMethods(MemoryExecutor):
    """The ten required methods, and of the rest the defaults."""

    exchange = BaseExecutor.exchange
    mark_many = BaseExecutor.mark_many
    session_open = BaseExecutor.session_open
    session_beat = BaseExecutor.session_beat
    session_close = BaseExecutor.session_close
    session_list = BaseExecutor.session_list
    expire = BaseExecutor.expire
    queue_pause = BaseExecutor.queue_pause
    queue_resume = BaseExecutor.queue_resume
    queue_list = BaseExecutor.queue_list
    queue_stats = BaseExecutor.queue_stats
    count = BaseExecutor.count
    prune = BaseExecutor.prune
    now = BaseExecutor.now

    def _refuse(self, capability: str) -> None:
        raise UnsupportedError(self.driver_name, capability)

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        for job in jobs:
            if job.unique_key is not None:
                self._refuse("unique_jobs")
            if job.group is not None:
                self._refuse("groups")
        return await super().insert_many(jobs)

    async def fetch(self, request: FetchRequest, /) -> FetchResult:
        if any(queue.kinds is not None for queue in request.queues):
            self._refuse("fetch_kinds")

        def fetch(store: Store, now: datetime) -> FetchResult:
            # Sessions are records here: the store only needs something to hold the claims.
            store.sessions.add(Session(request.session, request.worker_id, inf, now, 0.0))
            return store.fetch(request, now)

        return self._call(fetch)

    async def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        return await super().list_jobs(ListFilter(), page, limit)


class LittleDriver(BaseDriver):
    """Claims as little as it may."""

    name = "little"

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(LITTLE, clock)
        self._executor = TenMethods(self.name, LITTLE, Core(self.clock))

    async def open(self) -> None:
        pass

    async def aclose(self) -> None:
        await super().aclose()

    async def migrate(self) -> list[str]:
        return []

    def executor(self) -> TenMethods:
        return self._executor


class TestLittleDriver(DriverConformance):
    counted: ClassVar[bool] = False

    @pytest.fixture
    def make_driver(self) -> OneEach:
        return OneEach(LittleDriver)


class FindsLate(BrokenFetch):
    """Passes over what is new as long as it may, when there is enough of the old."""

    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        since = now - timedelta(seconds=self.capabilities.late_find_bound)
        return store.fetch(request, now, lambda job: job.visible_at > since)


class ServerClock(SystemClock):
    """The clock of a server: nobody puts it wrong here."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class LateDriver(MemoryDriver):
    """Without a strict order, as a backend that reads from snapshots, and with its own clock."""

    def __init__(self, clock: Clock | None = None, *, weak: Any = None) -> None:
        super().__init__(ServerClock() if clock is None else clock, weak=weak)
        self.clock_given = clock is not None
        late = {"strict_fetch_order": False, "late_find_bound": 0.05}
        self.capabilities = replace(self.capabilities, **late)
        self._executor = FindsLate(self.name, self.capabilities, self._core)


class TestLateDriver(DriverConformance):
    counted: ClassVar[bool] = False

    @pytest.fixture
    def make_driver(self) -> MemoryStores:
        return MemoryStores(LateDriver)

    @pytest.fixture
    def transaction(self) -> Transaction:
        return MemoryDriver.transaction

    @pytest.fixture
    def sync_transaction(self) -> SyncTransaction:
        return MemoryDriver.sync_transaction
