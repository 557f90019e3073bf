"""The entries of the ledger: jobs, their runs, sessions."""

from __future__ import annotations

import math
from uuid import UUID

from goncordia.driver import NO_TIMEOUT, Claim, JobRow, NewJob

from .process import Process

__all__ = ["GIVEN_BACK", "JobEntry", "RunEntry", "SessionEntry"]

GIVEN_BACK = ("snooze", "release")
"""Finishes that take the attempt back."""

_OWN_ENDS = {
    "returned": ("complete",),
    "failed": ("retry", "discard"),
    "snoozed": ("snooze",),
    "discarded": ("discard",),
    "cancelled": ("cancel",),
    "interrupted": (),
}
"""What a handler did, and which finishes may come of it."""


class RunEntry:
    """One call of a handler.

    Attributes:
        job: of which job.
        process: where.
        row: the job as it was claimed.
        claim: under which claim.
        started_at: when.
        ended_at: when it was over.
        interrupted: the handler was told to end.
        said: what it did in the end; empty while it runs.
        tx: it tried to complete itself in a transaction.
        poisoned: what it returned cannot be stored.
        may_end: the finishes that its interrupt allows.
    """

    __slots__ = (
        "claim",
        "ended_at",
        "interrupted",
        "job",
        "may_end",
        "poisoned",
        "process",
        "row",
        "said",
        "started_at",
        "tx",
    )

    def __init__(
        self, job: JobEntry, process: Process, row: JobRow, claim: Claim, now: float
    ) -> None:
        self.job = job
        self.process = process
        self.row = row
        self.claim = claim
        self.started_at = now
        self.ended_at = math.inf
        self.interrupted = False
        self.said = ""
        self.tx = False
        self.poisoned = False
        self.may_end: set[str] = set()

    @property
    def due(self) -> float:
        """When its time is over."""
        timeout = self.row.timeout
        return math.inf if timeout is None or timeout == NO_TIMEOUT else self.started_at + timeout

    @property
    def end(self) -> tuple[str, bool]:
        """The finish that ended its claim, and whether a rescuer sent it."""
        return self.job.ends.get(self.claim, ("nothing", False))

    @property
    def gave_back(self) -> bool:
        """Its own pool gave the job back, without using an attempt."""
        to, rescue = self.end
        return to in GIVEN_BACK and not rescue

    @property
    def allowed(self) -> set[str]:
        """The finishes that may come of what the handler did."""
        if self.tx:
            # It may have completed itself; else a return is a failure, for it did not commit.
            said = "failed" if self.said == "returned" else self.said
            return {"complete", *_OWN_ENDS[said]}
        return set(_OWN_ENDS["failed" if self.poisoned else self.said])


class SessionEntry:
    """One session.

    Attributes:
        id: its id.
        process: who opened it.
        name: for the trace.
        used: its process has asked for something under it, so it knows of it.
        closed: its own process has closed it.
        ended_at: when another ended it.
        lost_heard_at: when its process heard of that.
    """

    __slots__ = ("closed", "ended_at", "id", "lost_heard_at", "name", "process", "used")

    def __init__(self, session: UUID, process: Process, name: str) -> None:
        self.id = session
        self.process = process
        self.name = name
        self.used = False
        self.closed = False
        self.ended_at: float | None = None
        self.lost_heard_at: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it cannot hold anything."""
        return self.closed or self.ended_at is not None


class JobEntry:
    """One job.

    Attributes:
        new: as it was inserted.
        number: for the trace.
        state: waiting, running or finished.
        claim: under which it runs.
        claims: how many claims there were.
        refunds: how many of them took their attempt back.
        ends: for each claim that is over the finish that ended it, and whether a rescuer sent it.
        known: claims whose fetch was answered.
        marked: claims that were marked as started.
        runs: all calls of its handler.
        cancel_requested: a cancel met it running.
        completions: how often it was completed, since it was last retried.
        effects: how often a worker's transaction for it was committed, since then.
        granted: the attempt that an administrator's retry allows, whatever the limit.
        checkpoint: the highest one that a handler was told is stored.
        deleted: an administrator deleted it.
    """

    __slots__ = (
        "cancel_requested",
        "checkpoint",
        "claim",
        "claims",
        "completions",
        "deleted",
        "effects",
        "ends",
        "granted",
        "known",
        "marked",
        "new",
        "number",
        "refunds",
        "runs",
        "state",
    )

    def __init__(self, new: NewJob, number: int) -> None:
        self.new = new
        self.number = number
        self.state = "waiting"
        self.claim: Claim | None = None
        self.claims = 0
        self.refunds = 0
        self.ends: dict[Claim, tuple[str, bool]] = {}
        self.known: set[Claim] = set()
        self.marked: set[Claim] = set()
        self.runs: list[RunEntry] = []
        self.cancel_requested = False
        self.completions = 0
        self.effects = 0
        self.granted = 0
        self.checkpoint = 0
        self.deleted = False
