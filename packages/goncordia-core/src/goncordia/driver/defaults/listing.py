"""Counting and pruning by listing: correct anywhere, fast nowhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from goncordia.driver.requests import Change, ListFilter, PruneRequest
from goncordia.driver.results import QueueStats
from goncordia.driver.values import FINISHED_STATES, At, JobRow, JobState

if TYPE_CHECKING:
    from goncordia.driver.executor import BaseExecutor

__all__ = ["CAP", "count", "prune", "queue_stats", "row_matches", "rows", "unique_key_held"]

CAP: Final = 10_000
"""How many jobs a default looks at before it stops."""

_PAGE: Final = 500
_WAITING: Final = frozenset({JobState.AVAILABLE, JobState.SCHEDULED, JobState.RETRYABLE})


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


async def rows(executor: BaseExecutor, where: ListFilter) -> AsyncIterator[JobRow]:
    """The matching jobs, newest first, as far as the cap."""
    page, seen = None, 0
    while seen < CAP:
        got = await executor.list_jobs(where, page, min(_PAGE, CAP - seen))
        for row in got.jobs:
            yield row
        seen += len(got.jobs)
        page = got.next
        if page is None:
            return


async def count(executor: BaseExecutor, where: ListFilter) -> int:
    """How many jobs match, up to the cap."""
    return sum([1 async for _ in rows(executor, where)])


async def queue_stats(executor: BaseExecutor) -> list[QueueStats]:
    """Unfinished jobs by queue and state; inexact once the cap is reached."""
    numbers: dict[str, dict[JobState, int]] = {}
    oldest: dict[str, datetime] = {}
    seen = 0
    async for row in rows(executor, ListFilter(states=_WAITING | {JobState.RUNNING})):
        seen += 1
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
            exact=seen < CAP,
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
    async for row in rows(executor, ListFilter(states=states)):
        limit = before.get(row.state)
        old = limit is not None and row.finished_at is not None and row.finished_at < limit
        if old and not unique_key_held(row, now):
            changes.append(Change(row.id, "delete"))
            if len(changes) == request.limit:
                break
    size = executor.capabilities.max_batch
    deleted = 0
    for start in range(0, len(changes), size):
        answers = await executor.change_many(changes[start : start + size])
        deleted += sum(answer.status == "CHANGED" for answer in answers)
    return deleted
