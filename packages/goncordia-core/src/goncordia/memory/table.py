"""The store's jobs and their indexes, which every change of a job's state keeps in step."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from goncordia.driver.requests import FetchRequest
from goncordia.driver.values import FINISHED_STATES, Claim, JobState
from goncordia.memory.job import WAITING, Job, derive_state, holds_key
from goncordia.memory.ordered import Ordered
from goncordia.memory.sessions import Session, Sessions
from goncordia.memory.waiting import Waiting
from goncordia.memory.wakes import WakeLog

__all__ = ["Table"]


class Table:
    """Jobs by id, by unique key, by state, and where they wait."""

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}
        self.unfinished: dict[int, Job] = {}
        self.key_holders: dict[bytes, Job] = {}
        """Who took each unique key last; :meth:`key_holder` knows whether it holds it still."""
        self.waiting = Waiting(self.jobs)
        self.sessions = Sessions()
        self.wakes = WakeLog()
        self.ids: Ordered[tuple[int]] = Ordered()
        self.finished: dict[JobState, Ordered[tuple[datetime, int]]] = {
            state: Ordered() for state in FINISHED_STATES
        }

    @property
    def touched(self) -> int:
        """How many entries all fetches so far have looked at."""
        return self.waiting.touched.count

    # ---------------------------------------------------------------- look up

    def job(self, job_id: UUID) -> Job | None:
        """The store's own record of a job."""
        return self.jobs.get(job_id.int)

    def key_holder(self, key: bytes, now: datetime) -> Job | None:
        """The job that holds the unique key at this time."""
        job = self.key_holders.get(key)
        return job if job is not None and holds_key(job, now) else None

    # ---------------------------------------------------------------- come and go

    def add(self, job: Job) -> None:
        """Take a job in, of whatever state; the caller does what belongs to that."""
        self.jobs[job.key] = job
        self.ids.add((job.key,))

    def remove(self, job: Job) -> None:
        """Forget a job that neither waits nor runs any more."""
        self.unfinished.pop(job.key, None)
        self.free_key(job)
        self.ids.remove((job.key,))
        del self.jobs[job.key]

    # ---------------------------------------------------------------- from state to state

    def claim(self, job: Job, session: Session, request: FetchRequest, now: datetime) -> None:
        """Claim a waiting job for the session."""
        self.waiting.started_running(job)
        self.waiting.remove(job)
        job.state = JobState.RUNNING
        job.attempt += 1
        job.started = False
        job.claim = Claim(job.new.id, session.id, request.fetch_no)
        job.worker_id = request.worker_id
        job.claimed_at = now
        self.sessions.hold(session, job)

    def enter_waiting(self, job: Job, run_at: datetime, now: datetime) -> None:
        """The job waits from now on."""
        job.state = WAITING
        job.run_at = run_at
        job.visible_at = now
        self.unfinished[job.key] = job
        self.waiting.add(job)
        self.wakes.jobs(job.new.queue, run_at)

    def end_claim(self, job: Job) -> None:
        """The job runs no more; the caller says what it does instead."""
        job.ended_claim = job.claim
        job.claim = None
        self.sessions.let_go(job)
        for freed in self.waiting.stopped_running(job):
            self.wakes.jobs(freed.new.queue, freed.run_at)

    def enter_finished(self, job: Job, state: JobState, now: datetime) -> None:
        """The job, which waits and runs no more, is over."""
        job.state = state
        job.finished_at = now
        del self.unfinished[job.key]
        self.finished[state].add((now, job.key))
        if job.new.unique_hold == "active":
            self.free_key(job)

    def leave_finished(self, job: Job) -> None:
        """The job is over no more; the caller says what it does instead."""
        if job.state is not None and job.finished_at is not None:
            self.finished[job.state].remove((job.finished_at, job.key))
            job.finished_at = None
            self.unfinished[job.key] = job

    def free_key(self, job: Job) -> None:
        """The job holds its unique key no more."""
        key = job.new.unique_key
        if key is not None and self.key_holders.get(key) is job:
            del self.key_holders[key]

    # ---------------------------------------------------------------- copies

    def adopt(self, other: Table, jobs: Iterable[Job]) -> None:
        """Take copies of another store's jobs in, with their claims and keys."""
        for original in jobs:
            job = copy.copy(original)
            key = job.new.unique_key
            if key is not None and other.key_holders.get(key) is original:
                self.key_holders[key] = job
            self.add(job)
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
                self.finished[derive_state(job, job.finished_at)].add((job.finished_at, job.key))
