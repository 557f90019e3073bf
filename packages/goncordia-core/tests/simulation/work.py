"""The jobs of the simulation, and what their handlers do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from goncordia import Registry
from goncordia.directives import Cancel, Discard, RetryAfter, Snooze
from goncordia.engine.events import Event, JobFinished, JobStarted, ResultLost
from goncordia.errors import DriverError, StaleClaimError
from goncordia.job import Job

from .backend import POISON, SimTx
from .driver import SimDriver
from .entries import RunEntry
from .ledger import Ledger
from .process import Process

__all__ = ["BEHAVIOURS", "KINDS", "MAX_ATTEMPTS", "App", "Behaviour", "make_registry"]


@dataclass
class Plain:
    """Returns, fails, or raises a directive."""

    kind: ClassVar[str] = "plain"
    n: int


@dataclass
class InTx:
    """Completes itself in a transaction of its own."""

    kind: ClassVar[str] = "tx"
    n: int


@dataclass
class Steps:
    """Goes on from its last checkpoint."""

    kind: ClassVar[str] = "steps"
    n: int


@dataclass
class Blocking:
    """Blocks the event loop."""

    kind: ClassVar[str] = "blocking"
    n: int


KINDS: dict[str, Any] = {cls.kind: cls for cls in (Plain, InTx, Steps, Blocking)}

MAX_ATTEMPTS = {"plain": 4, "tx": 3, "steps": 4, "blocking": 2}
"""Of the workers, for jobs that do not say."""

_STEPS = 3


class App:
    """What handlers reach through ``job.app``: their process and the books."""

    def __init__(
        self,
        process: Process,
        driver: SimDriver,
        ledger: Ledger,
        rng: random.Random,
        blocks: Callable[[App, float], None],
    ) -> None:
        self.process = process
        self.driver = driver
        self.ledger = ledger
        self.rng = rng
        self._blocks = blocks
        self._started: dict[UUID, RunEntry] = {}
        self._own_cancel: set[RunEntry] = set()

    def observe(self, event: Event) -> None:
        """The pool's observer."""
        if self.process.dead:
            return
        if isinstance(event, JobStarted):
            self._started[event.row.id] = self.ledger.runs.starts(self.process, event.row)
        elif isinstance(event, JobFinished) and event.to is None:
            self.ledger.runs.dropped(event.row)
        elif isinstance(event, ResultLost):
            self.ledger.runs.lost(event)

    def run_of(self, job: Job[Any, App]) -> RunEntry:
        """The entry of a run that is just being started."""
        return self._started.pop(job.id)

    def cancels_itself(self, run: RunEntry) -> None:
        """The handler is about to raise a CancelledError that nobody sent."""
        self._own_cancel.add(run)

    def is_interrupted(self, run: RunEntry) -> bool:
        """Whether a CancelledError in the handler came from the engine."""
        if run in self._own_cancel:
            return run.interrupted
        self.ledger.runs.interrupted(run)
        return True

    def block_for(self, seconds: float) -> None:
        """Block the event loop."""
        self._blocks(self, seconds)

    async def nap(self, run: RunEntry, seconds: float, *, stubborn: bool = False) -> None:
        """Wait; a stubborn handler goes on for a while when it is told to end."""
        clock = self.process.clock
        try:
            await clock.sleep(seconds)
        except asyncio.CancelledError:
            self.ledger.runs.interrupted(run)
            if not stubborn:
                raise
            await clock.sleep(self.rng.uniform(0.3, 7.0))  # a shutdown's grace is 5 s
            if self.rng.random() < 0.5:
                raise

    async def commit(self, tx: SimTx) -> None:
        """Commit a worker's transaction."""
        await self.driver.call("tx_commit", tx)


Behaviour = Callable[[Job[Any, App], App, RunEntry], Awaitable[object]]


def make_registry(app: App, behaviours: Mapping[str, Behaviour]) -> Registry[App]:
    """The workers of one pool."""

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[App]:
        yield app

    registry: Registry[App] = Registry(lifespan=lifespan)
    for kind, behave in behaviours.items():
        worker = registry.worker(KINDS[kind], max_attempts=MAX_ATTEMPTS[kind])
        worker(_recorded(behave))
    return registry


