"""The lab: the driver under test, and what a test wants at hand around it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, Self, TypeAlias, TypeVar
from uuid import UUID

from goncordia.clock import Clock, SystemClock
from goncordia.driver import (
    AnyDriver,
    AttemptError,
    BaseExecutor,
    Beat,
    Capabilities,
    Change,
    ChangeAction,
    Changed,
    Claim,
    FetchRequest,
    FetchResult,
    Finish,
    FinishTo,
    JobRow,
    JobState,
    ListFilter,
    NewJob,
    Outcome,
    QueueFetch,
    SyncExecutor,
    When,
)
from goncordia.driver.defaults.listing import Rows
from goncordia.gontest import MockClock
from goncordia.ids import new_session_id
from goncordia_conformance.jobs import JobMaker

__all__ = [
    "ClaimBy",
    "Lab",
    "MakeDriver",
    "Session",
    "claim_of",
    "failure",
    "ids",
    "in_threads",
    "outcome_of",
    "still_busy",
    "until",
]

R = TypeVar("R")
ClaimBy: TypeAlias = Literal["exchange", "fetch"]

LEASE = 30.0
"""The lease of the lab's sessions, in seconds."""

_TICK = 0.05


class MakeDriver(Protocol):
    """What the fixture ``make_driver`` gives: each call, one more driver on the same store."""

    def __call__(self, clock: Clock | None = None) -> AnyDriver:
        """A driver that has not been opened; with ``clock`` it takes all time from there."""
        ...


class Session:
    """A worker pool's session, as far as a driver knows one."""

    def __init__(
        self, executor: BaseExecutor, claim_by: ClaimBy, lease: float, worker_id: str
    ) -> None:
        self.id = new_session_id()
        self.lease = lease
        self.worker_id = worker_id
        self.fetch_no = 0
        self.executor = executor
        self._claim_by = claim_by

    async def open(self) -> Self:
        """Open it."""
        await self.executor.session_open(self.id, self.worker_id, self.lease)
        return self

    def request(self, limit: int, *queues: str | QueueFetch) -> FetchRequest:
        """The session's next fetch; without queues, from ``default``."""
        self.fetch_no += 1
        asked = tuple(
            QueueFetch(queue, limit) if isinstance(queue, str) else queue
            for queue in queues or ("default",)
        )
        return FetchRequest(self.id, self.fetch_no, limit, asked, self.worker_id)

    async def ask(self, limit: int = 10, *queues: str | QueueFetch) -> FetchResult:
        """Fetch, and give the whole answer."""
        request = self.request(limit, *queues)
        if self._claim_by == "fetch":
            return await self.executor.fetch(request)
        outcomes, result = await self.executor.exchange([], request)
        assert outcomes == [], "an exchange without finishes has no outcomes"
        assert result is not None, "an exchange with a request has a fetch result"
        return result

    async def fetch(self, limit: int = 10, *queues: str | QueueFetch) -> list[JobRow]:
        """Fetch, and give the jobs."""
        return (await self.ask(limit, *queues)).jobs

    async def beat(self) -> Beat:
        """Beat."""
        return await self.executor.session_beat(self.id, self.lease)

    async def close(self) -> None:
        """Close."""
        await self.executor.session_close(self.id)

    async def expire(self, limit: int = 100) -> list[JobRow]:
        """Look for the jobs of ended sessions."""
        return await self.executor.expire(self.id, limit)

    async def held(self) -> list[JobRow]:
        """What it holds."""
        return await self.executor.held(self.id, None, 1000)


