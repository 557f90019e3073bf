"""One run of a job: a claim that this pool holds, from its fetch to the answer to its finish."""

from __future__ import annotations

import asyncio
from enum import IntEnum
from math import inf
from typing import Any

import msgspec

from goncordia.driver import Claim, Finish, JobRow
from goncordia.engine.workers import Worker

__all__ = ["Cause", "Run", "RunState"]


class RunState(IntEnum):
    """Where a claim is on its way through the pool."""

    FETCHED = 1
    RUNNING = 2
    FINISHED = 3
    SENDING = 4
    GONE = 5


class Cause(IntEnum):
    """Why a run was interrupted; the higher one wins."""

    SHUTDOWN = 1
    TIMEOUT = 2
    LAPSED = 3
    CANCELLED = 4
    LOST = 5


class Run(msgspec.Struct, eq=False):
    """A claim and what became of it; equal only to itself.

    Attributes:
        row: the job as it was fetched.
        claim: its claim.
        worker: what runs it; None for a claim that is only given back.
        state: where it is.
        cause: why it was interrupted, if it was.
        begun: its task has taken its first step.
        timeout: seconds; None: none.
        deadline: when to look at it next, on the monotonic clock; None: never.
        overdue: it was interrupted and reported as going on.
        tx_completed: it was finished inside a transaction of the worker's.
        refused: the backend refused to store its result once.
        repeated: its result was sent before, and that was not answered.
        busy: so often in a row it was answered that somebody holds the job.
        reason: why it goes back without having been run, where that is worth saying.
        tokens: what it took of rate limits, with what giving back asks for.
        slots: what it holds of limits by key.
        checkpoint: to be stored again with the finish; None: what is stored is the last one.
        started_at: on the monotonic clock.
        seconds: how long the handler ran; infinite: it did not end, or never started.
        task: runs the handler.
        job: what the handler sees, a ``Job`` of any args.
        finish: what is to be sent.
    """

    row: JobRow
    claim: Claim
    worker: Worker | None
    state: RunState = RunState.FETCHED
    cause: Cause | None = None
    begun: bool = False
    timeout: float | None = None
    deadline: float | None = None
    overdue: bool = False
    tx_completed: bool = False
    refused: bool = False
    repeated: bool = False
    busy: int = 0
    reason: str | None = None
    tokens: list[tuple[Any, float]] | None = None
    slots: tuple[tuple[Any, str], ...] = ()
    checkpoint: bytes | None = None
    started_at: float = 0.0
    seconds: float = inf
    task: asyncio.Task[None] | None = None
    job: Any = None
    finish: Finish | None = None
