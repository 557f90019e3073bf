"""What the tests of periodic jobs have in common."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, ClassVar

from hypothesis import strategies as st

from goncordia import Client, CronScheduler, PeriodicJob, Schedule, every
from goncordia.driver import JobRow, ListFilter
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver

FULL = os.environ.get("GONCORDIA_FULL") == "1"


@dataclass
class Report:
    kind: ClassVar[str] = "report"
    n: int = 0


def utc(text: str) -> datetime:
    """``"2026-03-29 01:00"`` in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def at(*times: str) -> list[datetime]:
    """Times of the first day of 2026."""
    return [utc(f"2026-01-01 {time}") for time in times]


def minutely(**settings: Any) -> PeriodicJob:
    """A report each minute."""
    return PeriodicJob(every(60), Report(), **settings)


def between(schedule: Schedule, start: datetime, end: datetime) -> list[datetime]:
    """All occurrences after ``start``, up to ``end``, found forward and back."""
    forward: list[datetime] = []
    at = start
    while (found := schedule.after(at)) is not None and found <= end:
        forward.append(at := found)
    back: list[datetime] = []
    at = end
    while (found := schedule.until(at)) is not None and found > start:
        back.append(found)
        at = found - datetime.resolution
    assert forward == back[::-1]
    assert all(one < other for one, other in pairwise(forward))
    return forward


def moments(first: int, last: int) -> st.SearchStrategy[datetime]:
    """Any time of those years, in UTC."""
    start, end = (datetime.fromisoformat(f"{year}-01-01") for year in (first, last))
    return st.datetimes(start, end, timezones=st.just(UTC))


class Kit:
    """A memory driver under a clock that stands still."""

    def __init__(self, start: str = "2026-01-01 00:00") -> None:
        self.clock = MockClock(utc(start))
        self.driver = MemoryDriver(self.clock)
        self.client: Client[Any] = Client(self.driver)

    def scheduler(self, *jobs: PeriodicJob, **settings: Any) -> CronScheduler:
        return CronScheduler(settings.pop("driver", self.driver), jobs, **settings)

    async def until(self, when: str) -> None:
        """Let it be that time."""
        await self.clock.advance(utc(when) - self.clock.now())

    async def rows(self) -> Sequence[JobRow]:
        """All jobs, oldest first."""
        page = await self.driver.executor().list_jobs(ListFilter(), None, 100_000)
        return page.jobs[::-1]

    async def times(self, schedule_id: str = "report") -> list[datetime]:
        """The occurrences of an entry that were enqueued."""
        return [
            datetime.fromisoformat(row.meta["cron.at"])
            for row in await self.rows()
            if row.meta["cron.id"] == schedule_id
        ]
