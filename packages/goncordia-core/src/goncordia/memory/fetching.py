"""One fetch: rules 1, 2, 7 and 8 of the contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from heapq import heapify, heappop, heapreplace
from math import inf

from goncordia.driver.requests import FetchRequest, QueueFetch
from goncordia.memory.job import Job, Order
from goncordia.memory.waiting import Line, Waiting

__all__ = ["Fetching", "PassOver"]

PassOver = Callable[[Job], bool]
"""Whether a fetch leaves this job although it is due, as long as others fill the result."""


class Fetching:
    """A fetch in progress over the queues that are not paused.

    Args:
        waiting: where the jobs wait.
        jobs: the store's jobs by key, for reading.
        claim: claims a job; called for each job in its turn.
        request: what is asked.
        queues: those of its queues that are not paused.
        now: the time.
    """

    def __init__(
        self,
        waiting: Waiting,
        jobs: dict[int, Job],
        claim: Callable[[Job], None],
        request: FetchRequest,
        queues: Sequence[QueueFetch],
        now: datetime,
    ) -> None:
        self._waiting = waiting
        self._jobs = jobs
        self._claim = claim
        self._limit = request.limit
        self._queues = queues
        self._now = now
        self._aside: list[Job] = []
        self._passed: list[Job] = []
        self._taken: list[list[Job]] = [[] for _ in queues]
        self._room = request.limit

    def run(self, pass_over: PassOver | None = None) -> list[Job]:
        """Claim what is due, in order."""
        self._look(pass_over)
        if self._passed:
            for job in self._passed:
                self._waiting.bring_back(job)
            self._look(None)
            for taken in self._taken:
                taken.sort(key=Job.order)
        return [job for taken in self._taken for job in taken]

    def _look(self, pass_over: PassOver | None) -> None:
        for queue, taken in zip(self._queues, self._taken, strict=True):
            if self._room <= 0:
                return
            self._take(queue, taken, pass_over)

    def _take(self, queue: QueueFetch, taken: list[Job], pass_over: PassOver | None) -> None:
        now, jobs, kinds = self._now, self._jobs, queue.kinds
        room = min(self._room, queue.limit - len(taken))
        if room <= 0:
            return
        used = Counter(job.new.kind for job in taken)
        heads = self._heads(queue)
        while heads and room > 0:
            (_, _, key), kind, line = heads[0]
            job = jobs[key]
            if kinds is not None and used[kind] >= kinds[kind]:
                heappop(heads)
                continue
            if job.shown:  # else its group was filled by a job of another line
                if job.new.group in queue.skip_groups:
                    self._put_aside(job)
                # Never one of a group: it would hide the next of its line, which others then pass.
                elif pass_over is not None and job.new.group is None and pass_over(job):
                    self._waiting.set_aside(job)
                    self._passed.append(job)
                else:
                    self._claim(job)
                    taken.append(job)
                    used[kind] += 1
                    room -= 1
                    self._room -= 1
            head = line.head(now)
            if head is None:
                heappop(heads)
            else:
                heapreplace(heads, (head, kind, line))

    def _heads(self, queue: QueueFetch) -> list[tuple[Order, str, Line]]:
        """The first due job of each line, as a heap."""
        heads: list[tuple[Order, str, Line]] = []
        for kind, line in self._waiting.lines(queue):
            head = line.head(self._now)
            if head is not None:
                heads.append((head, kind, line))
        heapify(heads)
        return heads

    def _put_aside(self, job: Job) -> None:
        self._waiting.set_aside(job)
        self._aside.append(job)

    def close(self) -> float | None:
        """Put back what was left aside; seconds until there is something to fetch.

        0 when the same request, made again, would claim a job.
        """
        try:
            return self._next_due_in()
        finally:
            for job in self._aside:
                self._waiting.bring_back(job)

    def _next_due_in(self) -> float | None:
        if self._limit <= 0 or not self._queues:
            return None
        next_run_at: list[datetime] = []
        for queue in self._queues:
            if queue.limit <= 0:
                continue
            for _, line in self._waiting.lines(queue):
                if self._has_due(line, queue):
                    return 0.0
                run_at = line.next_run_at(self._now)
                if run_at is not None:
                    next_run_at.append(run_at)
        return (min(next_run_at) - self._now).total_seconds() if next_run_at else inf

    def _has_due(self, line: Line, queue: QueueFetch) -> bool:
        while (head := line.head(self._now)) is not None:
            job = self._jobs[head[2]]
            if job.new.group not in queue.skip_groups:
                return True
            self._put_aside(job)
        return False
