"""A backend that is away, slow, or refuses some of what it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from goncordia.driver import InsertResult, NewJob, PutResult
from goncordia.errors import DriverError, DriverUnavailableError
from goncordia.memory.executor import MemoryExecutor

from .kit import Kit


class Flaky(MemoryExecutor):
    """Its calls fail as they are told to."""

    down: DriverError | None = None
    after_effect = False
    refuses: str | None = None
    loses: frozenset[str] = frozenset()
    hangs = False
    slow = 0.0

    def fail(self) -> None:
        if self.down is not None:
            raise self.down

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        if self.slow:
            await self.clock.sleep(self.slow)
        if not self.after_effect:
            self.fail()
        if any(job.meta["cron.id"] in self.loses for job in jobs):
            raise DriverUnavailableError("gone")
        if any(job.meta["cron.id"] == self.refuses for job in jobs):
            raise DriverError("it cannot be stored", outcome="not_applied")
        result = await super().insert_many(jobs)
        self.fail()
        return result

    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> PutResult:
        if not self.after_effect:
            self.fail()
        result = await super().record_put(name, value, expected_version, token)
        self.fail()
        return result


def flaky(kit: Kit) -> Flaky:
    executor = Flaky(kit.driver.name, kit.driver.capabilities, kit.driver._core)
    kit.driver._executor = executor
    return executor
