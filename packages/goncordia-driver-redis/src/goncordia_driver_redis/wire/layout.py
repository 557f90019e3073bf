"""The numbers that stand in a job's string, in requests and in answers, for Python and Lua alike.

The loader of the scripts puts the numbers in for the names: in a script that runs for some
microseconds, a name that functions share costs as much as a command.
"""

from __future__ import annotations

from typing import Final

__all__ = ["NUMBERS"]

NUMBERS: Final = {
    # flags of a job
    "FULL": 1,
    "GROUPED": 2,
    "UNIQUE": 4,
    "RUN_AT": 8,
    "LIMITED": 16,
    "AFTER": 32,
    "TAIL": 64,
    # states, as stored
    "WAITING": 0,
    "RUNNING": 1,
    "COMPLETED": 2,
    "DISCARDED": 3,
    "CANCELLED": 4,
    # marks of a job: of its last claim, and what is kept beside it
    "FAILED": 1,
    "STARTED": 2,
    "CANCEL_ASKED": 4,
    "HAS_ERRORS": 8,
    "HAS_EXTRAS": 16,
    # ends of a claim
    "COMPLETE": 0,
    "RETRY": 1,
    "SNOOZE": 2,
    "RELEASE": 3,
    "DISCARD": 4,
    "CANCEL": 5,
    # when, of a finish or a change; and what else a finish brings
    "NOW": 0,
    "IN": 1,
    "AT": 2,
    "RESCUE": 4,
    "ERROR": 8,
    "OUTPUT": 16,
    "CHECKPOINT": 32,
    # what became of a finish or a mark
    "DONE": 0,
    "ALREADY": 1,
    "STALE": 2,
    "GONE": 3,
    # what became of a change
    "CHANGED": 0,
    "REQUESTED": 1,
    "SO_BEFORE": 2,
    "CONFLICT": 3,
    "NO_JOB": 4,
    # bytes of jobs in one answer: when read, and when claimed
    "READ_SIZE": 4 << 20,
    "ANSWER_SIZE": 16 << 20,
    # bytes of a chunk of the index, beyond which it is cut
    "CHUNK_SIZE": 8192,
    # how many jobs a fetch claims at most
    "MAX_FETCH": 1000,
    # with how many lines of due jobs a fetch begins to go by priority
    "FEW_LINES": 16,
    # the calendar, without its first and its last day, in microseconds
    "FIRST_TIME": -62135510400000000,
    "LAST_TIME": 253402214399999999,
}
