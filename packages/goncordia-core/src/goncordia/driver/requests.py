"""What the engine and the client ask of a driver."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

import msgspec

from goncordia.driver.values import AttemptError, Claim, JobState, When

__all__ = [
    "Change",
    "ChangeAction",
    "FetchRequest",
    "Finish",
    "FinishTo",
    "ListFilter",
    "Mark",
    "PruneRequest",
    "QueueFetch",
]

FinishTo: TypeAlias = Literal["complete", "retry", "snooze", "release", "discard", "cancel"]
ChangeAction: TypeAlias = Literal["cancel", "retry", "reschedule", "delete"]


class QueueFetch(msgspec.Struct, frozen=True):
    """One queue of a fetch.

    Attributes:
        name: the queue.
        limit: at most so many jobs of it.
        kinds: only these kinds, and at most so many of each; None: any. Sent only to drivers
            with the capability ``fetch_kinds``.
        skip_groups: leave jobs of these groups where they are.
    """

    name: str
    limit: int
    kinds: Mapping[str, int] | None = None
    skip_groups: frozenset[str] = frozenset()


class FetchRequest(msgspec.Struct, frozen=True):
    """Claim jobs that are due.

    Attributes:
        session: the session that will hold the claims.
        fetch_no: counted up by the session for every fetch; never repeated.
        limit: at most so many jobs in all.
        queues: in strict precedence: a queue is looked at when those before it gave all they had.
        worker_id: stored with the claim, as information.
    """

    session: UUID
    fetch_no: int
    limit: int
    queues: tuple[QueueFetch, ...]
    worker_id: str = ""


class Finish(msgspec.Struct, frozen=True, gc=False):
    """End a claim. It acts only on exactly this claim.

    Attributes:
        claim: the claim to end.
        to: ``complete``, ``discard`` and ``cancel`` end the job. ``retry`` keeps the attempt,
            ``snooze`` and ``release`` take it back. With a cancel requested, ``retry``,
            ``snooze`` and ``release`` end in ``cancelled``.
        when: when the job is due again; None: at once, and for ``release`` it keeps its
            ``run_at`` and with it its place in the order.
        error: appended to the row's errors.
        output: JSON, stored by ``complete``.
        checkpoint: JSON that replaces the stored one; None leaves it.
        rescue: sent by a rescuer and not by the claim's owner; a ``release`` then applies only
            while the claim is not marked started, else it is ``STALE``.
    """

    claim: Claim
    to: FinishTo
    when: When = None
    error: AttemptError | None = None
    output: bytes | None = None
    checkpoint: bytes | None = None
    rescue: bool = False


class Mark(msgspec.Struct, frozen=True, gc=False):
    """Note on a running claim, which goes on: that it has started, or its checkpoint.

    Attributes:
        claim: the claim.
        started: mark it as started. False leaves the mark as it is.
        checkpoint: JSON that replaces the stored one; None leaves it.
    """

    claim: Claim
    started: bool = False
    checkpoint: bytes | None = None


class Change(msgspec.Struct, frozen=True, gc=False):
    """An administrator's request about one job; see the table in the docs for each state.

    Attributes:
        id: the job.
        action: ``cancel``, ``retry``, ``reschedule`` or ``delete``.
        when: for ``reschedule``, and only there; None: now.
    """

    id: UUID
    action: ChangeAction
    when: When = None


class ListFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs to list; an empty field does not filter, fields combine by AND.

    Attributes:
        states: any of these states, as reported.
        kinds: any of these kinds.
        queues: any of these queues.
        tags: all of these tags.
        group: exactly this group.
        created_from: created at this time or later.
        created_until: created before this time.
    """

    states: frozenset[JobState] = frozenset()
    kinds: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    group: str | None = None
    created_from: datetime | None = None
    created_until: datetime | None = None


class PruneRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Delete jobs that ended before these times; None keeps that state for ever.

    Attributes:
        completed: delete completed jobs that ended before.
        discarded: the same for discarded ones.
        cancelled: the same for cancelled ones.
        limit: at most so many in one call.
    """

    completed: datetime | None = None
    discarded: datetime | None = None
    cancelled: datetime | None = None
    limit: int = 1000
