"""The ledger's view of the backend: every request, when it takes effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from goncordia.driver import (
    Change,
    Changed,
    Claim,
    FetchResult,
    Finish,
    InsertResult,
    JobRow,
    JobState,
    Mark,
    NewJob,
    Outcome,
    PutResult,
)

from .backend import SimTx
from .books import Books
from .driver import ended_by_record
from .entries import GIVEN_BACK, JobEntry, SessionEntry
from .process import Process

__all__ = ["Effects"]

_ENDED = (JobState.CANCELLED, JobState.COMPLETED, JobState.DISCARDED)


class Effects:
    """Follows every job and session through what the backend does.

    Args:
        books: the entries.
        open_sessions: the backend's own list of sessions that are open.
    """

    def __init__(self, books: Books, open_sessions: Callable[[], set[UUID]]) -> None:
        self._books = books
        self._open_sessions = open_sessions

    def applied(self, process: Process, name: str, args: tuple[Any, ...], result: Any) -> None:
        """The backend did what a process asked for."""
        match name:
            case "insert_many":
                self._inserted(args[0], result)
            case "fetch":
                self._fetched(result)
            case "exchange":
                self._finished_all(process, args[0], result[0])
                if result[1] is not None:
                    self._fetched(result[1])
            case "finish_many":
                self._finished_all(process, args[0], result)
            case "tx_commit":
                self._committed(process, args[0], result)
            case "mark_many":
                self._marked(args[0], result)
            case "change_many":
                self._changed(args[0], result)
            case "session_open":
                self._opened(process, args[0])
            case "session_close":
                self._closed(args[0])
            case "expire":
                self._expired(process)
            case "record_put":
                self._put(process, args[0], args[1], result)
            case _:
                pass

    # ---------------------------------------------------------------- jobs come and change

    def _inserted(self, jobs: Sequence[NewJob], results: Sequence[InsertResult]) -> None:
        books = self._books
        for new, result in zip(jobs, results, strict=True):
            if result.status != "INSERTED":
                continue
            before = books.jobs.get(new.id)
            # An insert that comes again after the job was deleted cannot be told from a new one.
            if before is not None and not before.deleted:
                books.bad("a job was inserted twice", before.number)
            entry = books.jobs[new.id] = JobEntry(new, len(books.jobs))
            books.trace("insert", f"j{entry.number}", new.kind, new.queue, new.max_attempts)
            self._check_unique(entry)

    def _check_unique(self, entry: JobEntry) -> None:
        key = entry.new.unique_key
        if key is None:
            return
        for other in self._books.jobs.values():
            if other is not entry and other.new.unique_key == key and other.state != "finished":
                self._books.bad("a unique key is held twice", entry.number, other.number)

    def _changed(self, changes: Sequence[Change], results: Sequence[Changed]) -> None:
        for change, changed in zip(changes, results, strict=True):
            entry = self._books.jobs.get(change.id)
            if entry is None:
                continue
            self._books.trace(change.action, f"j{entry.number}", changed.status)
            if changed.status == "REQUESTED":
                entry.cancel_requested = True
            elif changed.status == "CHANGED" and change.action == "cancel":
                entry.state = "finished"
            elif changed.status == "CHANGED" and change.action == "delete":
                entry.state, entry.deleted = "finished", True
            elif changed.status == "CHANGED" and change.action == "retry":
                self._retried(entry)

    def _retried(self, entry: JobEntry) -> None:
        if entry.state == "finished":
            entry.state = "waiting"
            entry.completions = entry.effects = 0
            entry.granted = entry.claims - entry.refunds + 1
            self._check_unique(entry)

    # ---------------------------------------------------------------- claims begin and end

    def _fetched(self, result: FetchResult) -> None:
        for row in result.jobs:
            if row.claim is not None:
                self._claimed(row, row.claim)

    def _claimed(self, row: JobRow, claim: Claim) -> None:
        books = self._books
        entry = books.jobs[row.id]
        if entry.state != "waiting":
            books.bad("a job was claimed that did not wait", entry.number, entry.state)
        if claim in entry.ends:
            books.bad("a claim came twice", books.short(claim))
        entry.claims += 1
        entry.state, entry.claim = "running", claim
        books.trace("claim", books.short(claim), "attempt", row.attempt)
        if row.attempt > books.limit(entry, row):
            books.bad("a job was claimed beyond max_attempts", entry.number)
        group = entry.new.group
        if group is not None:
            held = sum(job.new.group == group and bool(job.claim) for job in books.jobs.values())
            if held > entry.new.group_limit:
                books.bad("a group is over its limit", group)

    def _finished_all(
        self, process: Process, finishes: Sequence[Finish], outcomes: Sequence[Outcome]
    ) -> None:
        for finish, outcome in zip(finishes, outcomes, strict=True):
            self._books.counts[f"finish {outcome.status}"] += 1
            if outcome.status == "DONE":
                self._finished(process, finish, outcome)

    def _committed(
        self, process: Process, tx: SimTx, finishes: Sequence[tuple[Finish, Outcome]]
    ) -> None:
        """A worker's transaction: its effect, and the job's completion if it is in."""
        books = self._books
        completed = False
        for finish, outcome in finishes:
            if outcome.status == "DONE":
                completed = finish.claim == tx.claim and finish.to == "complete"
                self._finished(process, finish, outcome, in_tx=True)
        books.jobs[tx.claim.job_id].effects += 1
        books.trace("effect", books.short(tx.claim), completed)
        if not completed:
            books.bad("a transaction was committed without the completion of its job")

    def _finished(
        self, process: Process, finish: Finish, outcome: Outcome, *, in_tx: bool = False
    ) -> None:
        books, claim = self._books, finish.claim
        entry = books.jobs[claim.job_id]
        short, by = books.short(claim), "by a rescuer" if finish.rescue else ""
        books.trace("finish", short, finish.to, outcome.state, by)
        if entry.claim != claim:
            books.bad("a finish acted on a claim that was over", short)
        asked = entry.cancel_requested
        if asked and outcome.state not in _ENDED:
            books.bad("a cancel request was lost", short)
        self._check_end(entry, finish, in_tx=in_tx)
        if finish.rescue:
            books.counts["rescued"] += 1
            if finish.to == "retry" and entry.new.kind not in books.known[process]:
                # How many attempts its worker grants, only those know who have one.
                entry.granted = max(entry.granted, entry.claims - entry.refunds + 1)
        if finish.to == "complete":
            entry.completions += 1
        self._ended(entry, claim, finish.to, rescue=finish.rescue)

    def _check_end(self, entry: JobEntry, finish: Finish, *, in_tx: bool) -> None:
        """Whether such an end may come of what the job's handler did."""
        books, claim, to = self._books, finish.claim, finish.to
        short = books.short(claim)
        run = next((run for run in entry.runs if run.claim == claim), None)
        if finish.rescue:
            if to == "discard" and run is None and claim not in entry.marked:
                books.bad("a rescue discarded a job that never ran", short)
            return
        by_itself = run is not None and run.said == "cancelled"
        if to == "cancel" and not entry.cancel_requested and not by_itself:
            books.bad("a job was cancelled without a request", short)
        if run is None and to not in ("release", "cancel"):
            books.bad("a job was ended that did not run", short, to)
        if run is not None and run.tx and to == "complete" and not in_tx:
            books.bad("a job was completed whose transaction did not commit", short)

    def _ended(self, entry: JobEntry, claim: Claim, to: str, *, rescue: bool) -> None:
        entry.ends[claim] = (to, rescue)
        entry.claim = None
        if to in GIVEN_BACK:
            entry.refunds += 1
        over = to in ("complete", "discard", "cancel") or entry.cancel_requested
        entry.state = "finished" if over else "waiting"
        entry.cancel_requested = False

    def _marked(self, marks: Sequence[Mark], outcomes: Sequence[Outcome]) -> None:
        books = self._books
        for mark, outcome in zip(marks, outcomes, strict=True):
            if outcome.status == "DONE":
                books.trace("mark", books.short(mark.claim), mark.started, mark.checkpoint)
                if mark.started:
                    books.jobs[mark.claim.job_id].marked.add(mark.claim)

    # ---------------------------------------------------------------- sessions

    def _opened(self, process: Process, session: UUID) -> None:
        books = self._books
        if session not in books.sessions:
            name = f"{process.name}.{len(books.sessions)}"
            books.sessions[session] = SessionEntry(session, process, name)
            books.trace("open", name)

    def _closed(self, session: UUID) -> None:
        """Its own process closes it; what it holds is released in the same step."""
        entry = self._books.sessions.get(session)
        if entry is not None and not entry.is_over:
            for job, claim in self._check_closed(entry):
                self._ended(job, claim, "release", rescue=False)

    def _check_closed(self, session: SessionEntry) -> list[tuple[JobEntry, Claim]]:
        """What it held; that may only be what its process does not know of."""
        books = self._books
        books.trace("close", session.name)
        session.closed = True
        held = []
        for job in books.jobs.values():
            if job.claim is not None and job.claim.session == session.id:
                held.append((job, job.claim))
                if job.claim in job.known:
                    books.bad("a session was closed that held claims", books.short(job.claim))
        return held

    def _expired(self, process: Process) -> None:
        self._books.counts["expire"] += 1
        still_open = self._open_sessions()
        for session in self._books.sessions.values():
            if session.id not in still_open and not session.is_over:
                self._ended_by(process, session)

    def _ended_by(self, process: Process, session: SessionEntry) -> None:
        """Another ends the session."""
        books, owner = self._books, session.process
        session.ended_at = books.loop.time()
        books.counts["sessions ended"] += 1
        books.trace("ended", session.name, "by", process.name)
        has_it = books.current.get(owner) == session.id
        if has_it and books.sure(owner) and not owner.cut and owner not in books.closing:
            books.bad("the session of a healthy pool was ended", session.name)

    def _put(self, process: Process, name: str, value: bytes | None, result: PutResult) -> None:
        """Without the backend's time, sessions are records."""
        found = ended_by_record(name, value)
        if found is None or not result.done:
            return
        session, ended = found
        entry = self._books.sessions.get(session)
        if entry is None:
            if not ended:
                self._opened(process, session)
        elif ended and not entry.is_over:
            if process is entry.process:
                self._check_closed(entry)  # what it holds is released one by one
            else:
                self._ended_by(process, entry)
