"""The reference store: every rule of the contract, in plain synchronous code.

Each operation is atomic as long as nobody else is inside: the driver sees to that with a lock.
Time comes in with every call, so that the same calls always give the same answers.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
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
from goncordia.driver.values import Claim, JobRow, JobState, NewJob
from goncordia.errors import InvalidCursorError
from goncordia.memory.fetching import Fetching, PassOver
from goncordia.memory.job import (
    WAITING,
    Job,
    derive_state,
    holds_key,
    is_claim,
    matches,
    resolve,
    with_error,
)
from goncordia.memory.ordered import Ordered
from goncordia.memory.records import Records
from goncordia.memory.sessions import Session, Sessions
from goncordia.memory.waiting import Waiting
from goncordia.memory.wakes import WakeLog

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


class Store:
    """All jobs, sessions, queues and records."""

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}
        self.unfinished: dict[int, Job] = {}
        self.key_holders: dict[bytes, Job] = {}
        self.waiting = Waiting(self.jobs)
        self.sessions = Sessions()
        self.records = Records()
        self.wakes = WakeLog()
        self._ids: Ordered[tuple[int]] = Ordered()
        self._finished: dict[JobState, Ordered[tuple[datetime, int]]] = {
            state: Ordered() for state in _ENDS.values()
        }
        self._paused: dict[str, bool] = {}

    @property
    def touched(self) -> int:
        """How many entries all fetches so far have looked at."""
        return self.waiting.touched.count

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
        self.jobs[job.key] = job
        self._ids.add((job.key,))
        if new.unique_key is not None:
            self.key_holders[new.unique_key] = job
        self._enter_waiting(job, job.run_at, now)
        return InsertResult(new.id, "INSERTED")

    def key_holder(self, key: bytes, now: datetime) -> Job | None:
        """The job that holds the unique key at this time."""
        job = self.key_holders.get(key)
        return job if job is not None and holds_key(job, now) else None

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

    def claim(self, job: Job, session: Session, request: FetchRequest, now: datetime) -> None:
        """Claim a waiting job for the session."""
        self.waiting.started_running(job)
        self.waiting.remove(job)
        job.state = _RUNNING
        job.attempt += 1
        job.started = False
        job.claim = Claim(job.new.id, session.id, request.fetch_no)
        job.worker_id = request.worker_id
        job.claimed_at = now
        self.sessions.hold(session, job)

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
        self._end_claim(job)
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
            self._enter_finished(job, end, now)
            return _DONE[end]
        keeps_place = to == "release" and finish.when is None
        run_at = job.run_at if keeps_place else resolve(finish.when, now)
        self._enter_waiting(job, run_at, now)
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
            self._enter_finished(job, _CANCELLED, now)
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
            self._enter_waiting(job, now, now)
            return Changed("CHANGED", JobState.AVAILABLE)
        key = job.new.unique_key
        if key is not None and job.new.unique_hold == "active":
            holder = self.key_holder(key, now)
            if holder is not None:
                return Changed("CONFLICT", job.state, holder.new.id)
            self.key_holders[key] = job
        self._leave_finished(job)
        job.output = None
        job.started = job.cancel_requested = False
        if job.max_attempts is not None:
            job.max_attempts = max(job.max_attempts, job.attempt + 1)
        self._enter_waiting(job, now, now)
        return Changed("CHANGED", JobState.AVAILABLE)

    def _reschedule(self, job: Job, run_at: datetime, now: datetime) -> Changed:
        if job.state is not WAITING:
            return Changed("CONFLICT", job.state)
        if job.run_at == run_at:
            return Changed("ALREADY", derive_state(job, now))
        self.waiting.remove(job)
        self._enter_waiting(job, run_at, now)
        return Changed("CHANGED", derive_state(job, now))

    def _delete(self, job: Job) -> Changed:
        if job.state is _RUNNING:
            return Changed("CONFLICT", _RUNNING)
        if job.state is WAITING:
            self.waiting.remove(job)
            del self.unfinished[job.key]
        else:
            self._leave_finished(job)
            del self.unfinished[job.key]
        self._free_key(job)
        self._ids.remove((job.key,))
        del self.jobs[job.key]
        return Changed("CHANGED")

    # ---------------------------------------------------------------- from state to state

    def _enter_waiting(self, job: Job, run_at: datetime, now: datetime) -> None:
        job.state = WAITING
        job.run_at = run_at
        job.visible_at = now
        self.unfinished[job.key] = job
        self.waiting.add(job)
        self.wakes.jobs(job.new.queue, run_at)

    def _end_claim(self, job: Job) -> None:
        job.ended_claim = job.claim
        job.claim = None
        self.sessions.let_go(job)
        for freed in self.waiting.stopped_running(job):
            self.wakes.jobs(freed.new.queue, freed.run_at)

    def _enter_finished(self, job: Job, state: JobState, now: datetime) -> None:
        job.state = state
        job.finished_at = now
        del self.unfinished[job.key]
        self._finished[state].add((now, job.key))
        if job.new.unique_hold == "active":
            self._free_key(job)

    def _leave_finished(self, job: Job) -> None:
        if job.state is not None and job.finished_at is not None:
            self._finished[job.state].remove((job.finished_at, job.key))
            job.finished_at = None
            self.unfinished[job.key] = job

    def _free_key(self, job: Job) -> None:
        key = job.new.unique_key
        if key is not None and self.key_holders.get(key) is job:
            del self.key_holders[key]

    # ---------------------------------------------------------------- read

    def job(self, job_id: UUID) -> Job | None:
        """The store's own record of a job."""
        return self.jobs.get(job_id.int)

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
        for (key,) in self._ids.below(bound):
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
                    self._finished[state], limit, now, request.limit - len(old)
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

    # ---------------------------------------------------------------- copies

    def adopt(self, other: Store, jobs: Iterable[Job]) -> None:
        """Take copies of another store's jobs in, with their claims and keys."""
        for original in jobs:
            job = copy.copy(original)
            key = job.new.unique_key
            if key is not None and other.key_holders.get(key) is original:
                self.key_holders[key] = job
            self.jobs[job.key] = job
            self._ids.add((job.key,))
            job.shown = False
            job.session = None
            if job.state is WAITING:
                self.unfinished[job.key] = job
                self.waiting.add(job)
            elif original.session is not None:
                self.unfinished[job.key] = job
                self.waiting.started_running(job)
                self.sessions.hold(self.sessions.copy_of(original.session), job)
            elif job.finished_at is not None:
                self._finished[derive_state(job, job.finished_at)].add((job.finished_at, job.key))
