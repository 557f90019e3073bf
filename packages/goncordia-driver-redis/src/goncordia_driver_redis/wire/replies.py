"""What scripts answer, as the contract's results."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, Final
from uuid import UUID

from goncordia.driver import (
    Changed,
    ChangeStatus,
    FetchResult,
    InsertResult,
    JobRow,
    JobState,
    NewJob,
    Outcome,
    OutcomeStatus,
)
from goncordia_driver_redis.wire.jobs import JobReader

__all__ = ["read_changes", "read_fetch", "read_inserts", "read_jobs", "read_outcomes", "read_pairs"]

_STATES: Final = (
    None,
    JobState.AVAILABLE,
    JobState.SCHEDULED,
    JobState.RETRYABLE,
    JobState.RUNNING,
    JobState.COMPLETED,
    JobState.DISCARDED,
    JobState.CANCELLED,
)
_STATUSES: Final[tuple[OutcomeStatus, ...]] = ("DONE", "ALREADY", "STALE", "GONE")
_CHANGES: Final[tuple[ChangeStatus, ...]] = (
    "CHANGED", "REQUESTED", "ALREADY", "CONFLICT", "GONE",
)  # fmt: skip
_OUTCOMES: Final = {
    16 * number + place: Outcome(status, state)
    for number, status in enumerate(_STATUSES)
    for place, state in enumerate(_STATES)
}


def read_inserts(jobs: Sequence[NewJob], answer: Any) -> list[InsertResult]:
    """What became of each job."""
    if answer == 0:
        return [InsertResult(job.id, "INSERTED") for job in jobs]
    return [
        InsertResult(job.id, "INSERTED")
        if each == 0
        else InsertResult(job.id, "REPLAYED")
        if each == 1
        else InsertResult(job.id, "DUPLICATE", UUID(bytes=each))
        for job, each in zip(jobs, answer, strict=True)
    ]


def read_outcomes(answer: Sequence[int]) -> list[Outcome]:
    """What became of each finish or mark."""
    return [_OUTCOMES[each] for each in answer]


def read_changes(answer: Sequence[Sequence[Any]]) -> list[Changed]:
    """What became of each change."""
    return [_read_change(*each) for each in answer]


def _read_change(number: int, holder: bytes | None = None) -> Changed:
    status, state = _CHANGES[number >> 4], _STATES[number & 15]
    return Changed(status, state, None if holder is None else UUID(bytes=holder))


def read_jobs(
    now: float, ids: Sequence[UUID], raws: Sequence[bytes | None], extras: Sequence[Any]
) -> list[JobRow | None]:
    """The jobs of these strings."""
    read = JobReader(now).read
    beside = _beside(extras)
    return [
        None if raw is None else read(job_id, raw, *beside.get(place, ()))
        for place, (job_id, raw) in enumerate(zip(ids, raws, strict=True))
    ]


def read_pairs(now: float, pairs: Sequence[bytes], extras: Sequence[Any]) -> list[JobRow]:
    """The jobs of ids and strings in turn."""
    read = JobReader(now).read
    beside = _beside(extras)
    ids, raws = pairs[::2], pairs[1::2]
    if not beside:
        return [read(UUID(bytes=i), raw) for i, raw in zip(ids, raws, strict=True)]
    return [
        read(UUID(bytes=job_id), raw, *beside.get(place, ()))
        for place, (job_id, raw) in enumerate(zip(ids, raws, strict=True))
    ]


def read_fetch(answer: Sequence[Any]) -> FetchResult:
    """What a fetch claimed."""
    lost, due, paused, pairs, extras = answer
    if lost:
        return FetchResult(jobs=[], lost=True)
    return FetchResult(
        # Claimed jobs run, whatever the time is.
        read_pairs(0.0, pairs, extras),
        due == 0,
        None if due == -2 else inf if due == -1 else due / 1_000_000,
        tuple([name.decode() for name in paused]),
    )


def _beside(extras: Sequence[Any]) -> dict[int, tuple[Any, Any, Any]]:
    return {place: (errors, checkpoint, output) for place, errors, checkpoint, output in extras}
