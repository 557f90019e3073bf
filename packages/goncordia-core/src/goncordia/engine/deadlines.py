"""One table and one ticker for all runs; a timer for each would cost forty times more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from goncordia.clock import Clock
from goncordia.engine.claims import Claims
from goncordia.engine.run import Run
from goncordia.engine.signal import Signal

__all__ = ["TICK", "Deadlines"]

TICK: Final = 0.05
"""Seconds by which a timeout may be late."""


class Deadlines:
    """Tells of the runs whose deadline has come.

    Args:
        claims: whose running ones are watched.
        clock: the pool's.
        due: called with each run that is due, after its deadline was cleared.
    """

    def __init__(self, claims: Claims, clock: Clock, due: Callable[[Run], None]) -> None:
        self._claims = claims
        self._clock = clock
        self._due = due
        self._earlier = Signal(clock)
        self._next = float("inf")

    def watch(self, run: Run, deadline: float) -> None:
        """Set a run's deadline."""
        run.deadline = deadline
        if deadline < self._next:
            self._next = deadline
            self._earlier.set()

    async def run(self) -> None:
        """Tick for ever; asleep while nothing has a deadline."""
        while True:
            if self._next == float("inf"):
                await self._earlier.wait()
            while (left := self._next - self._clock.monotonic()) > 0:
                await self._earlier.wait(max(left, TICK))
            self._tick()

    def _tick(self) -> None:
        now = self._clock.monotonic()
        self._next = float("inf")
        upcoming = float("inf")
        for run in list(self._claims.running):
            if run.deadline is None:
                continue
            if run.deadline <= now:
                run.deadline = None
                self._due(run)
            else:
                upcoming = min(upcoming, run.deadline)
        self._next = min(self._next, upcoming)
