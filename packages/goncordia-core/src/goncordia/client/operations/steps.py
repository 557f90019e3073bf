"""Operations without I/O, so that none is written twice.

An operation is a generator. It yields what it needs, a call of the driver or a pause, and gets the
answer, or the error raised where it yielded. One small runner drives it for ``Client``, another
for ``SyncClient``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import msgspec

from goncordia.clock import Clock
from goncordia.driver import BaseExecutor, Capabilities, SyncExecutor, SyncTxExecutor, TxExecutor
from goncordia.errors import DriverError, DriverUnavailableError, TransactionAbortedError

__all__ = [
    "Backend",
    "Call",
    "Executor",
    "Op",
    "Pause",
    "Replay",
    "TxOperations",
    "name_of",
    "run",
    "run_sync",
]

Executor: TypeAlias = BaseExecutor | SyncExecutor
"""Either kind of a driver's own operations: the same methods, awaited or not."""

Call: TypeAlias = Callable[[Executor], Any]
"""One call of the driver."""

TxOperations: TypeAlias = TxExecutor | SyncTxExecutor
"""Either kind of the operations of the caller's transaction."""


class Backend(Protocol):
    """What operations ask of a driver itself."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        ...

    @property
    def clock(self) -> Clock:
        """Its time."""
        ...


def name_of(driver: Backend) -> str:
    """The driver's name, for errors."""
    return str(getattr(driver, "name", type(driver).__name__))


class Pause(msgspec.Struct, frozen=True, gc=False):
    """Wait so many seconds."""

    seconds: float


R = TypeVar("R")
E = TypeVar("E")
Op: TypeAlias = Generator[Callable[[E], Any] | Pause, Any, R]
"""An operation on an executor ``E`` that returns ``R``."""

_FIRST_DELAY: Final = 0.05
_LONGEST_DELAY: Final = 2.0
_LONGEST_RETRY_AFTER: Final = 10.0
_PATIENCE: Final = 2.0
"""Seconds after the first call in which one that cannot have done anything is repeated.

A server that restarts is back in that time. A driver that has waited longer by itself was patient.
"""


class Replay:
    """Repeats a call whose outcome is unknown, or where the backend is away or asks to repeat.

    The contract makes that safe: the answer to the repeated request says what the first one did.
    What was unknown once stays so until there is an answer: that the last repetition came to
    nothing says nothing of the first. Calls inside a transaction never come here.

    Args:
        times: how often a call is repeated at most, before its error is raised.
        clock: the driver's.
        rng: the source of the jitter.
    """

    def __init__(self, times: int, clock: Clock, rng: random.Random) -> None:
        self._times = times
        self._clock = clock
        self._rng = rng

    def __call__(self, call: Callable[[E], Any]) -> Op[E, Any]:
        """The call's answer."""
        return (yield from self.doubted(call))[0]

    def doubted(self, call: Callable[[E], Any]) -> Op[E, tuple[Any, bool]]:
        """The call's answer, and whether an earlier request may have done it already."""
        repeated = 0
        unknown = False
        until = self._clock.monotonic() + _PATIENCE
        while True:
            try:
                return (yield call), unknown
            except DriverError as error:
                unknown = unknown or error.outcome == "unknown"
                if unknown:
                    error.outcome = "unknown"
                delay = self._delay(error, repeated, until)
                if delay is None:
                    raise
            yield Pause(delay)
            repeated += 1

    def _delay(self, error: DriverError, repeated: int, until: float) -> float | None:
        asked = error.retry_after
        if isinstance(error, TransactionAbortedError) or repeated >= self._times:
            return None
        if asked is None and error.outcome != "unknown":
            away = isinstance(error, DriverUnavailableError)
            if not away or self._clock.monotonic() >= until:
                return None
        if asked is not None and asked > _LONGEST_RETRY_AFTER:
            return None
        longest = min(_LONGEST_DELAY, _FIRST_DELAY * 2**repeated)
        return (asked or 0.0) + self._rng.uniform(0.0, longest)


async def run(op: Op[E, R], executor: E, clock: Clock) -> R:
    """Drive an operation on an asynchronous executor."""
    try:
        step = next(op)
        while True:
            try:
                answer = None
                if isinstance(step, Pause):
                    await clock.sleep(step.seconds)
                else:
                    answer = await step(executor)
            except Exception as error:  # noqa: BLE001 - it is the operation's to judge
                step = op.throw(error)
            else:
                step = op.send(answer)
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        op.close()


def run_sync(op: Op[E, R], executor: E, sleep: Callable[[float], object]) -> R:
    """Drive an operation on a synchronous executor."""
    try:
        step = next(op)
        while True:
            try:
                answer = sleep(step.seconds) if isinstance(step, Pause) else step(executor)
            except Exception as error:  # noqa: BLE001 - it is the operation's to judge
                step = op.throw(error)
            else:
                step = op.send(answer)
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        op.close()
