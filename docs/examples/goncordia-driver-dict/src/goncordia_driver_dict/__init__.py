"""A whole Goncordia driver over a dict: the ten required methods, and nothing else.

Read it beside "Writing a driver" in the docs. A lock, a sort and a dict stand here for all that a
database brings along, so that only the contract is left to see.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import count
from math import inf
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec.structs import asdict, replace

from goncordia import driver as gd
from goncordia.clock import Clock
from goncordia.driver import JobRow, JobState
from goncordia.errors import InvalidCursorError

# A waiting job is stored as AVAILABLE; which waiting state to report is decided when it is read.
WAITING: Final = JobState.AVAILABLE
ENDS: Final = {"complete": "completed", "discard": "discarded", "cancel": "cancelled"}
CAPABILITIES: Final = gd.Capabilities(
    unique_jobs=True,
    groups=True,
    fetch_kinds=True,
    strict_fetch_order=True,
    linearizable=True,
    list_filters=frozenset(gd.ListFilter.__struct_fields__),
)


class Job(msgspec.Struct):
    """A row, and what the contract wants remembered beside it."""

    row: JobRow
    failed: bool = False  # whether the last claim that ended was a failure
    ended: gd.Claim | None = None  # the last claim that ended

    def view(self, now: datetime) -> JobRow:
        """The row as it is reported at this time."""
        if self.row.state is not WAITING or self.row.run_at <= now:
            return self.row
        return replace(self.row, state=JobState.RETRYABLE if self.failed else JobState.SCHEDULED)


class Store:
    """The "database": drivers that share a store see the same jobs."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: dict[UUID, Job] = {}
        self.keys: dict[bytes, UUID] = {}  # unique key -> the job that had it last
        self.records: dict[str, tuple[gd.Record, bytes]] = {}  # with the token of the last put
        self.versions = count(1)


class DictDriver(gd.BaseDriver):
    name = "dict"

    def __init__(self, store: Store, *, clock: Clock | None = None) -> None:
        super().__init__(CAPABILITIES, clock)
        self._executor = DictExecutor(self.name, self.capabilities, self.clock)
        self._executor.store = store

    async def open(self) -> None: ...  # there is nothing to connect to

    async def aclose(self) -> None:
        await super().aclose()

    async def migrate(self) -> list[str]:
        return []

    def executor(self) -> DictExecutor:
        return self._executor  # always the same: the default sessions remember things in it


