"""A pool that is there for one attempt of one job, as in a test."""

from __future__ import annotations

from uuid import UUID

from goncordia.driver import Finish
from goncordia.engine.claims import Claims
from goncordia.engine.lanes import Lanes
from goncordia.engine.run import Run

__all__ = ["Single"]


class Single:
    """Lets one job through, once; what else is claimed goes back as it was, without being started.

    Until the job is there others are withheld: given back at once, they would be claimed again.

    Args:
        claims: the pool's.
        lanes: fetch until the job is there, and no more then.
        job_id: the job.
    """

    def __init__(self, claims: Claims, lanes: Lanes, job_id: UUID) -> None:
        self._claims = claims
        self._lanes = lanes
        self._job_id = job_id
        self._withheld: list[Run] = []
        self._over = False

    def takes(self, run: Run) -> bool:
        """Whether this new claim is the one that is meant; if not, it is seen to."""
        release = Finish(run.claim, "release")
        if self._over:
            self._claims.give_back(run, release)
            return False
        if run.row.id != self._job_id:
            self._claims.withhold(run, release)
            self._withheld.append(run)
            return False
        self.end()
        return True

    def end(self) -> None:
        """Fetch no more, and give back what was withheld."""
        self._over = self._lanes.stopping = True
        self._claims.take_back(self._withheld)
        self._withheld = []
