"""The world of one seed: its loop, its backend, its network, and the pools that live in it."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from goncordia import KindPolicy, QueuePolicy, WorkerPool
from goncordia.driver import Capabilities, JobRow, ListFilter
from goncordia.errors import DriverUnavailableError
from goncordia.memory import MemoryDriver

from .backend import Backend
from .books import Books
from .driver import SimDriver
from .ledger import Ledger
from .loop import SimLoop
from .network import Faults, Network
from .options import Options
from .process import Process, ServerClock
from .rates import Rates
from .work import BEHAVIOURS, MAX_ATTEMPTS, App, Behaviour, make_registry

__all__ = ["BEAT", "LEASE", "QUEUES", "Member", "World"]

LEASE = 20.0
BEAT = 4.0
QUEUES = ("urgent", "default", "bulk")

_RESCUE = 3.0
_STALL_LIMIT = 40.0
_SHUTDOWN = 5.0
_FAULT_RATES = (0.001, 0.006, 0.012, 0.03)
_DAY = 3600.0


@dataclass
class Member:
    """A pool and the process that it lives in.

    Attributes:
        process: the process.
        pool: the pool.
        started: its start.
        stopped: its shutdown, once it is asked for.
    """

    process: Process
    pool: WorkerPool
    started: asyncio.Task[None]
    stopped: asyncio.Task[None] | None = None


class World:
    """Everything of one seed, and the ways to put processes into it.

    Attributes:
        rng: what a seed decides, it decides by this.
        loop: the event loop of all.
        network: between the processes and the backend.
        books: the ledger's entries.
        ledger: the ledger.
        capabilities: all that the backend can.
        store: the memory driver's own store, to look at.
        members: the pools, in the order of their starts.
        options: of the seed.
        trace_lines: the trace, if it is kept.
        over: nothing counts any more.
    """

    def __init__(self, seed: int, options: Options) -> None:
        self.options = options
        self.rng = random.Random(seed)
        self.loop = SimLoop()
        self.over = False
        self.trace_lines: list[str] = []
        self._hash = hashlib.sha256()
        weak = self.seeded() if options.weak else None
        memory = MemoryDriver(ServerClock(self.loop), weak=weak)
        self.store = memory.store
        self.capabilities = memory.capabilities
        self._memory = memory
        records = options.records
        self._records = self.rng.random() < 0.15 if records is None else records
        faults = options.faults or Faults(rate=self.rng.choice(_FAULT_RATES))
        self.network = Network(self.loop, self.seeded(), faults, self.trace)
        self._backend = Backend(memory, self.loop, self.seeded(), records=self._records)
        self.books = Books(self.loop, self.trace, MAX_ATTEMPTS.__getitem__)
        self.books.rates = Rates(seed, wanted=options.limits, shared=not self._records)
        self.ledger = Ledger(
            self.books,
            lease=LEASE,
            stall_limit=_STALL_LIMIT + 2 * BEAT,
            open_sessions=lambda: set(self.store.sessions.open),
            row_of=self.row,
        )
        self.network.watcher = self.ledger
        self.members: list[Member] = []
        self._kept: set[asyncio.Task[Any]] = set()

    def seeded(self) -> random.Random:
        """A source of randomness of one's own."""
        return random.Random(self.rng.getrandbits(64))

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A task."""
        return self.loop.create_task(coroutine)

    # ---------------------------------------------------------------- the trace

    def trace(self, *what: object) -> None:
        """Something happened."""
        if self.over:
            return
        line = f"{self.loop.time():.6f} {' '.join(map(str, what))}"
        self._hash.update(line.encode())
        if self.options.keep_trace:
            self.trace_lines.append(line)

    @property
    def digest(self) -> str:
        """Of all that happened."""
        return self._hash.hexdigest()[:16]

    # ---------------------------------------------------------------- what the backend holds

    def row(self, job_id: UUID) -> JobRow | None:
        """One job."""
        (row,) = self.store.get_many([job_id], self._memory.clock.now())
        return row

    def rows(self) -> list[JobRow]:
        """All jobs."""
        return self.store.list_jobs(ListFilter(), None, 1_000_000, self._memory.clock.now()).jobs

    # ---------------------------------------------------------------- processes

    def process(self, name: str) -> Process:
        """A new process, whose wall clock is off by up to an hour."""
        return Process(name, self.loop, self.seeded(), self.rng.uniform(-_DAY, _DAY))

    def client_driver(self, process: Process) -> SimDriver:
        """A driver for a client, that bounds its calls by itself."""
        capabilities = msgspec.structs.replace(
            self._memory.capabilities, server_time=not self._records
        )
        return SimDriver(process, self.network, self._backend, capabilities, gives_up=True)

    def start_pool(
        self,
        name: str,
        behaviours: Mapping[str, Behaviour] = BEHAVIOURS,
        *,
        heart: bool | None = None,
        capabilities: Capabilities | None = None,
        **settings: Any,
    ) -> Member:
        """A new process with a pool in it.

        Args:
            name: the process's.
            behaviours: what the handlers do, by kind.
            heart: it beats from a thread; None: chance decides.
            capabilities: of its driver; None: chance decides.
            settings: of the pool; what is missing is left to chance.
        """
        rng, books = self.rng, self.books
        process = self.process(name)
        by_chance = rng.random() < 0.5 and not self._records
        shown = self._capabilities()
        driver = SimDriver(
            process,
            self.network,
            self._backend,
            shown if capabilities is None else capabilities,
            heart=by_chance if heart is None else heart,
        )
        app = App(process, driver, self.ledger, self.seeded(), self._block)
        chosen: dict[str, Any] = {
            "concurrency": rng.choice([1, 2, 4]),
            "max_pending": rng.choice([None, 0, 6]),
            "interrupt_on_lapse": rng.random() < 0.2,
        }
        if rng.random() < 0.25:
            chosen["queue_policies"] = {"bulk": QueuePolicy(concurrency=1)}
        if rng.random() < 0.25:
            chosen["kind_policies"] = {"tx": KindPolicy(concurrency=1)}
        chosen |= settings
        books.slots[process] = chosen["concurrency"]
        books.known[process] = frozenset(behaviours)
        books.narrow[process] = {
            *chosen.get("queue_policies", ()),
            *chosen.get("kind_policies", ()),
        }
        for setting, policies in books.rates.settings(behaviours).items():
            chosen[setting] = policies | chosen.get(setting, {})
        if chosen["interrupt_on_lapse"]:
            books.lapsing.add(process)
        pool = WorkerPool(
            driver,
            make_registry(app, behaviours),
            queues=QUEUES,
            poll_interval=1.0,
            lease=LEASE,
            heartbeat_interval=BEAT,
            rescue_interval=_RESCUE,
            stall_limit=_STALL_LIMIT,
            worker_id=name,
            observer=app.observe,
            rng=self.seeded(),
            **{"shutdown_timeout": _SHUTDOWN, **chosen},
        )
        member = Member(process, pool, self.spawn(pool.start()))
        self.members.append(member)
        return member

    def _capabilities(self) -> Capabilities:
        rng = self.rng
        return msgspec.structs.replace(
            self.capabilities,
            server_time=not self._records,
            exchange=rng.random() < 0.7 and not self._records,
            fetch_kinds=rng.random() < 0.7,
            wakeups="all" if rng.random() < 0.3 else "none",
        )

    def _block(self, app: App, seconds: float) -> None:
        """A handler blocks its event loop."""
        process = app.process
        self.trace("block", process.name, round(seconds, 3))
        process.block(seconds)
        if not app.driver.has_heart or seconds > _STALL_LIMIT - 2 * BEAT:
            self.books.doubt(process, self.loop.time() + seconds)

    async def kill(self, process: Process) -> None:
        """Kill -9."""
        self.trace("kill", process.name)
        process.kill()
        await asyncio.sleep(0.001)
        self._kept |= asyncio.all_tasks()  # else its tasks are in nobody's hands, and collected

    async def stop_pool(self, member: Member) -> None:
        """A graceful shutdown, which must come to an end."""
        process = member.process
        self.trace("shutdown", process.name)
        await asyncio.wait([member.started])
        if (failure := member.started.exception()) is not None:
            self.books.bad(f"a start failed: {failure!r}"[:120])
            return
        self.books.closing.add(process)
        began = self.loop.time()
        member.stopped = self.spawn(member.pool.stop())
        done, _ = await asyncio.wait([member.stopped], timeout=300.0)
        if process.dead:
            return
        if not done:
            self.books.bad("a shutdown goes on for ever", process.name)
        elif (error := member.stopped.exception()) is not None:
            trouble = self.network.trouble.get(process, float("-inf"))
            if isinstance(error, DriverUnavailableError) and trouble > began - LEASE:
                self.books.counts["results left to a lease"] += 1
            else:
                self.books.bad(f"a shutdown failed: {error!r}"[:120])
