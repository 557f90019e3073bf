"""Giving back what waits too long: claims that were taken while handlers were quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from goncordia.clock import Clock
from goncordia.driver import Finish
from goncordia.engine.claims import Claims
from goncordia.engine.events import JobGivenBack, Observers
from goncordia.engine.signal import Signal

__all__ = ["Shedder"]

_PATIENCE: Final = 1.0
"""Seconds for which more claims may wait for a slot than the pool may have waiting."""


class Shedder:
    """Keeps a pool from hoarding when its handlers become slow.

    Args:
        claims: the pool's.
        allowance: how many may wait now.
        clock: the pool's.
        observe: told of what goes back.
    """

    def __init__(
        self, claims: Claims, allowance: Callable[[], int], clock: Clock, observe: Observers
    ) -> None:
        self._claims = claims
        self._allowance = allowance
        self._clock = clock
        self._observe = observe
        self._waiting = Signal(clock)

    def look(self) -> None:
        """Some claims have no slot yet."""
        self._waiting.set()

    async def run(self) -> None:
        """Look once in a while as long as something waits; for ever."""
        while True:
            await self._waiting.wait()
            while self._claims.pending:
                await self._clock.sleep(_PATIENCE)
                self._shed()

    def _shed(self) -> None:
        """Give back the newest claims beyond the allowance; their attempts are unused."""
        allowed = self._allowance()
        while len(self._claims.pending) > allowed:
            run = self._claims.pending[-1]
            self._observe(JobGivenBack(run.row, "no slot in time"))
            self._claims.give_back(run, Finish(run.claim, "release"))
