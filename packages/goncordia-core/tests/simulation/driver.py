"""The driver that a simulated process holds in its hands: the backend, behind the network."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from goncordia.driver import (
    BaseDriver,
    BaseExecutor,
    Beat,
    Capabilities,
    Change,
    Changed,
    FetchRequest,
    FetchResult,
    Finish,
    Heartbeater,
    InsertResult,
    JobRow,
    ListFilter,
    Mark,
    NewJob,
    Outcome,
    Page,
    PutResult,
    Record,
    SessionInfo,
    TxExecutor,
)
from goncordia.driver.begun import Begun

from .backend import Backend, SimListener, SimTx
from .network import Network
from .process import Process

__all__ = ["SimDriver", "SimHeartbeater", "ended_by_record"]

T = TypeVar("T")


class SimExecutor(BaseExecutor):
    """The ten, and those overrides that the capabilities claim."""

    begins = True

    def __init__(self, driver: SimDriver) -> None:
        super().__init__(driver.name, driver.capabilities, driver.clock)
        self._driver = driver

    async def _call(self, name: str, *args: Any) -> Any:
        return await self._driver.call(name, *args)

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        result: list[InsertResult] = await self._call("insert_many", jobs)
        return result

    async def fetch(self, request: FetchRequest, /) -> FetchResult:
        result: FetchResult = await self._call("fetch", request)
        return result

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        result: list[Outcome] = await self._call("finish_many", finishes)
        return result

    async def held(self, session: UUID, fetch_no: int | None, limit: int, /) -> list[JobRow]:
        result: list[JobRow] = await self._call("held", session, fetch_no, limit)
        return result

    async def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        result: list[JobRow | None] = await self._call("get_many", ids)
        return result

    async def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        result: Page = await self._call("list_jobs", where, page, limit)
        return result

    async def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        result: list[Changed] = await self._call("change_many", changes)
        return result

    async def record_get(self, name: str, /) -> Record | None:
        result: Record | None = await self._call("record_get", name)
        return result

    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> PutResult:
        result: PutResult = await self._call("record_put", name, value, expected_version, token)
        return result

    async def record_list(self, prefix: str, /) -> list[Record]:
        result: list[Record] = await self._call("record_list", prefix)
        return result

    async def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        if not self.capabilities.exchange:
            return await super().exchange(finishes, request)
        result: tuple[list[Outcome], FetchResult | None]
        result = await self._call("exchange", finishes, request)
        return result

    def begin_exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> Begun[tuple[list[Outcome], FetchResult | None]] | None:
        if not self.capabilities.exchange or self._driver.process.clock.monotonic() % 1 < 0.3:
            return None  # as when no connection is free
        return Begun(self.exchange(finishes, request))

    async def mark_many(self, marks: Sequence[Mark], /) -> list[Outcome]:
        if not self.capabilities.marks:
            return await super().mark_many(marks)
        result: list[Outcome] = await self._call("mark_many", marks)
        return result


class ServerTimeExecutor(SimExecutor):
    """With ``server_time``: sessions and pauses are the backend's own."""

    async def session_open(self, session: UUID, worker_id: str, lease: float, /) -> None:
        await self._call("session_open", session, worker_id, lease)

    async def session_beat(self, session: UUID, lease: float, /) -> Beat:
        result: Beat = await self._call("session_beat", session, lease)
        return result

    async def session_close(self, session: UUID, /) -> None:
        await self._call("session_close", session)

    async def session_list(self) -> list[SessionInfo]:
        result: list[SessionInfo] = await self._call("session_list")
        return result

    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        result: list[JobRow] = await self._call("expire", session, limit)
        return result

    async def queue_pause(self, name: str, /) -> None:
        await self._call("queue_pause", name)

    async def queue_resume(self, name: str, /) -> None:
        await self._call("queue_resume", name)

    async def now(self) -> datetime:
        result: datetime = await self._call("now")
        return result


