"""Counting and pruning by listing: correct anywhere, fast nowhere."""

from __future__ import annotations

import math
from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Final, Self

from goncordia.driver.defaults.steps import after_effect
from goncordia.driver.requests import Change, ListFilter, PruneRequest
from goncordia.driver.results import QueueStats
from goncordia.driver.values import FINISHED_STATES, At, JobRow, JobState

if TYPE_CHECKING:
    from goncordia.driver.executor import BaseExecutor

__all__ = [
    "CAP",
    "UNFINISHED_STATES",
    "Rows",
    "count",
    "prune",
    "queue_stats",
    "row_matches",
    "unique_key_held",
]

CAP: Final = 10_000
"""How many jobs a default looks at before it stops."""

_PAGE: Final = 500
UNFINISHED_STATES: Final = frozenset(JobState) - FINISHED_STATES


def row_matches(row: JobRow, where: ListFilter) -> bool:
    """Whether a job passes the filter; for drivers that filter in Python."""
    return (
        (not where.states or row.state in where.states)
        and (not where.kinds or row.kind in where.kinds)
        and (not where.queues or row.queue in where.queues)
        and where.tags <= set(row.tags)
        and (where.group is None or row.group == where.group)
        and (where.created_from is None or row.created_at >= where.created_from)
        and (where.created_until is None or row.created_at < where.created_until)
    )


def unique_key_held(row: JobRow, now: datetime) -> bool:
    """Whether the job holds its unique key at this time."""
    if row.unique_key is None:
        return False
    match row.unique_hold:
        case "until_deleted":
            return True
        case At(when):
            return now < when
        case "active":
            return not row.state.finished


class Rows:
    """The matching jobs, newest first, whatever of the filter the driver obeys.

    Args:
        executor: where to list.
        where: which jobs.
        capped: look at no more than the cap.
        page: how many to read at first; doubled with every page.
    """

    def __init__(
        self,
        executor: BaseExecutor,
        where: ListFilter,
        *,
        capped: bool = True,
        page: int = _PAGE,
    ) -> None:
        self._executor = executor
        self._where = where
        self._left = CAP if capped else math.inf
        self._size = page
        self._page: bytes | None = None
        self._read: deque[JobRow] = deque()
        self.complete = False
        """Whether the end of the list was reached."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> JobRow:
        while not self._read:
            if self.complete or self._left <= 0:
                raise StopAsyncIteration
            size = int(min(self._size, self._left))
            self._size = min(self._size * 2, _PAGE)
            got = await self._executor.list_jobs(self._where, self._page, size)
            self._read.extend(row for row in got.jobs if row_matches(row, self._where))
            self._left -= len(got.jobs)
            self._page = got.next
            self.complete = got.next is None
        return self._read.popleft()


async def count(executor: BaseExecutor, where: ListFilter) -> int:
    """How many jobs match, among the newest up to the cap."""
    return sum([1 async for _ in Rows(executor, where)])


async def queue_stats(executor: BaseExecutor) -> list[QueueStats]:
    """Unfinished jobs by queue and state; inexact once the cap is reached."""
    numbers: dict[str, dict[JobState, int]] = {}
    oldest: dict[str, datetime] = {}
    rows = Rows(executor, ListFilter(states=UNFINISHED_STATES))
    async for row in rows:
        states = numbers.setdefault(row.queue, {})
        states[row.state] = states.get(row.state, 0) + 1
        if row.state is JobState.AVAILABLE:
            oldest[row.queue] = min(row.run_at, oldest.get(row.queue, row.run_at))
    return [
        QueueStats(
            name=name,
            available=states.get(JobState.AVAILABLE, 0),
            scheduled=states.get(JobState.SCHEDULED, 0),
            retryable=states.get(JobState.RETRYABLE, 0),
            running=states.get(JobState.RUNNING, 0),
            oldest_due=oldest.get(name),
            exact=rows.complete,
        )
        for name, states in sorted(numbers.items())
    ]


async def prune(executor: BaseExecutor, request: PruneRequest) -> int:
    """Delete finished jobs that are old enough and hold no unique key."""
    before = {
        JobState.COMPLETED: request.completed,
        JobState.DISCARDED: request.discarded,
        JobState.CANCELLED: request.cancelled,
    }
    states = frozenset(state for state in FINISHED_STATES if before[state] is not None)
    if not states:
        return 0
    now = await executor.now()
    changes: list[Change] = []
    # What ended before a time was made before it. Without a cap: the oldest come last in a list.
    latest = max(limit for limit in before.values() if limit is not None)
    where = ListFilter(states=states, created_until=latest)
    async for row in Rows(executor, where, capped=False):
        limit = before.get(row.state)
        old = limit is not None and row.finished_at is not None and row.finished_at < limit
        if old and not unique_key_held(row, now):
            changes.append(Change(row.id, "delete"))
            if len(changes) == request.limit:
                break
    size = executor.capabilities.max_batch
    deleted = 0
    for start in range(0, len(changes), size):
        with after_effect(start):
            answers = await executor.change_many(changes[start : start + size])
        deleted += sum(answer.status == "CHANGED" for answer in answers)
    return deleted
