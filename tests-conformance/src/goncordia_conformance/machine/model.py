"""The model of the state machine: the memory driver's store, asked what a driver may answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from datetime import datetime, timedelta
from math import inf
from uuid import UUID

from goncordia.clock import Clock
from goncordia.driver import (
    BaseExecutor,
    Capabilities,
    FetchRequest,
    FetchResult,
    JobRow,
    QueueFetch,
)
from goncordia.memory.core import Core
from goncordia.memory.executor import MemoryExecutor
from goncordia.memory.job import WAITING, Job
from goncordia.memory.sessions import Session

__all__ = ["Model", "WrongAnswer", "difference"]


class WrongAnswer(AssertionError):  # noqa: N818 - it is what the driver gave
    """The driver gave an answer that the contract does not allow."""


class _OnRecords(MemoryExecutor):
    """The memory driver without its own sessions and pauses: those are the defaults' again."""

    session_open = BaseExecutor.session_open
    session_beat = BaseExecutor.session_beat
    session_close = BaseExecutor.session_close
    session_list = BaseExecutor.session_list
    expire = BaseExecutor.expire
    queue_pause = BaseExecutor.queue_pause
    queue_resume = BaseExecutor.queue_resume
    queue_list = BaseExecutor.queue_list


class Model:
    """What a driver with these capabilities would hold.

    Args:
        clock: the clock of the driver under test.
        capabilities: the driver's.
    """

    def __init__(self, clock: Clock, capabilities: Capabilities) -> None:
        core = Core(clock)
        self._clock = clock
        self._bound = timedelta(seconds=capabilities.late_find_bound)
        self._own_sessions = capabilities.server_time
        self.store = core.store
        self.executor: BaseExecutor = (MemoryExecutor if self._own_sessions else _OnRecords)(
            "model", capabilities, core
        )

    async def may_claim(self, request: FetchRequest) -> bool:
        """Whether the session of a fetch is open."""
        sessions = await self.executor.session_list()
        return any(info.open and info.id == request.session for info in sessions)

    async def paused(self) -> set[str]:
        """The paused queues."""
        return {queue.name for queue in await self.executor.queue_list() if queue.paused}

    # ---------------------------------------------------------------- fetch

    async def check_fetch(
        self, request: FetchRequest, result: FetchResult, unseen: Set[UUID] = frozenset()
    ) -> None:
        """Check a fetch's answer against all that are allowed, and make the same claims.

        Args:
            request: what was asked.
            result: what the driver answered.
            unseen: jobs that this fetch need not have seen.

        Raises:
            WrongAnswer: it is none of the allowed answers.
        """
        _agree("lost", result.lost, not await self.may_claim(request))
        if result.lost:
            _agree("jobs of a lost session", result.jobs, [])
            return
        paused = await self.paused()
        asked = [queue for queue in request.queues if queue.name not in paused]
        skipped = tuple(queue.name for queue in request.queues if queue.name in paused)
        _agree("paused", result.paused, skipped)
        self._check_jobs(request, asked, result, unseen)
        if not result.more and not unseen and asked:
            self._check_next_due(request, asked, result.next_due_in)

    def _check_jobs(
        self,
        request: FetchRequest,
        asked: list[QueueFetch],
        result: FetchResult,
        unseen: Set[UUID],
    ) -> None:
        taken = _Taken(request.limit)
        claimed = {row.id for row in result.jobs}
        if len(claimed) < len(result.jobs):
            raise WrongAnswer("a fetch gave one job twice")
        if self._bound:
            self._check_groups(result.jobs)
        rows = {row.id: row for row in result.jobs}
        order = [row.id for row in result.jobs]
        position = 0
        left: list[Job] = []
        for queue in asked:
            # As many of the answer's next jobs as belong to this queue.
            while position < len(order):
                job = self.store.job(order[position])
                if job is None or job.new.queue != queue.name:
                    break
                self._check_claim(job, queue, taken, claimed, unseen)
                self._claim(job, request)
                taken.add(job)
                _same_row(rows[job.new.id], job.row(self._now))
                position += 1
            if not taken.full(queue) and not result.more:
                left += self._left(queue, taken, unseen, late=False)
        if position < len(order):
            raise WrongAnswer(f"not asked for, or out of order: {rows[order[position]]}")
        # Only a full result may pass over a job that became visible late; and a group that was
        # filled meanwhile hides it.
        if len(order) < request.limit and not result.more:
            for queue in asked:
                if not taken.full(queue):
                    left += self._left(queue, taken, unseen, late=True)
        if left:
            raise WrongAnswer(f"left {left[0].row(self._now)}")

    def _left(
        self, queue: QueueFetch, taken: _Taken, unseen: Set[UUID], *, late: bool
    ) -> list[Job]:
        """What of a queue could still be claimed; ``late`` counts what came late, too."""
        jobs = [job for job in self._claimable(queue, taken) if job.new.id not in unseen]
        return [job for job in jobs if late or not self._late(job, unseen)]

    def _check_claim(
        self,
        job: Job,
        queue: QueueFetch,
        taken: _Taken,
        claimed: set[UUID],
        unseen: Set[UUID],
    ) -> None:
        candidates = list(self._claimable(queue, taken, claimed if self._bound else frozenset()))
        if taken.full(queue):
            raise WrongAnswer(f"more jobs of queue {queue.name!r} than asked for")
        if job not in candidates:
            raise WrongAnswer(f"not to be claimed now: {job.row(self._now)}")
        for other in candidates[: candidates.index(job)]:
            if other.new.id in claimed or not self._late(other, unseen):
                raise WrongAnswer(f"passed over {other.row(self._now)} for {job.row(self._now)}")

    def _check_groups(self, rows: list[JobRow]) -> None:
        """Who finds late may claim in another order than it tells; one must keep the limits."""
        limits: dict[str, list[int]] = {}
        for row in rows:
            if row.group is not None:
                limits.setdefault(row.group, []).append(row.group_limit)
        for group, of_group in limits.items():
            running = self.store.waiting.running_of(group)
            if any(running + n >= limit for n, limit in enumerate(sorted(of_group))):
                raise WrongAnswer(f"too many of group {group!r}, of which {running} ran: {rows}")

    def _claimable(
        self, queue: QueueFetch, taken: _Taken, granted: Set[UUID] = frozenset()
    ) -> Iterator[Job]:
        """The jobs that a fetch could claim now, in order; groups let the ``granted`` pass."""
        jobs = [
            job
            for job in self.store.unfinished.values()
            if job.state is WAITING and job.new.queue == queue.name and job.run_at <= self._now
        ]
        for job in sorted(jobs, key=Job.order):
            group = None if job.new.id in granted else job.new.group
            if queue.kinds is not None and taken.kinds[queue.name, job.new.kind] >= (
                queue.kinds.get(job.new.kind, 0)
            ):
                continue
            if job.new.group in queue.skip_groups:
                continue
            if group is not None and self.store.waiting.running_of(group) >= job.new.group_limit:
                continue
            yield job

    def _late(self, job: Job, unseen: Set[UUID]) -> bool:
        """Whether a full result may pass over the job."""
        return job.new.id in unseen or self._now - job.visible_at < self._bound

    def _claim(self, job: Job, request: FetchRequest) -> None:
        sessions = self.store.sessions
        if not self._own_sessions:
            # Sessions are records here: the store only needs something to hold the claims.
            sessions.add(Session(request.session, request.worker_id, inf, self._now, 0.0))
        self.store.claim(job, sessions.open[request.session], request, self._now)

    def _check_next_due(
        self, request: FetchRequest, asked: list[QueueFetch], due_in: float | None
    ) -> None:
        if due_in is None:
            return
        anew = _Taken(request.limit)
        if any(True for queue in asked for _ in self._claimable(queue, anew)):
            _agree("next_due_in while there is more to claim", due_in, 0.0)
            return
        names = {queue.name: queue for queue in asked}
        all_times: list[float] = [inf]
        own_times: list[float] = [inf]
        for job in self.store.unfinished.values():
            queue = names.get(job.new.queue)
            if queue is None or job.state is not WAITING or job.run_at <= self._now:
                continue
            seconds = (job.run_at - self._now).total_seconds()
            all_times.append(seconds)
            left_out = queue.kinds is not None and job.new.kind not in queue.kinds
            if not left_out and job.new.group not in queue.skip_groups:
                own_times.append(seconds)
        # Jobs that the fetch leaves out, by kind or by group, may count, or not.
        if due_in not in all_times or due_in > min(own_times):
            raise WrongAnswer(f"next_due_in is {due_in}, and not {min(own_times)}")

    # ---------------------------------------------------------------- expire

    async def check_expire(self, asker: UUID, limit: int, rows: list[JobRow]) -> None:
        """Check what ``expire`` gave, and end the same sessions.

        Raises:
            WrongAnswer: it gave something else than it may, or too little.
        """
        # Which of the jobs a limited call gives is left to the driver.
        bound = 1_000_000 if self._own_sessions else limit
        expected = await self.executor.expire(asker, bound)
        if self._bound and len(rows) < min(limit, len(expected)):
            pass  # who finds late may give fewer, too
        else:
            _agree("number of rows", len(rows), min(limit, len(expected)))
        open_ids = {info.id for info in await self.executor.session_list() if info.open}
        for row in rows:
            job = self.store.job(row.id)
            if job is None or job.claim is None or job.claim.session in open_ids:
                raise WrongAnswer(f"expire gave a job that nobody lost: {row}")
            _same_row(row, job.row(self._now))

    @property
    def _now(self) -> datetime:
        return self._clock.now()