class RecordExecutor(SimExecutor):
    """Without ``server_time``: sessions are records, as the contract's defaults keep them."""

    async def _told(self, name: str, args: tuple[Any, ...], answer: Coroutine[Any, Any, T]) -> T:
        """Let the watcher hear of a request that is made of several."""
        driver = self._driver
        sent = driver.process.loop.time()
        watcher = driver.network.watcher
        if watcher is not None:
            watcher.sent(driver.process, name, args)
        result = await answer
        if watcher is not None:
            watcher.answered(driver.process, name, args, result, sent)
        return result

    async def session_open(self, session: UUID, worker_id: str, lease: float, /) -> None:
        call = super().session_open(session, worker_id, lease)
        await self._told("session_open", (session, worker_id, lease), call)

    async def session_beat(self, session: UUID, lease: float, /) -> Beat:
        return await self._told(
            "session_beat", (session, lease), super().session_beat(session, lease)
        )

    async def session_close(self, session: UUID, /) -> None:
        await self._told("session_close", (session,), super().session_close(session))

    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        return await self._told("expire", (session, limit), super().expire(session, limit))


def ended_by_record(name: str, value: bytes | None) -> tuple[UUID, bool] | None:
    """The session that a record stands for, and whether that value means that it is over."""
    if not name.startswith("session/"):
        return None
    session = UUID(name.removeprefix("session/"))
    return session, value is None or bool(msgspec.json.decode(value)["ended"])


class SimTxExecutor(TxExecutor):
    """The part of the contract that a worker's own transaction needs."""

    def __init__(self, driver: SimDriver, tx: SimTx) -> None:
        self._driver = driver
        self._tx = tx

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        raise NotImplementedError

    async def cancel_many(self, ids: Sequence[UUID], /) -> list[Changed]:
        raise NotImplementedError

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        outcomes: list[Outcome] = await self._driver.call("tx_finish", self._tx, finishes)
        return outcomes


class SimDriver(BaseDriver[SimTx]):
    """One process's driver.

    Args:
        process: whose.
        network: the way to the backend.
        backend: the backend.
        capabilities: which of the backend's it shows.
        heart: it has a heartbeater, so its engine beats from a thread of its own.
        gives_up: it bounds its calls by itself.
    """

    name = "simulated"

    def __init__(
        self,
        process: Process,
        network: Network,
        backend: Backend,
        capabilities: Capabilities,
        *,
        heart: bool = False,
        gives_up: bool = False,
    ) -> None:
        super().__init__(capabilities, process.clock)
        self.clock_given = not heart  # else the engine would not beat from a thread
        self.process = process
        self.network = network
        self._backend = backend
        self.has_heart = heart
        self._gives_up = gives_up
        self._executor: BaseExecutor = (
            ServerTimeExecutor(self) if capabilities.server_time else RecordExecutor(self)
        )

    async def call(self, name: str, *args: Any) -> Any:
        """One request over the network."""
        bounded = self._gives_up or name.startswith("tx_")  # those are the worker's own
        return await self.network.call(self.process, name, self._backend.do, args, gives_up=bounded)

    async def beat_from_thread(self, session: UUID, lease: float) -> Beat:
        """A beat on a connection of its own."""
        beat: Beat = await self.network.call(
            self.process,
            "session_beat",
            self._backend.do,
            (session, lease),
            gives_up=True,
            in_thread=True,
        )
        return beat

    async def open(self) -> None:
        """Nothing is kept open."""

    async def aclose(self) -> None:
        await super().aclose()

    async def migrate(self) -> list[str]:
        return []

    def executor(self) -> BaseExecutor:
        return self._executor

    def unwrap_tx(self, tx: SimTx, /) -> TxExecutor:
        return SimTxExecutor(self, tx)

    def heartbeater(self) -> Heartbeater | None:
        return SimHeartbeater(self) if self.has_heart else None

    def listener(self) -> SimListener | None:
        if self.capabilities.wakeups == "none":
            return None
        listener = SimListener(self.process)
        self._backend.listen(listener)
        return listener


class SimHeartbeater:
    """Only says that there is one: the stand-in of the heartbeat thread beats by itself."""

    def __init__(self, driver: SimDriver) -> None:
        self.driver = driver

    def beat(self, session: UUID, lease: float, /) -> Beat:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is held."""
