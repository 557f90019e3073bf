"""What cancel, retry, reschedule and delete did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias
from uuid import UUID

import msgspec

from goncordia.client.operations.waiting import not_found
from goncordia.driver import (
    FINISHED_STATES,
    ChangeAction,
    Changed,
    ChangeStatus,
    JobState,
)
from goncordia.errors import ConflictError

__all__ = [
    "DEFAULT_STATES",
    "ChangeResult",
    "ChangeSummary",
    "Progress",
    "result_of",
    "single",
    "summed",
]

_States: TypeAlias = frozenset[JobState]

_WAITING: Final[_States] = frozenset({JobState.AVAILABLE, JobState.SCHEDULED, JobState.RETRYABLE})

DEFAULT_STATES: Final[dict[ChangeAction, _States]] = {
    "cancel": _WAITING | {JobState.RUNNING},
    "retry": frozenset({JobState.RETRYABLE, JobState.DISCARDED}),
    "reschedule": _WAITING,
    "delete": _WAITING | FINISHED_STATES,
}
"""Which jobs a change by filter looks at when the filter names no state."""


class ChangeResult(msgspec.Struct, frozen=True):
    """What became of one job.

    Attributes:
        id: the job.
        status: ``CHANGED``; ``REQUESTED``: it runs, and its worker is asked to stop; ``ALREADY``:
            it was so before; ``CONFLICT``: its state or its unique key does not allow it;
            ``GONE``: there is no such job.
        state: its state afterwards, where that is known.
        holder: for ``CONFLICT``, the job that holds its unique key, if that is why.
    """

    id: UUID
    status: ChangeStatus
    state: JobState | None = None
    holder: UUID | None = None

    @property
    def ok(self) -> bool:
        """Whether the job is now as was asked, or will be when its worker hears of it."""
        return self.status in {"CHANGED", "REQUESTED", "ALREADY"}


class ChangeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the jobs that matched a filter, counted by :attr:`ChangeResult.status`."""

    changed: int = 0
    requested: int = 0
    already: int = 0
    conflict: int = 0
    gone: int = 0

    @property
    def total(self) -> int:
        """How many jobs matched."""
        return self.changed + self.requested + self.already + self.conflict + self.gone


Progress: TypeAlias = Callable[[ChangeSummary], object]
"""Is told what a change by filter has done so far."""


def result_of(
    job_id: UUID, action: ChangeAction, answer: Changed, *, doubted: bool
) -> ChangeResult:
    """The user's view of an answer.

    Args:
        job_id: the job.
        action: what was asked.
        answer: what the driver said.
        doubted: whether an earlier request, whose outcome is unknown, may have done it.
    """
    status = answer.status
    if action == "delete" and status == "GONE" and doubted:
        status = "CHANGED"  # by the first request, as far as anyone can tell
    return ChangeResult(job_id, status, answer.state, answer.holder)


def single(action: ChangeAction, result: ChangeResult) -> ChangeResult:
    """The result for one job, where a refusal is an error.

    Raises:
        NotFoundError: there is no such job.
        ConflictError: its state or its unique key does not allow the change.
    """
    if result.status == "GONE":
        raise not_found(result.id)
    if result.status == "CONFLICT":
        raise ConflictError(f"{action}: {_reason(result)}", holder=result.holder)
    return result


def _reason(result: ChangeResult) -> str:
    if result.holder is not None:
        return f"the unique key of job {result.id} is held by job {result.holder}"
    state = result.state or "in a state that does not allow it"
    return f"job {result.id} is {state}"


def summed(counts: dict[ChangeStatus, int]) -> ChangeSummary:
    """The summary of the counts."""
    return ChangeSummary(
        changed=counts.get("CHANGED", 0),
        requested=counts.get("REQUESTED", 0),
        already=counts.get("ALREADY", 0),
        conflict=counts.get("CONFLICT", 0),
        gone=counts.get("GONE", 0),
    )
