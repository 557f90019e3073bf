"""The words of the contract: states, times, claims and rows.

Everything here is plain, immutable data. Times are aware datetimes in UTC, durations are seconds,
args, outputs and checkpoints are bytes that the driver stores and gives back unchanged. Nothing can
be part of a reference cycle: ``gc=False`` spares the collector a walk over every waiting job.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

__all__ = [
    "FINISHED_STATES",
    "MAX_ERRORS",
    "NO_TIMEOUT",
    "After",
    "At",
    "AttemptError",
    "Claim",
    "JobRow",
    "JobState",
    "NewJob",
    "Record",
    "UniqueHold",
    "When",
]

NO_TIMEOUT: Final = 0.0
"""The stored ``timeout`` of a job that may run without end, whatever its worker says."""

MAX_ERRORS: Final = 20
"""How many of a job's errors a row keeps: the newest."""


class JobState(StrEnum):
    """The state of a job as it is reported.

    The three waiting states are derived when a job is read: ``available`` when it is due, else
    ``retryable`` if its last claim failed, else ``scheduled``.
    """

    AVAILABLE = "available"
    SCHEDULED = "scheduled"
    RETRYABLE = "retryable"
    RUNNING = "running"
    COMPLETED = "completed"
    DISCARDED = "discarded"
    CANCELLED = "cancelled"

    @property
    def finished(self) -> bool:
        """Whether the job is over: completed, discarded or cancelled."""
        return self in FINISHED_STATES


FINISHED_STATES: Final = frozenset(
    {JobState.COMPLETED, JobState.DISCARDED, JobState.CANCELLED},
)
"""The states in which a job is over."""


class After(msgspec.Struct, frozen=True, gc=False):
    """So many seconds after the moment when the backend applies the request."""

    seconds: float


class At(msgspec.Struct, frozen=True, gc=False):
    """A point in time: aware, in UTC."""

    when: datetime


When: TypeAlias = After | At | None
"""When a job is due; None means now, by the backend's clock."""

UniqueHold: TypeAlias = Literal["active", "until_deleted"] | At
"""How long a unique key is held.

``"active"``: while the job waits or runs. ``"until_deleted"``: until its row is deleted by a
``delete``; ``prune`` leaves it. ``At(t)``: until that time, whatever the job's state; till then
``prune`` leaves the row as well.
"""


class Claim(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """Ownership of one run of a job. It never repeats, and nothing else fences.

    Attributes:
        job_id: the job.
        session: the session that holds it.
        fetch_no: the number of the fetch that claimed it, counted by the session.
        ref: the driver's own note (a partition, a shard); handed back in every request.
    """

    job_id: UUID
    session: UUID
    fetch_no: int
    ref: bytes | None = None


class AttemptError(msgspec.Struct, frozen=True, gc=False):
    """Why an attempt failed.

    Attributes:
        attempt: the attempt's number, from 1.
        at: when it failed, by the worker's clock.
        type: the exception's qualified name, or the engine's reason such as ``"timeout"``.
        message: the exception's text, bounded.
        traceback: the formatted traceback, bounded; may be empty.
        worker_id: the worker pool that ran it.
    """

    attempt: int
    at: datetime
    type: str
    message: str
    traceback: str = ""
    worker_id: str = ""


class NewJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job to insert.

    Attributes:
        id: a UUIDv7 made by the client, monotonic within it.
        kind: routes the job to its worker.
        queue: the queue's name.
        priority: -32768 to 32767; higher first.
        run_at: when it is due.
        args: the encoded args, stored byte for byte.
        content: ``"json"`` (UTF-8 text, kept readable in the database's shell) or a codec's name.
        payload_version: the version of the args' shape, from 1.
        max_attempts: attempts in all; None: the worker's number applies when it runs.
        timeout: seconds; ``NO_TIMEOUT``: none; None: the worker's applies.
        tags: names to filter by.
        meta: small map of strings, such as a trace context.
        unique_key: 32 bytes, or None.
        unique_hold: how long the key is held.
        group: the group that limits it, or None. The client keeps the name spaces of pipelines
            and concurrency keys apart.
        group_limit: how many jobs of the group may run at once, counted at this job's claim.
    """

    id: UUID
    kind: str
    args: bytes
    queue: str = "default"
    priority: int = 0
    run_at: When = None
    content: str = "json"
    payload_version: int = 1
    max_attempts: int | None = None
    timeout: float | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, str] = {}
    unique_key: bytes | None = None
    unique_hold: UniqueHold = "active"
    group: str | None = None
    group_limit: int = 0


class JobRow(msgspec.Struct, frozen=True, gc=False):
    """A job as it is stored. The first sixteen fields are those of :class:`NewJob`.

    Attributes:
        run_at: when it is due, resolved.
        state: as reported, derived at the time of reading.
        attempt: how many runs have been claimed, less those given back.
        worker_id: who claimed it last; information only.
        claim: the claim under which it runs; None unless running.
        started: the engine marked this claim as started.
        cancel_requested: a cancel met it while it was running.
        created_at: when it was inserted.
        claimed_at: when it was last claimed.
        finished_at: when it ended.
        errors: the newest 20, oldest first.
        checkpoint: JSON that the worker stored last.
        output: JSON that the worker returned.
    """

    id: UUID
    kind: str
    queue: str
    priority: int
    run_at: datetime
    args: bytes
    content: str
    payload_version: int
    max_attempts: int | None
    timeout: float | None
    tags: tuple[str, ...]
    meta: Mapping[str, str]
    unique_key: bytes | None
    unique_hold: UniqueHold
    group: str | None
    group_limit: int
    state: JobState
    attempt: int
    worker_id: str | None
    claim: Claim | None
    started: bool
    cancel_requested: bool
    created_at: datetime
    claimed_at: datetime | None
    finished_at: datetime | None
    errors: tuple[AttemptError, ...]
    checkpoint: bytes | None
    output: bytes | None


class Record(msgspec.Struct, frozen=True, gc=False):
    """A small durable value, changed by compare-and-swap.

    Attributes:
        name: such as ``"session/…"``; at most 200 characters.
        value: at most 64 KiB.
        version: changes with every put, and is never given again to that name, not even after
            the record was deleted.
    """

    name: str
    value: bytes
    version: int
