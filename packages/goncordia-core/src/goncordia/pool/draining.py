"""What a drain still has to wait for."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from goncordia.driver import BaseExecutor, JobState, ListFilter
from goncordia.driver.defaults.listing import Rows

__all__ = ["look_for_jobs"]

_BUSY: Final = frozenset({JobState.AVAILABLE, JobState.RUNNING})
_LATER: Final = frozenset({JobState.SCHEDULED, JobState.RETRYABLE})


async def look_for_jobs(
    executor: BaseExecutor,
    *,
    queues: frozenset[str],
    kinds: frozenset[str],
    soon: float,
    poll: float,
) -> float | None:
    """Seconds after which to look again; None: nothing is left to wait for.

    Args:
        executor: the driver's.
        queues: jobs of these queues count.
        kinds: and of these kinds.
        soon: also those that are due within so many seconds.
        poll: when to look again where jobs are due or run.
    """
    busy = ListFilter(states=_BUSY, queues=queues, kinds=kinds)
    async for _ in Rows(executor, busy, capped=False, page=1):
        return poll
    if not soon:
        return None
    later = ListFilter(states=_LATER, queues=queues, kinds=kinds)
    now = await executor.now()
    first: float | None = None
    async for row in Rows(executor, later, capped=False):
        left = max(0.0, (row.run_at - now) / timedelta(seconds=1))
        if left <= soon and (first is None or left < first):
            first = left
    return first
