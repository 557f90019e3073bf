"""The reference store: every rule of the contract, in plain synchronous code.

Each operation is atomic as long as nobody else is inside: the driver sees to that with a lock.
Time comes in with every call, so that the same calls always give the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from goncordia.driver.requests import (
    Change,
    FetchRequest,
    Finish,
    ListFilter,
    Mark,
    PruneRequest,
)
from goncordia.driver.results import (
    Beat,
    Changed,
    FetchResult,
    InsertResult,
    Outcome,
    Page,
    QueueState,
    QueueStats,
    SessionInfo,
)
from goncordia.driver.values import JobRow, JobState, NewJob
from goncordia.errors import InvalidCursorError
from goncordia.memory.fetching import Fetching, PassOver
from goncordia.memory.job import (
    WAITING,
    Job,
    derive_state,
    is_claim,
    matches,
    resolve,
    with_error,
)
from goncordia.memory.ordered import Ordered
from goncordia.memory.records import Records
from goncordia.memory.sessions import Session
from goncordia.memory.table import Table

__all__ = ["Store"]

_RUNNING: Final = JobState.RUNNING
_CANCELLED: Final = JobState.CANCELLED
_ENDS: Final = {
    "complete": JobState.COMPLETED,
    "discard": JobState.DISCARDED,
    "cancel": JobState.CANCELLED,
}
_GONE: Final = Outcome("GONE")
_DONE: Final = {state: Outcome("DONE", state) for state in JobState}
_ID_BYTES: Final = 16


class Store(Table):
    """All jobs, sessions, queues and records."""

    def __init__(self) -> None:
        super().__init__()
        self.records = Records()
        self._paused: dict[str, bool] = {}

    # ---------------------------------------------------------------- insert

    def insert_many(self, jobs: Sequence[NewJob], now: datetime) -> list[InsertResult]:
        """Insert jobs; see :meth:`BaseExecutor.insert_many`."""
        return [self._insert(new, now) for new in jobs]

    def _insert(self, new: NewJob, now: datetime) -> InsertResult:
        if new.id.int in self.jobs:
            return InsertResult(new.id, "REPLAYED")
        if new.unique_key is not None:
            holder = self.key_holder(new.unique_key, now)
            if holder is not None:
                return InsertResult(new.id, "DUPLICATE", holder.new.id)
        job = Job(new, now)
        self.add(job)
        if new.unique_key is not None:
            self.key_holders[new.unique_key] = job
        self.enter_waiting(job, job.run_at, now)
        return InsertResult(new.id, "INSERTED")

    # ---------------------------------------------------------------- claim and finish

    def fetch(
        self, request: FetchRequest, now: datetime, pass_over: PassOver | None = None
    ) -> FetchResult:
        """Claim due jobs; see :meth:`BaseExecutor.fetch`."""
        session = self.sessions.open.get(request.session)
        if session is None:
            return FetchResult(jobs=[], lost=True)

        def claim(job: Job) -> None:
            self.claim(job, session, request, now)

        paused = tuple(queue.name for queue in request.queues if self._paused.get(queue.name))
        queues = [queue for queue in request.queues if queue.name not in paused]
        fetching = Fetching(self.waiting, self.jobs, claim, request, queues, now)
        claimed = fetching.run(pass_over)
        due_in = fetching.close()
        rows = [job.row(now) for job in claimed]
        return FetchResult(rows, due_in == 0, due_in, paused)

    def finish_many(self, finishes: Sequence[Finish], now: datetime) -> list[Outcome]:
        """End claims; see :meth:`BaseExecutor.finish_many`."""
        return [self._finish(finish, now) for finish in finishes]

    def _finish(self, finish: Finish, now: datetime) -> Outcome:
        job = self.jobs.get(finish.claim.job_id.int)
        if job is None:
            return _GONE
        if not is_claim(job.claim, finish.claim):
            ended = is_claim(job.ended_claim, finish.claim)
            return Outcome("ALREADY" if ended else "STALE", derive_state(job, now))
        if finish.rescue and finish.to == "release" and job.started:
            return Outcome("STALE", _RUNNING)
        self.end_claim(job)
        to = finish.to
        job.failed = to in {"retry", "discard"}
        job.errors = with_error(job.errors, finish.error)
        if finish.checkpoint is not None:
            job.checkpoint = finish.checkpoint
        if to in {"release", "snooze"}:
            job.attempt -= 1
        end = _ENDS.get(to)
        if end is None and job.cancel_requested:
            end = _CANCELLED
        if end is not None:
            if to == "complete":
                job.output = finish.output
            self.enter_finished(job, end, now)
            return _DONE[end]
        keeps_place = to == "release" and finish.when is None
        run_at = job.run_at if keeps_place else resolve(finish.when, now)
        self.enter_waiting(job, run_at, now)
        return _DONE[derive_state(job, now)]

    def mark_many(self, marks: Sequence[Mark], now: datetime) -> list[Outcome]:
        """Note on running claims; see :meth:`BaseExecutor.mark_many`."""
        return [self._mark(mark, now) for mark in marks]

    def _mark(self, mark: Mark, now: datetime) -> Outcome:
        job = self.jobs.get(mark.claim.job_id.int)
        if job is None:
            return _GONE
        if not is_claim(job.claim, mark.claim):
            return Outcome("STALE", derive_state(job, now))
        job.started = job.started or mark.started
        if mark.checkpoint is not None:
            job.checkpoint = mark.checkpoint
        return _DONE[_RUNNING]

    # ---------------------------------------------------------------- change

    def change_many(self, changes: Sequence[Change], now: datetime) -> list[Changed]:
        """Change jobs on request; see the table at :meth:`BaseExecutor.change_many`."""
        return [self._change(change, now) for change in changes]

    def _change(self, change: Change, now: datetime) -> Changed:
        job = self.jobs.get(change.id.int)
        if job is None:
            return Changed("GONE")
        match change.action:
            case "cancel":
                return self._cancel(job, now)
            case "retry":
                return self._retry(job, now)
            case "reschedule":
                return self._reschedule(job, resolve(change.when, now), now)
            case "delete":
                return self._delete(job)

    def _cancel(self, job: Job, now: datetime) -> Changed:
        if job.state is WAITING:
            self.waiting.remove(job)
            self.enter_finished(job, _CANCELLED, now)
            return Changed("CHANGED", _CANCELLED)
        if job.state is _RUNNING:
            job.cancel_requested = True
            self.wakes.cancel(job.new.id)
            return Changed("REQUESTED", _RUNNING)
        return Changed("ALREADY" if job.state is _CANCELLED else "CONFLICT", job.state)

    def _retry(self, job: Job, now: datetime) -> Changed:
        if job.state is _RUNNING:
            return Changed("CONFLICT", _RUNNING)
        if job.state is WAITING:
            if job.run_at <= now:
                return Changed("ALREADY", JobState.AVAILABLE)
            self.waiting.remove(job)
            self.enter_waiting(job, now, now)
            return Changed("CHANGED", JobState.AVAILABLE)
        key = job.new.unique_key
        if key is not None and job.new.unique_hold == "active":
            holder = self.key_holder(key, now)
            if holder is not None:
                return Changed("CONFLICT", job.state, holder.new.id)
            self.key_holders[key] = job
        self.leave_finished(job)
        job.output = None
        job.started = job.cancel_requested = False
        if job.max_attempts is not None:
            job.max_attempts = max(job.max_attempts, job.attempt + 1)
        self.enter_waiting(job, now, now)
        return Changed("CHANGED", JobState.AVAILABLE)

    def _reschedule(self, job: Job, run_at: datetime, now: datetime) -> Changed:
        if job.state is not WAITING:
            return Changed("CONFLICT", job.state)
        if job.run_at == run_at:
            return Changed("ALREADY", derive_state(job, now))
        self.waiting.remove(job)
        self.enter_waiting(job, run_at, now)
        return Changed("CHANGED", derive_state(job, now))

    def _delete(self, job: Job) -> Changed:
        if job.state is _RUNNING:
            return Changed("CONFLICT", _RUNNING)
        if job.state is WAITING:
            self.waiting.remove(job)
        else:
            self.leave_finished(job)
        self.remove(job)
        return Changed("CHANGED")

    # ---------------------------------------------------------------- read

    def get_many(self, ids: Sequence[UUID], now: datetime) -> list[JobRow | None]:
        """The jobs with these ids."""
        found = (self.jobs.get(each.int) for each in ids)
        return [None if job is None else job.row(now) for job in found]

    def held(self, session: UUID, fetch_no: int | None, limit: int, now: datetime) -> list[JobRow]:
        """Running jobs that the session claimed; see :meth:`BaseExecutor.held`."""
        holder = self.sessions.open.get(session) or self.sessions.ended.get(session)
        rows: list[JobRow] = []
        for job in holder.held.values() if holder is not None else ():
            if len(rows) >= limit:
                break
            if job.claim is not None and fetch_no in {None, job.claim.fetch_no}:
                rows.append(job.row(now))
        return rows

    def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, now: datetime) -> Page:
        """One page of jobs, newest id first; a page is named by the last id of the one before."""
        if page is not None and len(page) != _ID_BYTES:
            raise InvalidCursorError("page: it was not given by this driver")
        rows: list[JobRow] = []
        bound = None if page is None else (int.from_bytes(page, "big"),)
        for (key,) in self.ids.below(bound):
            job = self.jobs[key]
            if not matches(job, where, now):
                continue
            if len(rows) == limit:
                return Page(rows, rows[-1].id.bytes if rows else None)
            rows.append(job.row(now))
        return Page(rows)

    def count(self, where: ListFilter, now: datetime) -> int:
        """How many jobs match."""
        return sum(matches(job, where, now) for job in self.jobs.values())

    # ---------------------------------------------------------------- sessions

    def session_open(
        self, session: UUID, worker_id: str, lease: float, now: datetime, monotonic: float
    ) -> None:
        """Open a session; see :meth:`BaseExecutor.session_open`."""
        self.sessions.add(Session(session, worker_id, lease, now, monotonic))

    def session_beat(self, session: UUID, lease: float, now: datetime, monotonic: float) -> Beat:
        """Renew a session; see :meth:`BaseExecutor.session_beat`."""
        own = self.sessions.open.get(session)
        if own is None:
            return Beat(held=False)
        own.beat(lease, now, monotonic)
        cancels = [job.claim for job in own.held.values() if job.cancel_requested and job.claim]
        return Beat(held=True, cancels=tuple(cancels))

    def session_close(self, session: UUID, now: datetime) -> None:
        """End a session and release what it holds; see :meth:`BaseExecutor.session_close`."""
        own = self.sessions.open.get(session)
        if own is not None:
            self.sessions.end(own)
            claims = [job.claim for job in own.held.values()]
            self.finish_many([Finish(claim, "release") for claim in claims if claim], now)

    def session_list(self) -> list[SessionInfo]:
        """Open sessions, and ended ones that still hold claims."""
        every = (*self.sessions.open.values(), *self.sessions.ended.values())
        return [session.info() for session in every]

    def expire(self, asker: UUID, limit: int, now: datetime, monotonic: float) -> list[JobRow]:
        """End lapsed sessions, give what ended ones hold; see :meth:`BaseExecutor.expire`."""
        if not self.sessions.expire(asker, monotonic):
            return []
        held = [job for session in self.sessions.ended.values() for job in session.held.values()]
        return [job.row(now) for job in held[:limit]]

    # ---------------------------------------------------------------- queues and retention

    def queue_set_paused(self, name: str, *, paused: bool) -> None:
        """Pause or resume a queue."""
        if self._paused.get(name, False) != paused:
            self._paused[name] = paused
            self.wakes.queue(name)

    def queue_list(self) -> list[QueueState]:
        """The queues that were ever paused or hold unfinished jobs, by name."""
        names = {job.new.queue for job in self.unfinished.values()} | set(self._paused)
        return [QueueState(name, self._paused.get(name, False)) for name in sorted(names)]

    def queue_stats(self, now: datetime) -> list[QueueStats]:
        """Unfinished jobs by queue and state, exactly."""
        numbers: dict[str, dict[JobState, int]] = {}
        oldest: dict[str, datetime] = {}
        for job in self.unfinished.values():
            name, state = job.new.queue, derive_state(job, now)
            states = numbers.setdefault(name, {})
            states[state] = states.get(state, 0) + 1
            if state is JobState.AVAILABLE:
                oldest[name] = min(job.run_at, oldest.get(name, job.run_at))
        return [
            QueueStats(
                name,
                states.get(JobState.AVAILABLE, 0),
                states.get(JobState.SCHEDULED, 0),
                states.get(JobState.RETRYABLE, 0),
                states.get(_RUNNING, 0),
                oldest.get(name),
            )
            for name, states in sorted(numbers.items())
        ]

    def prune(self, request: PruneRequest, now: datetime) -> int:
        """Delete old finished jobs whose key is free; see :meth:`BaseExecutor.prune`."""
        before = {
            JobState.COMPLETED: request.completed,
            JobState.DISCARDED: request.discarded,
            JobState.CANCELLED: request.cancelled,
        }
        old: list[Job] = []
        for state, limit in before.items():
            if limit is not None:
                old += self._old_and_free(
                    self.finished[state], limit, now, request.limit - len(old)
                )
        for job in old:
            self._delete(job)
        return len(old)

    def _old_and_free(
        self, finished: Ordered[tuple[datetime, int]], before: datetime, now: datetime, room: int
    ) -> Iterator[Job]:
        for finished_at, key in finished:
            if room <= 0 or finished_at >= before:
                return
            job = self.jobs[key]
            unique_key = job.new.unique_key
            if unique_key is None or self.key_holder(unique_key, now) is not job:
                room -= 1
                yield job
