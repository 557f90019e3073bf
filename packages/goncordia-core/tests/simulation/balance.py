"""The ledger at the end: every job is accounted for."""

from __future__ import annotations

from collections.abc import Iterable

from goncordia.driver import JobRow, JobState

from .books import Books
from .entries import JobEntry, RunEntry

__all__ = ["balance"]


def balance(books: Books, rows: Iterable[JobRow]) -> None:
    """Compare the books with what the backend holds."""
    stored = {row.id: row for row in rows}
    for job_id, job in books.jobs.items():
        row = stored.pop(job_id, None)
        if row is not None:
            _balance(books, job, row)
        elif not job.deleted:
            books.bad("a job is gone", job.number)
    for row in stored.values():
        books.bad("a job is there that nobody inserted", row.id)


def _balance(books: Books, job: JobEntry, row: JobRow) -> None:
    if job.deleted:
        books.bad("a deleted job is there", job.number)
    if job.completions > 1:
        books.bad("a job was completed twice", job.number)
    if job.effects > 1 or (job.effects and row.state is not JobState.COMPLETED):
        books.bad("effects of transactions and completions differ", job.number)
    if row.attempt != job.claims - job.refunds:
        books.bad("attempts are counted wrong", job.number, row.attempt)
    if row.state is JobState.COMPLETED and not any(run.end[0] == "complete" for run in job.runs):
        books.bad("a job was completed that did not run", job.number)
    if not row.state.finished:
        _say_why_unfinished(books, job, row)
    for run in job.runs:
        _balance_run(books, run)


def _say_why_unfinished(books: Books, job: JobEntry, row: JobRow) -> None:
    if row.claim is None:
        books.bad("a job waits and nobody takes it", job.number)
        return
    session = books.sessions.get(row.claim.session)
    if session is None or session.is_over:
        books.bad("a job is held for ever by a session that ended", job.number)
    elif session.process.dead or session.process in books.closing:
        books.bad("a job is held for ever by a session that nobody ends", job.number)
    elif row.claim in job.known:
        books.bad("a job is never finished", job.number)
    else:
        books.bad("a claim leaked: its pool does not know it", job.number)


def _balance_run(books: Books, run: RunEntry) -> None:
    """A result goes lost only with its process or with its session."""
    session = books.sessions[run.claim.session]
    if run.process.dead or not run.said:
        return
    if session.ended_at is not None or session.lost_heard_at is not None:
        return
    short = books.short(run.claim)
    to, rescue = run.end
    if rescue:
        books.bad("a run was rescued whose session was not ended", short)
    elif run.interrupted and run.said != "returned":
        # The cause of the interrupt may outweigh what the handler raised.
        if to not in run.may_end | run.allowed:
            books.bad("an interrupted run ended wrongly", short, to)
    elif to not in run.allowed:
        books.bad("the result of a run was dropped", short, run.said, to)