class _Taken:
    """What a fetch has claimed so far."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.queues: Counter[str] = Counter()
        self.kinds: Counter[tuple[str, str]] = Counter()

    def add(self, job: Job) -> None:
        """One more."""
        self.queues[job.new.queue] += 1
        self.kinds[job.new.queue, job.new.kind] += 1

    @property
    def full_in_all(self) -> bool:
        """Whether there are as many jobs as were asked for."""
        return self.queues.total() >= self.limit

    def full(self, queue: QueueFetch) -> bool:
        """Whether there may be no more of the queue."""
        return self.full_in_all or self.queues[queue.name] >= queue.limit


def _agree(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise WrongAnswer(f"{what}: {found!r}, and not {expected!r}")


def _same_row(found: JobRow, expected: JobRow) -> None:
    if (message := difference(found, expected)) is not None:
        raise WrongAnswer(message)


def difference(found: JobRow, expected: JobRow) -> str | None:
    """Where two rows differ in what the contract fixes."""
    for name in JobRow.__struct_fields__:
        ours, theirs = getattr(found, name), getattr(expected, name)
        if name == "claim" and ours is not None and theirs is not None:
            ours, theirs = ((c.job_id, c.session, c.fetch_no) for c in (ours, theirs))
        if name == "started" and expected.claim is None:
            continue  # it speaks of the claim, and there is none
        if ours != theirs:
            return f"{name} of {found.id} is {ours!r}, and not {theirs!r}"
    return None
