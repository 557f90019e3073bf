"""Looking at how many jobs wait before more are enqueued; shared by both clients."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from goncordia._check import seconds
from goncordia.admission import Admission
from goncordia.client.operations.steps import Backend, Executor, Op, Pause, name_of
from goncordia.driver import JobState, ListFilter, NewJob
from goncordia.driver.defaults.listing import CAP
from goncordia.errors import AdmissionRejectedError, UnsupportedError

__all__ = ["Admitting"]

_AGE: Final = 1.0
"""Seconds for which a look counts."""

_PAUSE: Final = 0.5
"""Seconds between two looks of who waits for room, more or less."""

_MOMENT: Final = 0.002
"""Seconds after which those who wait for another's look see whether it is done."""

_WAITING: Final = frozenset({JobState.AVAILABLE, JobState.SCHEDULED, JobState.RETRYABLE})


class _Sample(msgspec.Struct):
    """What was seen of a queue, and what this client has let through since.

    Attributes:
        depth: how many jobs wait.
        at: when they were counted; None: nobody has counted yet.
        looking: somebody counts now.
        added: let through since the last count was begun.
    """

    depth: int = 0
    at: float | None = None
    looking: bool = False
    added: int = 0


class Admitting:
    """Lets jobs through while their queues have room.

    Args:
        admission: the bounds.
        driver: the backend.
        own: the driver's own operations, also for enqueues inside a transaction.
        rng: for jitter.

    Raises:
        UnsupportedError: the backend does not count as far as a bound.

    Attributes:
        largest_chunk: of a stream of jobs, so that there can be room for it.
    """

    def __init__(
        self,
        admission: Admission,
        driver: Backend,
        own: Callable[[], Executor],
        rng: random.Random,
    ) -> None:
        if max(admission.bounds) > CAP and not driver.capabilities.exact_counts:
            raise UnsupportedError(
                name_of(driver), "exact_counts", f"a max_depth of more than {CAP} needs them"
            )
        self._admission = admission
        self._driver = driver
        self._own = own
        self._rng = rng
        self._samples: dict[str, _Sample] = {}
        self._lock = threading.Lock()  # threads may share a client
        self.largest_chunk = min(admission.bounds)

    def admit(self, jobs: Sequence[NewJob], *, tx: bool) -> Op[Any, None]:
        """Let the jobs through, or wait until they may.

        Raises:
            AdmissionRejectedError: a queue is full.
        """
        clock, wait = self._driver.clock, self._admission.wait
        until = None if wait is None else clock.monotonic() + seconds("wait", wait, zero=True)
        for queue, number in Counter(job.queue for job in jobs).items():
            bound = self._admission.bound(queue)
            if bound is None:
                continue
            sample, age = self._samples.setdefault(queue, _Sample()), _AGE
            while True:
                yield from self._look(queue, sample, age)
                if self._takes(sample, number, bound):
                    break
                left = None if until is None else until - clock.monotonic()
                if tx or number > bound or (left is not None and left <= 0):
                    raise _rejected(queue, number, sample.depth, bound)
                pause = _PAUSE * self._rng.uniform(0.5, 1.5)
                yield Pause(pause if left is None else min(pause, left))
                age = _PAUSE / 2

    def _look(self, queue: str, sample: _Sample, age: float) -> Op[Any, None]:
        """Count what waits, if that was not done for so long; one at a time."""
        while True:
            now = self._driver.clock.monotonic()
            with self._lock:
                if sample.at is not None and now - sample.at < age:
                    return
                is_mine = not sample.looking
                if is_mine:
                    sample.looking, sample.added = True, 0
            if is_mine:
                break
            yield Pause(_MOMENT)
        where = ListFilter(states=_WAITING, queues=frozenset({queue}))
        try:
            depth: int = yield lambda _: self._own().count(where)
            with self._lock:
                sample.at, sample.depth = now, depth + sample.added
        finally:
            sample.looking = False

    def _takes(self, sample: _Sample, number: int, bound: int) -> bool:
        """Let so many jobs through, if there is room for them."""
        with self._lock:
            if sample.depth + number > bound:
                return False
            sample.depth += number
            sample.added += number
            return True


def _rejected(queue: str, number: int, depth: int, bound: int) -> AdmissionRejectedError:
    more = "one more" if number == 1 else f"{number} more"
    return AdmissionRejectedError(
        f"queue {queue!r} has {depth} waiting jobs; with {more} it would exceed max_depth, {bound}",
        queue=queue,
        depth=depth,
        max_depth=bound,
    )
