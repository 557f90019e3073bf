"""What a drain still has to wait for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from goncordia.driver import BaseExecutor, JobRow, JobState, ListFilter
from goncordia.driver.defaults.listing import Rows

__all__ = ["look_for_jobs"]

_RUNNING: Final = frozenset({JobState.RUNNING})
_DUE: Final = frozenset({JobState.AVAILABLE})
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

    looks = _Looks(executor, queues, kinds, can_run)
    if await looks.running():
        return poll
    left = await looks.waiting(soon, poll)
    # A job that was claimed between these two looks was seen by neither.
    return poll if left is None and await looks.running() else left


class _Looks:
    """Looks at the jobs of some queues and kinds, one state after the other."""

    def __init__(
        self,
        executor: BaseExecutor,
        queues: frozenset[str],
        kinds: frozenset[str],
        can_run: Callable[[JobRow], bool],
    ) -> None:
        self._executor = executor
        self._queues = queues
        self._kinds = kinds
        self._can_run = can_run

    def _jobs(self, states: frozenset[JobState], queues: frozenset[str]) -> Rows:
        where = ListFilter(states=states, queues=queues, kinds=self._kinds)
        return Rows(self._executor, where, capped=False, page=1)

    async def running(self) -> bool:
        """Whether a job runs, of a paused queue too."""
        async for _ in self._jobs(_RUNNING, self._queues):
            return True
        return False

    async def waiting(self, soon: float, poll: float) -> float | None:
        """Seconds after which to look again for jobs that wait; None: there are none."""
        async for _ in self._jobs(_DUE | _LATER if soon else _DUE, self._queues):
            break
        else:
            return None
        paused = {queue.name for queue in await self._executor.queue_list() if queue.paused}
        if not (queues := self._queues - paused):
            return None
        async for row in self._jobs(_DUE, queues):
            if self._can_run(row):
                return poll
        return await self._next_due(self._jobs(_LATER, queues), soon) if soon else None

    async def _next_due(self, later: Rows, soon: float) -> float | None:
        now = await self._executor.now()
        first: float | None = None
        async for row in later:
            left = max(0.0, (row.run_at - now) / timedelta(seconds=1))
            if left <= soon and (first is None or left < first) and self._can_run(row):
                first = left
        return first
