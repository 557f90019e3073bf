"""The store's own record of a job, and the small rules about one job alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from goncordia.driver.values import (
    MAX_ERRORS,
    After,
    At,
    AttemptError,
    Claim,
    JobRow,
    JobState,
    NewJob,
    When,
)

if TYPE_CHECKING:
    from goncordia.driver.requests import ListFilter
    from goncordia.memory.sessions import Session

__all__ = [
    "WAITING",
    "Job",
    "Order",
    "derive_state",
    "holds_key",
    "is_claim",
    "matches",
    "resolve",
    "with_error",
]

WAITING: Final = None
"""The stored state of a job that waits; what is reported is derived from it by time."""

Order = tuple[int, datetime, int]
"""Where a waiting job stands among those of its queue: minus priority, run_at, id."""


class Job:
    """A job, with what changes about it. The rest stays in the request that made it."""

    __slots__ = (
        "attempt",
        "cancel_requested",
        "checkpoint",
        "claim",
        "claimed_at",
        "created_at",
        "ended_claim",
        "errors",
        "failed",
        "finished_at",
        "key",
        "max_attempts",
        "meta",
        "new",
        "output",
        "run_at",
        "session",
        "shown",
        "started",
        "state",
        "visible_at",
        "worker_id",
    )

    def __init__(self, new: NewJob, now: datetime) -> None:
        self.new = new
        self.key = new.id.int
        self.run_at = resolve(new.run_at, now)
        self.max_attempts = new.max_attempts
        self.meta = dict(new.meta)
        self.state: JobState | None = WAITING
        self.attempt = 0
        self.worker_id: str | None = None
        self.claim: Claim | None = None
        self.ended_claim: Claim | None = None
        """The last claim that was ended, by which a repeated finish is known."""
        self.failed = False
        """Whether the last ended claim failed."""
        self.session: Session | None = None
        """The session that holds it while it runs."""
        self.started = False
        self.cancel_requested = False
        self.created_at = now
        self.claimed_at: datetime | None = None
        self.finished_at: datetime | None = None
        self.errors: tuple[AttemptError, ...] = ()
        self.checkpoint: bytes | None = None
        self.output: bytes | None = None
        self.shown = False
        """Whether a fetch can meet it: it waits, and its group has room."""
        self.visible_at = now
        """Since when it waits."""

    def order(self) -> Order:
        """Where it stands among the waiting jobs of its queue."""
        return (-self.new.priority, self.run_at, self.key)

    def row(self, now: datetime) -> JobRow:
        """The job as it is reported at this time."""
        new = self.new
        return JobRow(
            new.id,
            new.kind,
            new.queue,
            new.priority,
            self.run_at,
            new.args,
            new.content,
            new.payload_version,
            self.max_attempts,
            new.timeout,
            new.tags,
            dict(self.meta),
            new.unique_key,
            new.unique_hold,
            new.group,
            new.group_limit,
            derive_state(self, now),
            self.attempt,
            self.worker_id,
            self.claim,
            self.started,
            self.cancel_requested,
            self.created_at,
            self.claimed_at,
            self.finished_at,
            self.errors,
            self.checkpoint,
            self.output,
        )


def derive_state(job: Job, now: datetime) -> JobState:
    """The state to report: a waiting job is available, retryable or scheduled."""
    if job.state is not None:
        return job.state
    if job.run_at <= now:
        return JobState.AVAILABLE
    return JobState.RETRYABLE if job.failed else JobState.SCHEDULED


def holds_key(job: Job, now: datetime) -> bool:
    """Whether a job that has its unique key still keeps others from it."""
    match job.new.unique_hold:
        case "until_deleted":
            return True
        case At(when):
            return now < when
        case "active":
            return job.state is WAITING or job.state is JobState.RUNNING


def is_claim(ours: Claim | None, named: Claim) -> bool:
    """Whether this is the claim that a request names; the job is the same already."""
    return ours is named or (
        ours is not None and ours.fetch_no == named.fetch_no and ours.session == named.session
    )


def matches(job: Job, where: ListFilter, now: datetime) -> bool:
    """Whether the job passes the filter."""
    new = job.new
    return (
        (not where.states or derive_state(job, now) in where.states)
        and (not where.kinds or new.kind in where.kinds)
        and (not where.queues or new.queue in where.queues)
        and where.tags.issubset(new.tags)
        and (where.group is None or new.group == where.group)
        and (where.created_from is None or job.created_at >= where.created_from)
        and (where.created_until is None or job.created_at < where.created_until)
    )


def resolve(when: When, now: datetime) -> datetime:
    """The point in time that a request means."""
    match when:
        case None:
            return now
        case After(seconds):
            return now + timedelta(seconds=seconds)
        case At(point):
            return point


def with_error(
    errors: tuple[AttemptError, ...], error: AttemptError | None
) -> tuple[AttemptError, ...]:
    """The newest errors, with one more."""
    return errors if error is None else (*errors, error)[-MAX_ERRORS:]
