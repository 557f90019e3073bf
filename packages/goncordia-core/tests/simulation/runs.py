"""The ledger's view of the handlers: which run where, and when they must end."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from goncordia.driver import JobRow
from goncordia.engine.events import ResultLost

from .books import Books
from .entries import JobEntry, RunEntry
from .process import Process

__all__ = ["Runs"]

_REACTION = 1.0
"""Seconds within which an engine that runs must have done what it was told."""

_ROUNDING = 1e-6


class Runs:
    """Checks each start and each interrupt.

    Args:
        books: the entries.
        row_of: the backend's own row of a job.
    """

    def __init__(self, books: Books, row_of: Callable[[UUID], JobRow | None]) -> None:
        self._books = books
        self._row_of = row_of

    # ---------------------------------------------------------------- what happens to them

    def starts(self, process: Process, row: JobRow) -> RunEntry:
        """A handler is about to be called."""
        books, claim = self._books, row.claim
        assert claim is not None
        short, job = books.short(claim), books.jobs[row.id]
        books.counts["runs"] += 1
        books.trace("start", process.name, short)
        stored = self._row_of(row.id)
        if stored is None or stored.claim != claim:
            books.bad("a handler was started for a claim that is over", short)
        # What a rescuer releases, it takes for a run that never began: that counts.
        used = sum(not run.gave_back for run in job.runs)
        if used >= books.limit(job, stored or row):
            books.bad("more runs than max_attempts", job.number)
        if any(other.claim == claim for other in job.runs):
            books.bad("a claim was run twice", short)
        run = RunEntry(job, process, row, claim, books.loop.time())
        job.runs.append(run)
        books.running.setdefault(row.id, []).append(run)
        self._check_overlap(books.running[row.id])
        self._check_group(job)
        self._check_slots(process)
        self._check_rates(run)
        return run

    def interrupted(self, run: RunEntry) -> None:
        """The handler was told to end."""
        if run.interrupted:
            return
        run.interrupted = True
        self._books.trace("interrupt", self._books.short(run.claim))
        self._note_causes(run)
        if not run.may_end and not self._books.is_lost(run.claim):
            self._books.bad(
                "a handler was interrupted without a cause", self._books.short(run.claim)
            )

    def ends(self, run: RunEntry, said: str) -> None:
        """The handler is over."""
        run.said = said
        run.ended_at = self._books.loop.time()
        if run.interrupted:
            self._note_causes(run)
        self._books.running[run.job.new.id].remove(run)
        self._books.trace("end", self._books.short(run.claim), said)

    def dropped(self, row: JobRow) -> None:
        """The engine says that it will send nothing for a run, since it is not its own any more."""
        assert row.claim is not None
        if not self._books.is_lost(row.claim):
            self._books.bad("a run was dropped that was not lost", self._books.short(row.claim))

    def lost(self, event: ResultLost) -> None:
        """The engine says that the result of a run was not stored."""
        claim = event.row.claim
        assert claim is not None
        job = self._books.jobs[claim.job_id]
        self._books.counts["results lost"] += 1
        if event.certain and job.ends.get(claim) == (event.to, False):
            self._books.bad("a result was called lost that was stored", self._books.short(claim))

    def _note_causes(self, run: RunEntry) -> None:
        books, now = self._books, self._books.loop.time()
        if run.claim in books.cancels:
            run.may_end.add("cancel")
        if run.due <= now + _ROUNDING or run.process in books.lapsing:
            run.may_end |= {"retry", "discard"}
        if run.process in books.closing:
            run.may_end.add("release")

    # ---------------------------------------------------------------- at once

    def _counts(self, run: RunEntry) -> bool:
        """Whether it must be the only run of its job: nobody ends it or may have taken the job."""
        committed = run.end == ("complete", False)  # by itself; what follows is its own affair
        return not run.interrupted and not committed and self._books.sure(run.process)

    def _check_overlap(self, running: list[RunEntry]) -> None:
        sure = [run for run in running if self._counts(run)]
        if len(sure) > 1:
            twice = len({run.process for run in sure}) < len(sure)
            self._books.bad(
                "one pool runs a job twice at once" if twice else "two pools run one job",
                sure[0].job.number,
            )

    def _check_group(self, job: JobEntry) -> None:
        group = job.new.group
        if group is None:
            return
        everything = (run for runs in self._books.running.values() for run in runs)
        sure = sum(run.job.new.group == group and self._counts(run) for run in everything)
        if sure > job.new.group_limit:
            self._books.bad("more of a group run than its limit", group)

    def _check_slots(self, process: Process) -> None:
        books = self._books
        own = [run for runs in books.running.values() for run in runs if run.process is process]
        if len(own) > books.slots[process]:
            books.bad("a pool runs more than its concurrency", process.name)
        for name in books.narrow[process]:
            if sum(name in (run.row.queue, run.row.kind) for run in own) > 1:
                books.bad(f"a pool runs more than its limit of {name}", process.name)

    def _check_rates(self, run: RunEntry) -> None:
        books = self._books
        own = [
            one.row for runs in books.running.values() for one in runs if one.process is run.process
        ]
        if (wrong := books.rates.starts(run.row, books.loop.time(), own)) is not None:
            books.bad(wrong, run.row.queue, run.row.kind)

    # ---------------------------------------------------------------- now and then

    def look(self) -> None:
        """What must hold at any time."""
        for running in self._books.running.values():
            if len(running) > 1:
                self._check_overlap(running)
            for run in running:
                if not run.interrupted and run.process.is_turning:
                    self._check_interrupt(run)

    def _check_interrupt(self, run: RunEntry) -> None:
        """Whether it goes on though its process knows that it must not."""
        books = self._books
        lost = books.sessions[run.claim.session].lost_heard_at
        causes = [(run.due, "its time is over")]
        if run.claim in books.cancels:
            causes.append((books.cancels[run.claim], "a cancel was requested"))
        if lost is not None:
            causes.append((lost, "its session was lost"))
        since, why = min(causes)
        if books.loop.time() - max(since, run.started_at, run.process.last_halt) > _REACTION:
            books.bad(f"a handler was not interrupted though {why}", books.short(run.claim))