class DictExecutor(gd.BaseExecutor):
    """The ten operations. None of them awaits, and the lock keeps other threads' writes out."""

    store: Store

    async def insert_many(self, jobs: Sequence[gd.NewJob], /) -> list[gd.InsertResult]:
        with self.store.lock:
            return [self._insert(job) for job in jobs]

    def _insert(self, new: gd.NewJob) -> gd.InsertResult:
        if new.id in self.store.jobs:  # looked at first: a repeat must not meet its own key
            return gd.InsertResult(new.id, "REPLAYED")
        if holder := self._holder(new.unique_key):
            return gd.InsertResult(new.id, "DUPLICATE", holder)
        fields: dict[str, Any] = dict.fromkeys(JobRow.__struct_fields__) | asdict(new)
        fields |= {"run_at": self._time(new.run_at), "created_at": self.clock.now()}
        fields |= {"started": False, "cancel_requested": False, "errors": ()}
        self.store.jobs[new.id] = Job(JobRow(**fields | {"state": WAITING, "attempt": 0}))
        if new.unique_key:
            self.store.keys[new.unique_key] = new.id
        return gd.InsertResult(new.id, "INSERTED")

    def _holder(self, key: bytes | None) -> UUID | None:
        job = self.store.jobs.get(self.store.keys[key]) if key in self.store.keys else None
        return job.row.id if job and gd.unique_key_held(job.row, self.clock.now()) else None

    def _time(self, when: gd.When) -> datetime:
        seconds = when.seconds if isinstance(when, gd.After) else 0
        return when.when if isinstance(when, gd.At) else self.clock.now() + timedelta(0, seconds)

    async def fetch(self, request: gd.FetchRequest, /) -> gd.FetchResult:
        jobs: list[JobRow] = []
        with self.store.lock:  # one step: no other fetch comes between the look and the claim
            due_in = min([self._take(request, queue, jobs) for queue in request.queues])
        return gd.FetchResult(jobs, more=due_in == 0, next_due_in=due_in)

    def _take(self, request: gd.FetchRequest, queue: gd.QueueFetch, out: list[JobRow]) -> float:
        """Claim of one queue; seconds until there is more to claim of it."""
        now, jobs = self.clock.now(), self.store.jobs.values()
        most, kinds = min(request.limit, len(out) + queue.limit), Counter(queue.kinds)
        running = Counter(job.row.group for job in jobs if job.row.claim)
        waiting = [job for job in jobs if job.row.state is WAITING and job.row.queue == queue.name]
        later = [(job.row.run_at - now).total_seconds() for job in waiting if job.row.run_at > now]
        due_in = min(later, default=inf)
        for job in sorted(waiting, key=lambda job: (-job.row.priority, job.row.run_at, job.row.id)):
            row = job.row
            full = row.group and running[row.group] >= row.group_limit
            left_out = queue.kinds is not None and not queue.kinds.get(row.kind)
            if row.run_at > now or full or left_out or row.group in queue.skip_groups:
                continue
            if len(out) == most or (queue.kinds is not None and not kinds[row.kind]):
                due_in = 0.0  # there is more, for the next fetch
                continue
            kinds[row.kind] -= 1
            running[row.group] += 1
            claim = gd.Claim(row.id, request.session, request.fetch_no)
            row = replace(row, state=JobState.RUNNING, attempt=row.attempt + 1, claim=claim)
            job.row = replace(row, worker_id=request.worker_id, claimed_at=now, started=False)
            out.append(job.row)
        return due_in

    async def finish_many(self, finishes: Sequence[gd.Finish], /) -> list[gd.Outcome]:
        with self.store.lock:
            return [self._finish(finish) for finish in finishes]

    def _finish(self, finish: gd.Finish) -> gd.Outcome:
        if not (job := self.store.jobs.get(finish.claim.job_id)):
            return gd.Outcome("GONE")
        row, now = job.row, self.clock.now()
        if row.claim != finish.claim:  # the last claim to end is remembered for repeats
            repeat = job.ended == finish.claim
            return gd.Outcome("ALREADY" if repeat else "STALE", job.view(now).state)
        if finish.rescue and finish.to == "release" and row.started:
            return gd.Outcome("STALE", row.state)
        state = JobState(ENDS.get(finish.to, "cancelled" if row.cancel_requested else WAITING))
        if state.finished:
            row = replace(row, finished_at=now)
        elif finish.when or finish.to != "release":
            row = replace(row, run_at=self._time(finish.when))
        errors = (*row.errors, *filter(None, [finish.error]))[-gd.MAX_ERRORS :]
        attempt = row.attempt - (finish.to in {"snooze", "release"})
        output = finish.output if finish.to == "complete" else row.output
        checkpoint = row.checkpoint if finish.checkpoint is None else finish.checkpoint
        row = replace(row, errors=errors, attempt=attempt, output=output, checkpoint=checkpoint)
        job.row = replace(row, state=state, claim=None)
        job.ended, job.failed = finish.claim, finish.to in {"retry", "discard"}
        return gd.Outcome("DONE", job.view(now).state)

    def _rows(self) -> list[JobRow]:
        return [job.view(self.clock.now()) for job in list(self.store.jobs.values())]

    async def held(self, session: UUID, fetch_no: int | None, limit: int, /) -> list[JobRow]:
        claims = [(row, row.claim) for row in self._rows() if row.claim]
        mine = [(row, claim.fetch_no) for row, claim in claims if claim.session == session]
        return [row for row, number in mine if fetch_no in {None, number}][:limit]

    async def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        rows = {row.id: row for row in self._rows()}
        return [rows.get(job_id) for job_id in ids]

    async def list_jobs(self, where: gd.ListFilter, page: bytes | None, limit: int, /) -> gd.Page:
        if page is not None and len(page) != 16:  # the cursor is the last id of the page before
            raise InvalidCursorError("page: not a cursor of this driver")
        matching = (row for row in self._rows() if gd.row_matches(row, where))
        rows = [row for row in matching if not page or row.id.bytes < page]
        shown = sorted(rows, key=lambda row: row.id, reverse=True)[:limit]
        return gd.Page(shown, shown[-1].id.bytes if len(rows) > limit else None)

    async def change_many(self, changes: Sequence[gd.Change], /) -> list[gd.Changed]:
        with self.store.lock:
            return [self._change(change) for change in changes]

    def _change(self, change: gd.Change) -> gd.Changed:
        if not (job := self.store.jobs.get(change.id)):
            return gd.Changed("GONE")
        row, now = job.row, self.clock.now()
        match change.action, row.state:
            case "cancel", JobState.RUNNING:
                job.row = replace(row, cancel_requested=True)
                return gd.Changed("REQUESTED", row.state)
            case "cancel", JobState.CANCELLED:
                return gd.Changed("ALREADY", row.state)
            case "cancel", state if state is WAITING:
                job.row = replace(row, state=JobState.CANCELLED, finished_at=now)
            case "retry", state if state is WAITING:
                job.row = replace(row, run_at=min(row.run_at, now))  # due: it keeps its place
            case "retry", state if state.finished:
                key = row.unique_key if row.unique_hold == "active" else None
                if holder := self._holder(key):
                    return gd.Changed("CONFLICT", state, holder)
                if key:
                    self.store.keys[key] = row.id
                attempts = row.max_attempts and max(row.max_attempts, row.attempt + 1)
                row = replace(row, max_attempts=attempts, started=False, cancel_requested=False)
                job.row = replace(row, state=WAITING, run_at=now, finished_at=None, output=None)
            case "reschedule", state if state is WAITING:
                job.row = replace(row, run_at=self._time(change.when))
            case "delete", state if state is not JobState.RUNNING:
                del self.store.jobs[row.id]
                return gd.Changed("CHANGED")
            case _, state:
                return gd.Changed("CONFLICT", state)
        return gd.Changed("ALREADY" if job.row == row else "CHANGED", job.view(now).state)

    async def record_get(self, name: str, /) -> gd.Record | None:
        return self.store.records.get(name, (None, b""))[0]

    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> gd.PutResult:
        with self.store.lock:
            record, last = self.store.records.get(name, (None, None))
            version = record.version if record else 0
            if (record is None and value is None) or last == token:
                return gd.PutResult(True, version)
            if version != expected_version:
                return gd.PutResult(False, version)
            if value is None:
                del self.store.records[name]
                return gd.PutResult(True, 0)
            record = gd.Record(name, value, next(self.store.versions))
            self.store.records[name] = record, token
            return gd.PutResult(True, record.version)

    async def record_list(self, prefix: str, /) -> list[gd.Record]:
        records = [record for record, _ in list(self.store.records.values())]
        return sorted((r for r in records if r.name.startswith(prefix)), key=lambda r: r.name)