class Lab:
    """A driver on an empty store, migrated.

    Args:
        make_driver: makes it.
        claim_by: which method its sessions claim by.
        mock_time: on a clock that stands still; else in real time.
    """

    driver: AnyDriver
    executor: BaseExecutor

    def __init__(
        self, make_driver: MakeDriver, claim_by: ClaimBy = "exchange", *, mock_time: bool = True
    ) -> None:
        self.make_driver = make_driver
        self.claim_by: ClaimBy = claim_by
        self._mock = MockClock() if mock_time else None
        self._new_job = JobMaker(self._mock or SystemClock())
        self.new_id = self._new_job.new_id
        self._drivers = AsyncExitStack()
        self._after = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open the driver."""
        await self._drivers.__aenter__()
        self.driver = self.unopened_driver()
        await self.driver.migrate()
        await self.driver.ready()
        self.executor = self.driver.executor()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close every driver."""
        async with self._after:  # what is synchronous is closed last: it has threads of its own
            await self._drivers.aclose()

    @property
    def capabilities(self) -> Capabilities:
        """Those of the driver."""
        return self.driver.capabilities

    # ---------------------------------------------------------------- drivers and time

    async def another_driver(self) -> AnyDriver:
        """One more driver on the same store and clock; closed at the end."""
        driver = self.unopened_driver()
        await driver.ready()
        return driver

    def unopened_driver(self) -> AnyDriver:
        """As :meth:`another_driver`, but not yet opened."""
        driver = self.make_driver(clock=self._mock)
        self._drivers.push_async_callback(driver.aclose)
        return driver

    def sync_executor(self) -> SyncExecutor:
        """The driver's operations for synchronous code; not to be used on this thread."""
        self._after.push_async_callback(asyncio.to_thread, self.driver.close)
        return self.driver.sync_executor()

    async def now(self) -> datetime:
        """The driver's time."""
        return await self.executor.now()

    async def advance(self, seconds: float) -> None:
        """Let time pass, for real in a live lab."""
        if self._mock is None:
            await asyncio.sleep(seconds)
        else:
            await self._mock.advance(seconds)

    async def let_appear(self) -> None:
        """Wait until a full fetch, too, must find what is there now."""
        if self.capabilities.late_find_bound:
            await self.advance(self.capabilities.late_find_bound)

    async def at(self, seconds: float) -> datetime:
        """So many seconds from now; negative: ago."""
        return await self.now() + timedelta(seconds=seconds)

    # ---------------------------------------------------------------- jobs

    def job(self, kind: str = "work", **fields: Any) -> NewJob:
        """A new job; ``fields`` are those of :class:`NewJob`."""
        return self._new_job(kind, **fields)

    async def insert(self, *jobs: NewJob) -> list[UUID]:
        """Insert jobs that nothing stands against; their ids."""
        results = await self.executor.insert_many(jobs)
        assert [(r.id, r.status) for r in results] == [(job.id, "INSERTED") for job in jobs]
        return [job.id for job in jobs]

    async def add(self, kind: str = "work", **fields: Any) -> UUID:
        """Insert one job; its id."""
        return (await self.insert(self.job(kind, **fields)))[0]

    async def row(self, job_id: UUID) -> JobRow:
        """A job that must be there, read back."""
        (row,) = await self.executor.get_many([job_id])
        assert row is not None, f"job {job_id} is not there"
        assert row.id == job_id
        return row

    async def rows(self, *job_ids: UUID) -> list[JobRow]:
        """Jobs that must be there."""
        return [await self.row(job_id) for job_id in job_ids]

    async def state(self, job_id: UUID) -> JobState:
        """The state of a job that must be there."""
        return (await self.row(job_id)).state

    async def count(self, *states: JobState) -> int:
        """How many jobs there are, in these states, whatever filters the driver obeys."""
        rows = Rows(self.executor, ListFilter(states=frozenset(states)), capped=False)
        return sum([1 async for _ in rows])

    # ---------------------------------------------------------------- sessions and runs

    async def session(
        self,
        lease: float = LEASE,
        worker_id: str = "worker-1",
        executor: BaseExecutor | None = None,
    ) -> Session:
        """An open session; with ``executor``, of another driver on the store."""
        return await Session(executor or self.executor, self.claim_by, lease, worker_id).open()

    async def running(self, session: Session | None = None, **fields: Any) -> JobRow:
        """A job that was just inserted and claimed."""
        session = session or await self.session()
        queue = fields.setdefault("queue", "default")
        job_id = await self.add(**fields)
        (row,) = await session.fetch(1, queue)
        assert row.id == job_id
        return row

    async def finish(self, claim: Claim | JobRow, to: FinishTo, **fields: Any) -> Outcome:
        """Finish one claim; ``fields`` are those of :class:`Finish`."""
        claim = claim_of(claim) if isinstance(claim, JobRow) else claim
        return await outcome_of(self.executor, Finish(claim, to, **fields))

    async def finished(self, to: FinishTo = "complete", **fields: Any) -> JobRow:
        """A job that was run and finished, read back."""
        row = await self.running(**fields)
        outcome = await self.finish(row, to)
        assert outcome.status == "DONE"
        return await self.row(row.id)

    async def change(self, job_id: UUID, action: ChangeAction, when: When = None) -> Changed:
        """Change one job."""
        (changed,) = await self.executor.change_many([Change(job_id, action, when)])
        return changed

    async def watch(self, asker: Session, *alive: Session, seconds: float) -> list[JobRow]:
        """Let time pass while a session and others keep in contact; what it found in the end.

        It looks for ended sessions with every beat, as an engine does.
        """
        step = min(session.lease for session in (asker, *alive)) / 4
        for _ in range(round(seconds / step)):
            await self.advance(step)
            for session in (asker, *alive):
                assert (await session.beat()).held
            await asker.expire()
        return await asker.expire()


def claim_of(row: JobRow) -> Claim:
    """The claim of a job that runs."""
    assert row.claim is not None, f"job {row.id} is {row.state}: it has no claim"
    return row.claim


async def outcome_of(executor: BaseExecutor, finish: Finish) -> Outcome:
    """The outcome of a finish, which is sent again while somebody holds the job."""
    while True:
        (outcome,) = await executor.finish_many([finish])
        if outcome.status != "BUSY":
            return outcome
        await asyncio.sleep(0)


def still_busy(finishes: Sequence[Finish], outcomes: Sequence[Outcome]) -> list[Finish]:
    """Those to send again, since somebody held the job; all others must be done.

    A fetch may hold a job of another for a moment, which it looked at too late.
    """
    assert {outcome.status for outcome in outcomes} <= {"DONE", "BUSY"}
    pairs = zip(finishes, outcomes, strict=True)
    return [finish for finish, outcome in pairs if outcome.status == "BUSY"]


async def until(holds: Callable[[], Awaitable[object]], *, patience: float = 60.0) -> None:
    """Wait, in real time, until it holds.

    Raises:
        TimeoutError: it does not within so many seconds.
    """
    async with asyncio.timeout(patience):
        while not await holds():  # noqa: ASYNC110 - others change it, and tell nobody
            await asyncio.sleep(_TICK)


def ids(rows: list[JobRow]) -> list[UUID]:
    """Their ids."""
    return [row.id for row in rows]


def failure(attempt: int, at: datetime, message: str = "it broke") -> AttemptError:
    """An attempt's error."""
    return AttemptError(attempt, at, "builtins.ValueError", message, "Traceback …", "worker-1")


async def in_threads(functions: Sequence[Callable[[], R]]) -> list[R]:
    """Run each in a thread of its own, all from the same moment on; what they returned."""
    start = threading.Barrier(len(functions))

    def run(function: Callable[[], R]) -> R:
        start.wait(30)
        return function()

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(len(functions)) as threads:
        return await asyncio.gather(*(loop.run_in_executor(threads, run, f) for f in functions))
