"""Rescue: taking back the jobs of sessions that ended without them."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from typing import Final

from goncordia.clock import Clock
from goncordia.driver import BaseExecutor
from goncordia.engine.calls import Calls
from goncordia.engine.events import JobRescued, Observers
from goncordia.engine.logs import Failures
from goncordia.engine.outcome import Outcomes
from goncordia.engine.session import Session
from goncordia.engine.workers import Worker
from goncordia.logs import fields_of

__all__ = ["Rescuer"]

_logger = logging.getLogger("goncordia.engine")

_MOST: Final = 100


class Rescuer:
    """Ends sessions whose lease is over, and finishes their jobs as failed.

    It repeats nothing: what was not answered is given again by the next ``expire``.

    Args:
        executor: the driver's.
        calls: how to call it.
        session: in whose name it asks.
        outcomes: decides what becomes of the jobs.
        workers: for their retry policies.
        clock: the pool's.
        rng: for jitter between pools.
        interval: seconds between looks.
        observe: told of each job.
    """

    def __init__(
        self,
        executor: BaseExecutor,
        calls: Calls,
        session: Session,
        outcomes: Outcomes,
        workers: Mapping[str, Worker],
        clock: Clock,
        rng: random.Random,
        *,
        interval: float,
        observe: Observers,
    ) -> None:
        self._executor = executor
        self._calls = calls
        self._session = session
        self._outcomes = outcomes
        self._workers = workers
        self._clock = clock
        self._rng = rng
        self._interval = interval
        self._observe = observe
        self._batch = min(_MOST, executor.capabilities.max_batch)

    async def run(self) -> None:
        """Look for ever."""
        failures = Failures("looking for the jobs of dead pools")
        while True:
            await self._clock.sleep(self._interval * self._rng.uniform(0.75, 1.25))
            try:
                while await self.rescue() == self._batch:
                    pass
            except Exception as error:  # noqa: BLE001  # the next look will do
                failures.failed(error)
            else:
                failures.succeeded()

    async def rescue(self) -> int:
        """One look; how many jobs were taken back."""
        if not self._session.is_open:
            return 0
        rows = await self._calls.once(self._executor.expire(self._session.id, self._batch))
        if not rows:
            return 0
        finishes = [self._outcomes.rescued(row, self._workers.get(row.kind)) for row in rows]
        outcomes = await self._calls.once(self._executor.finish_many(finishes))
        done = 0
        for row, finish, outcome in zip(rows, finishes, outcomes, strict=True):
            if outcome.status != "DONE":
                continue
            done += 1
            _logger.log(
                logging.ERROR if finish.to == "discard" else logging.WARNING,
                "job %s (%s), attempt %d, was taken back from %s: %s",
                row.id,
                row.kind,
                row.attempt,
                row.worker_id,
                finish.to,
                extra=fields_of(row),
            )
            self._observe(JobRescued(row, finish.to))
        return done
