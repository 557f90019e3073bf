"""The one backend of a simulation: the memory driver, asked synchronously."""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

from goncordia.driver import Claim, Finish, Outcome, Wake
from goncordia.errors import DriverError
from goncordia.memory import MemoryDriver
from goncordia.memory.tx import MemoryTx

from .loop import SimLoop
from .process import Process

__all__ = ["POISON", "Backend", "SimListener", "SimTx"]

POISON = "poison"
"""The backend refuses to store an output that contains this."""

_HEARD = 0.9
"""The share of wakes that reach a listener."""


class Backend:
    """Does what arrives, at once.

    Attributes:
        driver: the memory driver.

    Args:
        driver: see the attribute.
        loop: for the listeners.
        rng: for what the listeners miss.
        records: sessions are records, of which the backend itself knows nothing.
    """

    def __init__(
        self, driver: MemoryDriver, loop: SimLoop, rng: random.Random, *, records: bool
    ) -> None:
        self.driver = driver
        self._records = records
        self._executor = driver.executor()
        self._loop = loop
        self._rng = rng
        self._listeners: list[SimListener] = []
        self._telling: asyncio.Task[None] | None = None

    def do(self, name: str, *args: Any) -> Any:
        """One operation."""
        match name:
            case "tx_finish":
                return self._tx_finish(*args)
            case "tx_commit":
                return self._tx_commit(*args)
            case "finish_many" | "exchange" if _is_poisoned(args[0]):
                raise DriverError("the output cannot be stored", outcome="not_applied")
            case "fetch" if self._records:
                # The memory driver claims only for sessions that it has; it never ends this one.
                now = self.driver.clock.now()
                self.driver.store.session_open(args[0].session, "", math.inf, now, 0.0)
                return _at_once(self._executor.fetch(*args))
            case _:
                return _at_once(getattr(self._executor, name)(*args))

    def _tx_finish(self, tx: SimTx, finishes: Sequence[Finish]) -> list[Outcome]:
        if tx.inner is None:
            tx.inner = MemoryTx(self.driver._core)
        outcomes = tx.inner.finish_many(finishes)
        tx.finishes += zip(finishes, outcomes, strict=True)
        return outcomes

    def _tx_commit(self, tx: SimTx) -> list[tuple[Finish, Outcome]]:
        if tx.inner is not None:
            tx.inner.commit()
        return tx.finishes

    def listen(self, listener: SimListener) -> None:
        """Tell this one as well of what happens."""
        self._listeners.append(listener)
        if self._telling is None:
            self._telling = self._loop.create_task(self._tell())

    async def _tell(self) -> None:
        async for wake in self.driver.listener().wakes():
            for listener in self._listeners:
                if self._rng.random() < _HEARD:
                    self._loop.call_later(self._rng.expovariate(100.0), listener.hear, wake)


def _is_poisoned(finishes: Sequence[Finish]) -> bool:
    poison = POISON.encode()
    return any(finish.output is not None and poison in finish.output for finish in finishes)


def _at_once(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("the memory driver waited for something")


class SimTx:
    """A worker's own transaction.

    Attributes:
        inner: the backend's side of it.
        claim: of the job whose effect it carries.
        finishes: what the job's completion asked for, and the answers.
    """

    def __init__(self, claim: Claim) -> None:
        self.inner: MemoryTx | None = None
        self.claim = claim
        self.finishes: list[tuple[Finish, Outcome]] = []


class SimListener:
    """Hears of what happens, most of the time, while its process is there to hear it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._wakes: deque[Wake | None] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def hear(self, wake: Wake) -> None:
        """The backend tells something."""
        if not self._process.cut:
            self._process.deliver(lambda: self._put(wake))

    def _put(self, wake: Wake | None) -> None:
        self._wakes.append(wake)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wakes(self) -> AsyncIterator[Wake]:
        while True:
            while self._wakes:
                wake = self._wakes.popleft()
                if wake is None:
                    return
                yield wake
            self._waiter = self._process.loop.create_future()
            await self._waiter

    async def aclose(self) -> None:
        self._put(None)
