"""What a drain still has to wait for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from goncordia.driver import BaseExecutor, JobRow, JobState, ListFilter
from goncordia.driver.defaults.listing import Rows

__all__ = ["look_for_jobs"]

_LATER: Final = frozenset({JobState.SCHEDULED, JobState.RETRYABLE})


async def look_for_jobs(
    executor: BaseExecutor,
    *,
    queues: frozenset[str],
    kinds: frozenset[str],
    can_run: Callable[[JobRow], bool],
    soon: float,
    poll: float,
) -> float | None:
    """Seconds after which to look again; None: nothing is left to wait for.

    Args:
        executor: the driver's.
        queues: jobs of these queues count; of paused ones only those that run.
        kinds: and of these kinds.
        can_run: and of those that wait, the ones that the pool would not give back.
        soon: also those that are due within so many seconds.
        poll: when to look again where jobs are due or run.
    """

    def jobs(states: frozenset[JobState]) -> Rows:
        where = ListFilter(states=states, queues=queues, kinds=kinds)
        return Rows(executor, where, capped=False, page=1)

    async for _ in jobs(frozenset({JobState.RUNNING})):
        return poll
    due = frozenset({JobState.AVAILABLE})
    async for _ in jobs(due | _LATER if soon else due):
        break
    else:
        return None
    queues -= {queue.name for queue in await executor.queue_list() if queue.paused}
    if not queues:
        return None
    async for row in jobs(due):
        if can_run(row):
            return poll
    return await _next_due(executor, jobs(_LATER), can_run, soon) if soon else None


async def _next_due(
    executor: BaseExecutor, later: Rows, can_run: Callable[[JobRow], bool], soon: float
) -> float | None:
    now = await executor.now()
    first: float | None = None
    async for row in later:
        left = max(0.0, (row.run_at - now) / timedelta(seconds=1))
        if left <= soon and (first is None or left < first) and can_run(row):
            first = left
    return first