def _recorded(behave: Behaviour) -> Callable[[Job[Any, App]], Awaitable[object]]:
    """A handler that keeps the books."""

    async def handle(job: Job[Any, App]) -> object:
        app = job.app
        if app.process.dead:  # killed in this very instant: it never started
            await app.process.loop.create_future()
        run = app.run_of(job)
        said = "interrupted"
        try:
            output = await behave(job, app, run)
            said = "returned"
            return output
        except asyncio.CancelledError:
            # Without an interrupt it is the handler's own affair, and a failure.
            said = "interrupted" if app.is_interrupted(run) else "failed"
            raise
        except Snooze:
            said = "snoozed"
            raise
        except Discard:
            said = "discarded"
            raise
        except Cancel:
            said = "cancelled"
            raise
        except Exception:
            said = "failed"
            raise
        finally:
            if not app.process.dead:
                app.ledger.runs.ends(run, said)

    return handle


async def _plain(job: Job[Any, App], app: App, run: RunEntry) -> object:
    rng = app.rng
    await app.nap(run, _duration(rng), stubborn=rng.random() < 0.15)
    x = rng.random()
    if x < 0.14:
        raise RuntimeError("failed")
    if x < 0.20:
        raise Snooze(rng.uniform(0.1, 2.0))
    if x < 0.23:
        raise Discard("of no use")
    if x < 0.26:
        raise Cancel("not needed")
    if x < 0.30:
        raise RetryAfter(rng.uniform(0.1, 2.0))
    if x < 0.32:
        run.poisoned = True
        return POISON
    if x < 0.34:
        app.cancels_itself(run)
        raise asyncio.CancelledError  # as when something that it awaited was cancelled
    return job.args.n if x < 0.5 else None


async def _tx(job: Job[Any, App], app: App, run: RunEntry) -> object:
    rng = app.rng
    await app.nap(run, _duration(rng), stubborn=rng.random() < 0.1)
    swallows, x = rng.random() < 0.4, rng.random()
    tx = SimTx(run.claim)
    run.tx = True
    try:
        await job.complete_tx(tx)
        if rng.random() < 0.3:
            await app.nap(run, rng.expovariate(2.0))
        if x < 0.2:
            if swallows:
                return None  # rolled back, and returned as if nothing were wrong
            raise RuntimeError("rolled back")
        await app.commit(tx)
    except (DriverError, StaleClaimError):
        if not swallows:
            raise
    if x > 0.9:
        raise RuntimeError("after the commit")
    return None


async def _steps(job: Job[Any, App], app: App, run: RunEntry) -> object:
    rng = app.rng
    done = job.last_checkpoint or 0
    # A lost copy of an older mark may come last; only the end of its run puts that right.
    was_rescued = any(earlier.end[1] for earlier in run.job.runs)
    if done < run.job.checkpoint and not was_rescued:
        app.ledger.books.bad("a checkpoint went back", run.job.number, done, run.job.checkpoint)
    while done < _STEPS:
        await app.nap(run, rng.expovariate(1.0))
        if rng.random() < 0.1:
            raise RuntimeError("failed between steps")
        done += 1
        await job.checkpoint(done)
        run.job.checkpoint = max(run.job.checkpoint, done)
    return done


async def _blocking(job: Job[Any, App], app: App, run: RunEntry) -> object:
    rng = app.rng
    x = rng.random()
    if x < 0.6:
        app.block_for(rng.uniform(1, 15))
    elif x < 0.85:
        app.block_for(rng.uniform(18, 32))  # about a lease
    else:
        app.block_for(rng.uniform(60, 90))  # beyond the stall limit
    await app.nap(run, 0.0)
    await app.nap(run, rng.expovariate(2.0))
    return None


def _duration(rng: random.Random) -> float:
    x = rng.random()
    if x < 0.8:
        return rng.expovariate(2.0)
    return rng.uniform(2, 12) if x < 0.9 else rng.uniform(12, 50)


BEHAVIOURS: Mapping[str, Behaviour] = {
    "plain": _plain,
    "tx": _tx,
    "steps": _steps,
    "blocking": _blocking,
}
"""What the handlers do, by kind."""
