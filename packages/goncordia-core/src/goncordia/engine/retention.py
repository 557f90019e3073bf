"""Retention: finished jobs are deleted when they are old enough, by one pool of many."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from goncordia._check import Duration, seconds
from goncordia._words import counted
from goncordia.clock import Clock
from goncordia.driver import BaseExecutor, PruneRequest
from goncordia.engine.calls import Calls
from goncordia.engine.leadership import Leadership
from goncordia.engine.logs import Failures

__all__ = ["DEFAULT_RETENTION", "Pruner", "Retention"]

_logger = logging.getLogger("goncordia.engine")

_STEP: Final = 1000
"""Jobs that one request deletes, at most."""

_INTERVALS: Final = 3
"""Times that a leader may miss before another prunes."""

_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long finished jobs are kept.

    Durations are seconds or ``timedelta``; None: for ever. A job that still holds a unique key is
    kept until it holds it no longer.

    Attributes:
        completed: how long completed jobs are kept.
        cancelled: the same for cancelled ones.
        discarded: the same for discarded ones.
        interval: seconds between two looks for old jobs.

    Raises:
        ConfigurationError: a value is no positive duration.
    """

    completed: Duration | None = _DAY
    cancelled: Duration | None = _DAY
    discarded: Duration | None = 14 * _DAY
    interval: Duration = 60.0

    def __post_init__(self) -> None:
        for name in ("completed", "cancelled", "discarded"):
            if (kept := getattr(self, name)) is not None:
                seconds(f"retention: {name}", kept)
        seconds("retention: interval", self.interval)

    def request(self, now: datetime, limit: int) -> PruneRequest:
        """What to delete at this time."""
        return PruneRequest(
            completed=_before(now, self.completed),
            cancelled=_before(now, self.cancelled),
            discarded=_before(now, self.discarded),
            limit=limit,
        )


DEFAULT_RETENTION: Final = Retention()
"""What a pool keeps to that is told nothing else."""


def _before(now: datetime, kept: Duration | None) -> datetime | None:
    return None if kept is None else now - timedelta(seconds=seconds("retention", kept))


class Pruner:
    """Deletes old jobs in bounded steps, while it leads.

    Args:
        executor: the driver's.
        calls: how to call it.
        clock: the pool's.
        rng: for jitter between pools.
        retention: how long jobs are kept.
    """

    def __init__(
        self,
        executor: BaseExecutor,
        calls: Calls,
        clock: Clock,
        rng: random.Random,
        retention: Retention,
    ) -> None:
        self._executor = executor
        self._calls = calls
        self._clock = clock
        self._rng = rng
        self._retention = retention
        self._interval = seconds("retention: interval", retention.interval)
        self._leadership = Leadership(
            executor, calls, clock, "prune", lease=_INTERVALS * self._interval
        )
        self._step = min(_STEP, executor.capabilities.max_batch)
        self._leads = False

    async def run(self) -> None:
        """Look for ever."""
        failures = Failures("pruning")
        while True:
            await self._clock.sleep(self._interval * self._rng.uniform(0.75, 1.25))
            try:
                self._leads = await self._leadership.lead()
                if self._leads:
                    await self._prune()
            except Exception as error:  # noqa: BLE001  # the next look will do
                failures.failed(error)
            else:
                failures.succeeded()

    async def resign(self) -> None:
        """Leave the rest to another pool, as a courtesy."""
        if not self._leads:
            return
        self._leads = False
        try:
            await self._leadership.resign()
        except Exception as error:  # noqa: BLE001  # its lease will end it
            _logger.debug("resigning failed: %s: %s", type(error).__name__, error)

    async def _prune(self) -> None:
        """Delete what is old now; as much rest as work, so that others come in between."""
        request = self._retention.request(await self._calls.once(self._executor.now()), self._step)
        began, deleted = self._clock.monotonic(), 0
        while True:
            sent = self._clock.monotonic()
            step = await self._calls.once(self._executor.prune(request))
            deleted += step
            now = self._clock.monotonic()
            # The next look goes on, and tells the others first that this pool still leads.
            if step < self._step or now - began >= self._interval:
                break
            await self._clock.sleep(now - sent)
        if deleted:
            _logger.info("deleted %s", counted(deleted, "old job"))
