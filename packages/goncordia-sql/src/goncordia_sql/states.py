"""The states as they are stored, and what is reported of them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from goncordia.driver import ChangeAction, FinishTo, JobState

__all__ = ["ENDS", "FINISHED", "REPORTED", "WAITING", "Hold", "Stored", "reported"]


class Stored(IntEnum):
    """A job's stored state. The numbers are in the tables: never change one."""

    LATER = 0
    """Waits, and was not due when it was last looked at."""
    READY = 1
    """Waits and is due: a fetch sees exactly these."""
    PARKED = 2
    """Waits and is due, but its group was full when a fetch met it."""
    RUNNING = 3
    COMPLETED = 4
    DISCARDED = 5
    CANCELLED = 6


class Hold(IntEnum):
    """How long a unique key is held, as it is stored."""

    ACTIVE = 0
    UNTIL_DELETED = 1
    UNTIL_TIME = 2


WAITING: Final = (Stored.LATER, Stored.READY, Stored.PARKED)
FINISHED: Final = (Stored.COMPLETED, Stored.DISCARDED, Stored.CANCELLED)

ENDS: Final[dict[FinishTo | ChangeAction, Stored]] = {
    "complete": Stored.COMPLETED,
    "discard": Stored.DISCARDED,
    "cancel": Stored.CANCELLED,
}
"""The finished state that a request asks for."""

REPORTED: Final[dict[int, JobState]] = {
    Stored.RUNNING: JobState.RUNNING,
    Stored.COMPLETED: JobState.COMPLETED,
    Stored.DISCARDED: JobState.DISCARDED,
    Stored.CANCELLED: JobState.CANCELLED,
}
"""The states that need no look at the time."""


def reported(stored: int, run_at: Any, failed: Any, now: Any) -> JobState:
    """The state to report: a waiting job's is derived from the time."""
    state = REPORTED.get(stored)
    if state is not None:
        return state
    if run_at <= now:
        return JobState.AVAILABLE
    return JobState.RETRYABLE if failed else JobState.SCHEDULED
