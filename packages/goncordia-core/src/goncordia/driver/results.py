"""What a driver answers."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

import msgspec

from goncordia.driver.values import Claim, JobRow, JobState

__all__ = [
    "Beat",
    "ChangeStatus",
    "Changed",
    "FetchResult",
    "Finding",
    "InsertResult",
    "InsertStatus",
    "Outcome",
    "OutcomeStatus",
    "Page",
    "PutResult",
    "QueueState",
    "QueueStats",
    "SessionInfo",
    "Wake",
]

InsertStatus: TypeAlias = Literal["INSERTED", "DUPLICATE", "REPLAYED", "PENDING"]
OutcomeStatus: TypeAlias = Literal["DONE", "ALREADY", "STALE", "GONE", "BUSY"]
ChangeStatus: TypeAlias = Literal["CHANGED", "REQUESTED", "ALREADY", "CONFLICT", "GONE"]


class InsertResult(msgspec.Struct, frozen=True, gc=False):
    """What became of one job of ``insert_many``.

    Attributes:
        id: the id that was asked for.
        status: ``INSERTED``; ``DUPLICATE``: its unique key is held, nothing was written;
            ``REPLAYED``: a job with this id is there already; ``PENDING``: the transaction
            cannot tell before it commits.
        holder: for ``DUPLICATE``, the id of the job that holds the key.
    """

    id: UUID
    status: InsertStatus
    holder: UUID | None = None


class FetchResult(msgspec.Struct, frozen=True):
    """What a fetch claimed.

    Attributes:
        jobs: claimed, in order.
        more: False with fewer jobs than asked: the whole of the queues was looked at. True: there
            may be more that this fetch did not get to.
        next_due_in: seconds until the next waiting job of these queues is due; ``inf``: nothing
            waits; None: unknown.
        paused: those of the queues that are paused; nothing of them was claimed.
        lost: the session is not open; nothing was claimed.
    """

    jobs: list[JobRow]
    more: bool = False
    next_due_in: float | None = None
    paused: tuple[str, ...] = ()
    lost: bool = False


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What became of one ``Finish`` or ``Mark``.

    Attributes:
        status: ``DONE``; ``ALREADY``: this claim was ended before, also when the job waits or
            runs again since; ``STALE``: the claim does not hold the job, nothing was changed;
            ``GONE``: there is no such job; ``BUSY``, never inside a transaction: somebody's open
            transaction holds the job, nothing was changed, ask again.
        state: the state that the request reached (``DONE``), or that the job is in.
    """

    status: OutcomeStatus
    state: JobState | None = None


class Changed(msgspec.Struct, frozen=True, gc=False):
    """What became of one ``Change``.

    Attributes:
        status: ``CHANGED``; ``REQUESTED``: the job runs, its worker is told; ``ALREADY``: it was
            so before; ``CONFLICT``: its state or its unique key does not allow it; ``GONE``.
        state: the job's state afterwards, where it is known.
        holder: for ``CONFLICT``, the id of the job that holds the unique key, if that is why.
    """

    status: ChangeStatus
    state: JobState | None = None
    holder: UUID | None = None


class Page(msgspec.Struct, frozen=True):
    """One page of ``list``.

    Attributes:
        jobs: newest id first.
        next: hand it in for the next page; None: this was the last. Opaque but to its driver.
    """

    jobs: list[JobRow]
    next: bytes | None = None


class PutResult(msgspec.Struct, frozen=True, gc=False):
    """What became of a ``record_put``.

    Attributes:
        done: it was written, now or by an earlier call with the same token.
        version: the record's version now; 0: there is no such record.
    """

    done: bool
    version: int


class Beat(msgspec.Struct, frozen=True):
    """The answer to a session's beat.

    Attributes:
        held: the session is open. False: it is lost for good.
        cancels: claims of this session whose jobs have a cancel requested.
    """

    held: bool
    cancels: tuple[Claim, ...] = ()


class SessionInfo(msgspec.Struct, frozen=True):
    """A session as ``session_list`` gives it.

    Attributes:
        id: the session.
        worker_id: its pool's name.
        open: False: ended, and still holding claims.
        opened_at: when it was opened.
        beat_at: when it last beat, by the backend's clock; None: unknown.
        lease: seconds that it holds without a beat.
    """

    id: UUID
    worker_id: str
    open: bool
    opened_at: datetime | None = None
    beat_at: datetime | None = None
    lease: float = 0.0


class QueueState(msgspec.Struct, frozen=True, gc=False):
    """A queue that was paused at least once, or holds jobs.

    Attributes:
        name: the queue.
        paused: nothing of it is claimed.
    """

    name: str
    paused: bool


class QueueStats(msgspec.Struct, frozen=True, gc=False):
    """How many jobs of a queue are in each unfinished state.

    Attributes:
        name: the queue.
        available: due and waiting.
        scheduled: due later.
        retryable: due later, after a failure.
        running: claimed.
        oldest_due: when the job that has been due longest became due; None: none is.
        exact: False: counting stopped at a cap, the numbers are lower bounds.
    """

    name: str
    available: int = 0
    scheduled: int = 0
    retryable: int = 0
    running: int = 0
    oldest_due: datetime | None = None
    exact: bool = True


class Wake(msgspec.Struct, frozen=True):
    """A hint that something happened, sent after its commit. Polling remains the truth.

    Attributes:
        what: ``jobs``: jobs may be due; ``cancel``: cancels were requested; ``queue``: a queue
            was paused or resumed; ``gap``: the listener was away, look everywhere.
        queue: the queue that it concerns; None: unknown or several.
        due_in: seconds until the jobs are due; None: now or unknown.
        job_ids: the jobs that it concerns; empty: unknown.
    """

    what: Literal["jobs", "cancel", "queue", "gap"]
    queue: str | None = None
    due_in: float | None = None
    job_ids: tuple[UUID, ...] = ()


class Finding(msgspec.Struct, frozen=True, gc=False):
    """Something that ``check`` has to say.

    Attributes:
        level: ``warning`` or ``error``.
        message: what is wrong, and what to do.
    """

    level: Literal["warning", "error"]
    message: str
