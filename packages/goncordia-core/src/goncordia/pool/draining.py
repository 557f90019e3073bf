"""What a drain still has to wait for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from goncordia.driver import BaseExecutor, JobRow, JobState, ListFilter
from goncordia.driver.defaults.listing import UNFINISHED_STATES, Rows

__all__ = ["look_for_jobs"]

_BUSY: Final = frozenset({JobState.AVAILABLE, JobState.RUNNING})


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

    All states are read in one list: it goes by id, and so meets every job once, in whatever state
    it is then. With a list for each state, a job that changes would slip through between them.

    Args:
        executor: the driver's.
        queues: jobs of these queues count; of paused ones only those that run.
        kinds: and of these kinds.
        can_run: and of those that wait, the ones that the pool would not give back.
        soon: also those that are due within so many seconds.
        poll: when to look again where jobs are due or run.
    """
    paused = {queue.name for queue in await executor.queue_list() if queue.paused}
    states = UNFINISHED_STATES if soon else _BUSY
    where = ListFilter(states=states, queues=queues, kinds=kinds)
    now = await executor.now()
    first: float | None = None
    async for row in Rows(executor, where, capped=False, page=1):
        if row.state is JobState.RUNNING:
            return poll
        if row.queue in paused or not can_run(row):
            continue
        if row.state is JobState.AVAILABLE:
            return poll
        left = max(0.0, (row.run_at - now) / timedelta(seconds=1))
        if left <= soon and (first is None or left < first):
            first = left
    return first
