"""What the tests of the pool have in common: time by hand, a driver, a registry with one worker."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from goncordia import Client, Job, Registry, WorkerPool
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver, MemoryTx

T = TypeVar("T")


@dataclass
class Work:
    kind: ClassVar[str] = "work"
    n: int = 0


@dataclass
class Other:
    kind: ClassVar[str] = "other"
    n: int = 0


class Kit:
    """A memory driver under a clock that stands still, and a pool's makings."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.driver = MemoryDriver(self.clock)
        self.client: Client[MemoryTx] = Client(self.driver, rng=random.Random(1))
        self.registry: Registry[Any] = Registry()
        self.done: list[int] = []
        self.fail_first = False
        self.gate = asyncio.Event()
        self.gate.set()
        self._pools = 0

        @self.registry.worker(Work, retry_policy=lambda _: 5)
        async def work(job: Job[Work]) -> None:
            await self.gate.wait()
            if self.fail_first and job.attempt == 1:
                raise ValueError("the first time")
            self.done.append(job.args.n)

    def pool(self, **settings: Any) -> WorkerPool:
        self._pools += 1
        settings.setdefault("rng", random.Random(self._pools))
        return WorkerPool(
            settings.pop("driver", self.driver), settings.pop("registry", self.registry), **settings
        )

    async def finish(self, awaitable: Awaitable[T], within: float = 300.0) -> T:
        """Await something that needs time to go on."""
        task = asyncio.ensure_future(awaitable)
        await self.clock.advance(0)
        while not task.done() and within > 0:
            await self.clock.advance(0.5)
            within -= 0.5
        if not task.done():
            task.cancel()
            raise AssertionError(f"{awaitable} did not end in time")
        return task.result()

    async def over(self, awaitable: Awaitable[Any], seconds: float) -> bool:
        """Whether it ends within so many seconds."""
        task = asyncio.ensure_future(awaitable)
        await self.clock.advance(seconds)
        if task.done():
            task.result()
            return True
        task.cancel()
        await asyncio.wait((task,))
        return False

    async def states(self) -> list[str]:
        """The states of all jobs, oldest first."""
        return [job.state.value for job in reversed((await self.client.list()).jobs)]
