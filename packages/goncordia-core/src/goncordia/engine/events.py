"""What an observer is told. Logging, metrics and tracing are built on these.

An observer is a plain function of one event. It is called on the event loop, must not block, and
what it raises is logged and goes no further.
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from typing import TypeAlias
from uuid import UUID

import msgspec

from goncordia.driver import FinishTo, JobRow, JobState

__all__ = [
    "Event",
    "JobFinished",
    "JobGivenBack",
    "JobOverdue",
    "JobRescued",
    "JobStarted",
    "LoopBlocked",
    "Observer",
    "Observers",
    "ResultLost",
    "SessionLost",
    "SessionOpened",
]

_logger = logging.getLogger("goncordia.engine")


class JobStarted(msgspec.Struct, frozen=True):
    """A handler is about to be called.

    Attributes:
        row: the job.
    """

    row: JobRow


class JobFinished(msgspec.Struct, frozen=True):
    """A handler is over, and its result is about to be sent, or was by the handler itself.

    Attributes:
        row: the job.
        to: what the pool asks for; None: nothing, since the claim was lost.
        seconds: how long the handler ran.
        error: what it raised, if that made it fail.
    """

    row: JobRow
    to: FinishTo | None
    seconds: float
    error: BaseException | None = None


class JobGivenBack(msgspec.Struct, frozen=True):
    """A claimed job goes back without having been run.

    Attributes:
        row: the job.
        reason: such as ``"unknown kind"``.
    """

    row: JobRow
    reason: str


class JobOverdue(msgspec.Struct, frozen=True):
    """A handler that was interrupted goes on. A thread cannot be ended; it keeps its slot.

    Attributes:
        row: the job.
        cause: ``timeout``, ``cancelled``, ``shutdown`` or ``lost``.
    """

    row: JobRow
    cause: str


class JobRescued(msgspec.Struct, frozen=True):
    """This pool took back a job of a session that ended without it.

    Attributes:
        row: the job, still with the dead claim.
        to: what becomes of it.
    """

    row: JobRow
    to: FinishTo


class ResultLost(msgspec.Struct, frozen=True):
    """What a handler came to was not stored: the claim had been taken back before it was sent.

    The job goes on as whoever took it back decided, so it may run again, or be discarded. A failure
    or a snooze may also be lost unseen: the job waits then, as after a rescuer's retry.

    Attributes:
        row: the job, as it was claimed.
        to: what the pool asked for.
        state: the job's state now; None: it is not there any more.
        certain: False: the result was sent before without an answer, so it may have been stored
            then, and the job have gone on from there.
    """

    row: JobRow
    to: FinishTo
    state: JobState | None
    certain: bool


class SessionOpened(msgspec.Struct, frozen=True):
    """The pool may claim jobs.

    Attributes:
        session: the new session.
    """

    session: UUID


class SessionLost(msgspec.Struct, frozen=True):
    """Others took the pool for dead; its runs were interrupted.

    Attributes:
        session: the session that is lost.
        runs: how many handlers were interrupted.
    """

    session: UUID
    runs: int


class LoopBlocked(msgspec.Struct, frozen=True):
    """Something keeps the event loop from turning.

    Attributes:
        seconds: how long already.
        job_id: the job whose handler does it, if it is one.
        kind: that job's kind.
        where: file, line and function.
    """

    seconds: float
    job_id: UUID | None
    kind: str | None
    where: str


Event: TypeAlias = (
    JobStarted
    | JobFinished
    | JobGivenBack
    | JobOverdue
    | JobRescued
    | ResultLost
    | SessionOpened
    | SessionLost
    | LoopBlocked
)
"""Any of the events."""

Observer: TypeAlias = Callable[[Event], object]
"""A function that is told of every event."""


class Observers:
    """All observers of a pool, as one."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def __bool__(self) -> bool:
        return bool(self._observers)

    def __call__(self, event: Event) -> None:
        """Tell everyone."""
        for observer in self._observers:
            try:
                observer(event)
            except (Exception, CancelledError):
                _logger.exception("an observer failed at %s", type(event).__name__)
