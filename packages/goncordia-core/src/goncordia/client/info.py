"""A job as the client shows it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast
from uuid import UUID

import msgspec

from goncordia import _check
from goncordia.driver import NO_TIMEOUT, AttemptError, JobRow, JobState, QueueStats
from goncordia.errors import JobFailedError, PayloadError
from goncordia.options import concurrency_group, pipeline_group
from goncordia.payload.codec import CONTENT_JSON, decode_args, decode_value

__all__ = ["JobInfo", "JobPage", "QueueInfo", "info_of", "job_failed", "queue_info_of"]

A = TypeVar("A")
T = TypeVar("T")


class JobInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it was when it was read.

    Attributes:
        id: a UUIDv7; newer jobs have greater ids.
        kind: what routes it to its worker.
        queue: its queue.
        state: ``available`` (waits, due), ``scheduled`` (waits, due later), ``retryable`` (the
            same after a failure), ``running``, ``completed``, ``discarded`` or ``cancelled``.
        priority: -32768 to 32767; higher first.
        run_at: when it is due, or was.
        attempt: how many attempts were begun.
        max_attempts: attempts in all; None: its worker's number applies.
        timeout: seconds; ``inf``: none; None: its worker's applies.
        tags: names to filter by.
        meta: small map of strings, such as a trace context.
        pipeline_id: its pipeline, of which one job runs at a time.
        concurrency_key: what it shares a limit with.
        concurrency_limit: how many jobs of its pipeline or key may run at once; None: any.
        payload_version: the version of the args' shape.
        content: ``"json"``, or the name of the codec that made ``raw_args``.
        raw_args: the stored args.
        raw_output: JSON that the worker returned, once completed.
        raw_checkpoint: JSON that the worker stored last.
        unique_key: what no other job may hold now; None: nothing.
        cancel_requested: it runs, and its worker has been asked to stop.
        worker_id: the pool that ran it last.
        created_at: when it was enqueued.
        claimed_at: when it was last claimed.
        finished_at: when it ended.
        errors: why attempts failed; the newest 20, oldest first.
    """

    id: UUID
    kind: str
    queue: str
    state: JobState
    priority: int
    run_at: datetime
    attempt: int
    max_attempts: int | None
    timeout: float | None
    tags: tuple[str, ...]
    meta: Mapping[str, str]
    pipeline_id: str | None
    concurrency_key: str | None
    concurrency_limit: int | None
    payload_version: int
    content: str
    raw_args: bytes
    raw_output: bytes | None
    raw_checkpoint: bytes | None
    unique_key: bytes | None
    cancel_requested: bool
    worker_id: str | None
    created_at: datetime
    claimed_at: datetime | None
    finished_at: datetime | None
    errors: tuple[AttemptError, ...]

    @property
    def args(self) -> Any:
        """The args as plain JSON data; see :meth:`args_as`.

        Raises:
            PayloadError: they are stored by another codec than JSON.
        """
        self._must_be_json()
        return self._decoded(Any, self.raw_args, "args")

    def args_as(self, cls: type[A]) -> A:
        """The args as an object of their class.

        Raises:
            PayloadError: they do not fit the class, or are stored by another codec than JSON.
            ConfigurationError: it is not an args class of this kind.
        """
        if getattr(cls, "kind", None) != self.kind:
            _check.refuse("args_as", cls, f"the args class of kind {self.kind!r}")
        self._must_be_json()
        return cast("A", decode_args(cls, self.raw_args, job_id=self.id))

    def _must_be_json(self) -> None:
        if self.content != CONTENT_JSON:
            raise PayloadError(
                f"the args are stored as {self.content!r}, which this client cannot read",
                kind=self.kind,
                job_id=self.id,
            )

    @property
    def output(self) -> Any:
        """What the worker returned, as plain JSON data; None: nothing."""
        return self._decoded(Any, self.raw_output, "output")

    def output_as(self, cls: type[T]) -> T:
        """What the worker returned, as this type.

        Raises:
            PayloadError: it does not fit the type.
        """
        return cast("T", self._decoded(cls, self.raw_output, "output"))

    @property
    def checkpoint(self) -> Any:
        """The last checkpoint, as plain JSON data; None: there is none."""
        return self._decoded(Any, self.raw_checkpoint, "checkpoint")

    def _decoded(self, cls: Any, text: bytes | None, what: str) -> Any:
        return decode_value(cls, text or b"null", what=what, kind=self.kind, job_id=self.id)

    def __repr__(self) -> str:
        # Without the args, which may be secret and long.
        return f"<JobInfo {self.kind} {self.id} {self.state} attempt {self.attempt}>"


class JobPage(msgspec.Struct, frozen=True):
    """One page of ``list``.

    Attributes:
        jobs: newest first.
        cursor: give it to ``list`` with the same filter for the next page; None: this is the last.
    """

    jobs: Sequence[JobInfo]
    cursor: str | None = None

    def __iter__(self) -> Iterator[JobInfo]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)


class QueueInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as it was when it was read.

    Attributes:
        name: the queue.
        paused: nothing of it is claimed.
        available: how many jobs are due and wait.
        scheduled: how many are due later.
        retryable: how many are due later, after a failure.
        running: how many are being worked.
        oldest_due: when the job that has been due longest became due; None: none is.
        oldest_due_seconds: for how many seconds it has been due, by the backend's clock; None:
            none is.
        exact: False: counting stopped at a cap, the numbers are lower bounds, and an older job
            may be due.
    """

    name: str
    paused: bool
    available: int
    scheduled: int
    retryable: int
    running: int
    oldest_due: datetime | None
    oldest_due_seconds: float | None
    exact: bool


def _after(prefix: str, group: str) -> str | None:
    return group.removeprefix(prefix) if group.startswith(prefix) else None


def info_of(row: JobRow) -> JobInfo:
    """The user's view of a row."""
    group = row.group or ""
    pipeline_id = _after(pipeline_group(""), group)
    concurrency_key = _after(concurrency_group(""), group)
    return JobInfo(
        id=row.id,
        kind=row.kind,
        queue=row.queue,
        state=row.state,
        priority=row.priority,
        run_at=row.run_at,
        attempt=row.attempt,
        max_attempts=row.max_attempts,
        timeout=math.inf if row.timeout == NO_TIMEOUT else row.timeout,
        tags=row.tags,
        meta=row.meta,
        pipeline_id=pipeline_id,
        concurrency_key=concurrency_key,
        concurrency_limit=None if row.group is None else row.group_limit,
        payload_version=row.payload_version,
        content=row.content,
        raw_args=row.args,
        raw_output=row.output,
        raw_checkpoint=row.checkpoint,
        unique_key=row.unique_key,
        cancel_requested=row.cancel_requested,
        worker_id=row.worker_id,
        created_at=row.created_at,
        claimed_at=row.claimed_at,
        finished_at=row.finished_at,
        errors=row.errors,
    )


def queue_info_of(stats: QueueStats, *, paused: bool, now: datetime) -> QueueInfo:
    """The user's view of a queue's numbers."""
    due = stats.oldest_due
    return QueueInfo(
        **msgspec.structs.asdict(stats),
        paused=paused,
        oldest_due_seconds=None if due is None else max(0.0, (now - due).total_seconds()),
    )


def job_failed(row: JobRow) -> JobFailedError:
    """What ``wait`` raises for a job that was discarded or cancelled."""
    last = f": {row.errors[-1].type}: {row.errors[-1].message}" if row.errors else ""
    return JobFailedError(
        f"job {row.id} ({row.kind}) was {row.state} after attempt {row.attempt}{last}",
        info_of(row),
    )
