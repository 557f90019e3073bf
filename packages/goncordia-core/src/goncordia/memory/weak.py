"""The memory driver at its weakest: all that the contract allows a backend, at random.

It keeps the engine honest: what must not be relied on, happens here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from goncordia.driver.capabilities import Capabilities
from goncordia.driver.requests import FetchRequest, Finish, ListFilter, Mark
from goncordia.driver.results import FetchResult, Outcome, Page
from goncordia.driver.values import JobRow
from goncordia.errors import DriverBusyError
from goncordia.memory.core import Core
from goncordia.memory.executor import MemoryExecutor
from goncordia.memory.fetching import PassOver
from goncordia.memory.job import Job
from goncordia.memory.store import Store

__all__ = ["LATE_FIND_BOUND", "WeakExecutor"]

R = TypeVar("R")
Q = TypeVar("Q", Finish, Mark)

LATE_FIND_BOUND: Final = 0.5
"""Seconds for which a weak driver's full result may pass over a new job."""

_BUSY: Final = 0.03
_HELD: Final = 0.05
_SHORT: Final = 0.2
_UNSEEN: Final = 0.3
_UNKNOWN: Final = 0.2
_LATE: Final = 0.2


class WeakExecutor(MemoryExecutor):
    """The operations of a driver with ``weak``; the same seed gives the same answers.

    Args:
        rng: what decides.
    """

    def __init__(
        self, driver_name: str, capabilities: Capabilities, core: Core, rng: random.Random
    ) -> None:
        super().__init__(driver_name, capabilities, core)
        self._rng = rng

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _call(self, operation: Callable[[Store, datetime], R]) -> R:
        if self._chance(_BUSY):
            raise DriverBusyError("busy, by chance", outcome="not_applied", retry_after=0.05)
        return super()._call(operation)

    async def fetch(self, request: FetchRequest, /) -> FetchResult:
        """Fetch; perhaps fewer, perhaps passing over new jobs, perhaps not knowing what is next."""
        return self._call(lambda store, now: self._fetch(store, request, now))

    async def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        """Finish and fetch at once; perhaps the fetch does not see what the finishes freed."""

        def operation(store: Store, now: datetime) -> tuple[list[Outcome], FetchResult | None]:
            if request is None:
                return self._finish(store, finishes, now), None
            if self._chance(_UNSEEN):
                fetched = self._fetch(store, request, now)
                return self._finish(store, finishes, now), fetched
            outcomes = self._finish(store, finishes, now)
            return outcomes, self._fetch(store, request, now)

        return self._call(operation)

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """Finish; perhaps somebody holds some of the jobs."""
        return self._call(lambda store, now: self._finish(store, finishes, now))

    async def mark_many(self, marks: Sequence[Mark], /) -> list[Outcome]:
        """Mark; perhaps somebody holds some of the jobs."""
        return self._call(
            lambda store, now: self._unless_held(marks, lambda free: store.mark_many(free, now))
        )

    def _finish(self, store: Store, finishes: Sequence[Finish], now: datetime) -> list[Outcome]:
        return self._unless_held(finishes, lambda free: store.finish_many(free, now))

    def _unless_held(
        self, requests: Sequence[Q], answer: Callable[[Sequence[Q]], list[Outcome]]
    ) -> list[Outcome]:
        """The answers, with ``BUSY`` in place of some."""
        held = {each.claim.job_id for each in requests if self._chance(_HELD)}
        answers = iter(answer([each for each in requests if each.claim.job_id not in held]))
        return [
            Outcome("BUSY") if each.claim.job_id in held else next(answers) for each in requests
        ]

    def _fetch(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        if request.limit > 0 and self._chance(_SHORT):
            result = self._fetch_short(store, request, now)
        else:
            result = store.fetch(request, now, self._pass_over(now))
        if self._chance(_UNKNOWN):
            result = msgspec.structs.replace(result, next_due_in=None)
        return result

    def _fetch_short(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        """Stop early and say so. Nothing is passed over: only a full result may do that."""
        fewer = self._rng.randrange(request.limit)
        result = store.fetch(msgspec.structs.replace(request, limit=fewer), now)
        if len(result.jobs) < fewer or result.lost:
            return result
        return msgspec.structs.replace(result, more=True)

    def _pass_over(self, now: datetime) -> PassOver:
        since = now - timedelta(seconds=LATE_FIND_BOUND)

        def pass_over(job: Job) -> bool:
            return job.visible_at > since and self._chance(_LATE)

        return pass_over

    async def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        """A page; perhaps a short one."""
        fewer = self._rng.randint(1, limit) if self._chance(_SHORT) and limit > 0 else limit
        return self._call(lambda store, now: store.list_jobs(where, page, fewer, now))

    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        """Expire; perhaps giving fewer."""
        fewer = self._rng.randint(0, limit) if self._chance(_SHORT) else limit
        return self._call(
            lambda store, now: store.expire(session, fewer, now, self.clock.monotonic())
        )
