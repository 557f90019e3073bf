"""A test stand: time by hand, a driver over a wire, a registry, and a note of all that happens."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from goncordia import Client, Job, JobHandle, Registry, WorkerPool
from goncordia.clock import SystemClock
from goncordia.driver import (
    AttemptError,
    BaseExecutor,
    Claim,
    FetchRequest,
    Finish,
    FinishTo,
    JobRow,
    Mark,
    NewJob,
    Outcome,
    QueueFetch,
)
from goncordia.engine.engine import Engine
from goncordia.engine.events import Event, Observer
from goncordia.gontest import MockClock
from goncordia.ids import new_session_id
from goncordia.memory import MemoryDriver, MemoryTx

from .wire import WireDriver

E = TypeVar("E")


@dataclass
class Work:
    kind: ClassVar[str] = "work"
    n: int = 0


@dataclass
class Other:
    kind: ClassVar[str] = "other"
    n: int = 0


class Gate:
    """A door in a handler: it waits there until it is opened."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self.waiting = 0
        self.most = 0
        self.came = 0
        self.ends: list[str] = []

    async def pass_through(self) -> None:
        self.came += 1
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1

    def open(self) -> None:
        self._open.set()

    def close(self) -> None:
        self._open.clear()


class Stand:
    """Everything that a test of the engine needs.

    Args:
        wakes: whether the driver has a listener.
        weak: the seed of a weak memory driver.
        real: the machine's time.
        **capabilities: those that differ from the memory driver's.
    """

    def __init__(
        self,
        *,
        wakes: bool = True,
        weak: int | None = None,
        real: bool = False,
        **capabilities: Any,
    ) -> None:
        self.clock = MockClock()
        self.memory = MemoryDriver(None if real else self.clock, weak=weak)
        self.driver = WireDriver(self.memory, wakes=wakes, **capabilities)
        self.wire = self.driver.wire
        self.client: Client[MemoryTx] = Client(self.memory, rng=random.Random(1))
        self.registry: Registry[Any] = Registry()
        self.events: list[Event] = []
        self.pools: list[WorkerPool] = []

    # ------------------------------------------------------------ pools

    def pool(self, **settings: Any) -> WorkerPool:
        """A pool on the stand's driver, with seeded randomness, whose events are noted."""
        given = settings.pop("observer", ())
        more: Sequence[Observer] = (given,) if callable(given) else given
        settings.setdefault("worker_id", f"pool-{len(self.pools)}")
        settings.setdefault("rng", random.Random(7 + len(self.pools)))
        pool = WorkerPool(
            settings.pop("driver", self.driver),
            settings.pop("registry", self.registry),
            observer=(self.events.append, *more),
            **settings,
        )
        self.pools.append(pool)
        return pool

    @asynccontextmanager
    async def working(self, **settings: Any) -> AsyncIterator[WorkerPool]:
        """A pool that works; stopped at the end, whatever the state of things."""
        pool = self.pool(**settings)
        await self.finish(pool.start())
        try:
            yield pool
        finally:
            self.wire.heal()
            await self.stop(pool)

    async def stop(self, pool: WorkerPool) -> None:
        """Stop a pool, and move time on if it takes time. Nothing of it may be left."""
        engine = pool._engine
        await self.finish(pool.stop())
        if engine is None:
            return
        claims, lanes = engine.claims, engine.lanes
        left = [*claims, *claims.pending, *claims.running]
        counts = [claims.active, *claims.active_by_queue.values(), *claims.active_by_kind.values()]
        asked = [*lanes._shape._asked_queues.values(), *lanes._shape._asked_kinds.values()]
        assert (left, claims.unsent, len(lanes.in_flight), lanes.busy) == ([], 0, 0, 0)
        assert (len(engine._marks._waiting), len(engine._marks._unanswered)) == (0, 0)
        assert len(engine._confirmer._tasks) == 0
        assert not any([*counts, *asked, lanes._reserved]), "something is counted that is not there"

    async def finish(self, awaitable: Any, within: float = 300.0) -> Any:
        """Await something that needs time to go on."""
        task = asyncio.ensure_future(awaitable)
        left = within
        await self.advance(0)
        while not task.done() and left > 0:
            await self.advance(0.5)
            left -= 0.5
        if not task.done():
            task.cancel()
            raise AssertionError(f"{awaitable} did not end in {within:g} s")
        return task.result()

    @staticmethod
    def engine(pool: WorkerPool) -> Engine:
        engine = pool._engine
        assert engine is not None
        return engine

    def session(self, pool: WorkerPool) -> UUID:
        """The id of the pool's session."""
        return self.engine(pool).session.id

    def seen(self, event: type[E]) -> list[E]:
        """The events of one type so far."""
        return [each for each in self.events if isinstance(each, event)]

    def gated(self, **options: Any) -> Gate:
        """A worker that waits at a gate, which notes how its runs end."""
        gate = Gate()

        @self.registry.worker(Work, **options)
        async def work(job: Job[Work]) -> str:
            try:
                await gate.pass_through()
            except asyncio.CancelledError:
                gate.ends.append(f"interrupted {job.args.n}")
                raise
            gate.ends.append(f"returned {job.args.n}")
            return "done"

        return gate

    def end_sessions(self) -> None:
        """As others do who take the pools for dead."""
        sessions = self.memory.store.sessions
        for session in list(sessions.open.values()):
            sessions.end(session)

    def marks(self) -> list[Mark]:
        """All marks that were sent."""
        return [mark for (batch,) in self.wire.given("mark_many") for mark in batch]

    # ------------------------------------------------------------ time

    async def advance(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def until(self, holds: Callable[[], object], within: float = 10.0) -> None:
        """For what threads do: wait in real time, a little, until it holds."""
        deadline = time.monotonic() + within
        while not holds():
            assert time.monotonic() < deadline, "it did not come to pass"
            await self.clock.settle()
            await asyncio.sleep(0.001)

    # ------------------------------------------------------------ jobs

    async def enqueue(self, args: Any = None, **options: Any) -> JobHandle[Any]:
        return await self.client.enqueue(Work() if args is None else args, **options)

    async def insert(self, **fields: Any) -> UUID:
        """A job as the contract knows it, past the client."""
        fields.setdefault("id", (await self.enqueue(Other(), queue="ids")).id)
        fields["id"] = UUID(int=fields["id"].int + 1)
        fields.setdefault("kind", "work")
        fields.setdefault("args", b'{"n":0}')
        (result,) = await self.memory.executor().insert_many([NewJob(**fields)])
        assert result.status == "INSERTED"
        return result.id

    async def row(self, job: JobHandle[Any] | UUID) -> JobRow:
        """The job as it is stored."""
        job_id = job if isinstance(job, UUID) else job.id
        (row,) = await self.memory.executor().get_many([job_id])
        assert row is not None
        return row

    async def state(self, job: JobHandle[Any] | UUID) -> str:
        return (await self.row(job)).state.value

    def hand(self, lease: float = 30.0) -> Hand:
        """Another pool, played by the test."""
        return Hand(self.memory.executor(), lease)


class Hand:
    """Claims jobs as a pool does, and beats or dies as the test wants."""

    def __init__(self, executor: BaseExecutor, lease: float) -> None:
        self._executor = executor
        self._lease = lease
        self._fetches = 0
        self.session = new_session_id()

    async def claim(self, number: int = 1, queue: str = "default") -> list[JobRow]:
        await self._executor.session_open(self.session, "hand", self._lease)
        self._fetches += 1
        request = FetchRequest(
            self.session, self._fetches, number, (QueueFetch(queue, number),), "hand"
        )
        return (await self._executor.fetch(request)).jobs

    async def beat(self) -> bool:
        return (await self._executor.session_beat(self.session, self._lease)).held

    async def finish(self, claim: Claim | None, to: FinishTo, **more: Any) -> Outcome:
        assert claim is not None
        (outcome,) = await self._executor.finish_many([Finish(claim, to, **more)])
        return outcome


def failure(text: str = "no luck") -> AttemptError:
    return AttemptError(1, SystemClock().now(), "ValueError", text)
