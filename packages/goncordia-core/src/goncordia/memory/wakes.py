"""What an operation of the store has to tell the listeners, once it is done."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from goncordia.driver.results import Wake

__all__ = ["WakeLog"]


class WakeLog:
    """Collects, and makes one wake for each queue."""

    def __init__(self) -> None:
        self._jobs: dict[str, datetime] = {}
        self._cancels: list[UUID] = []
        self._queues: list[str] = []

    def jobs(self, queue: str, run_at: datetime) -> None:
        """A job of the queue may be claimed at that time."""
        earliest = self._jobs.get(queue)
        if earliest is None or run_at < earliest:
            self._jobs[queue] = run_at

    def cancel(self, job_id: UUID) -> None:
        """A cancel was requested of a running job."""
        self._cancels.append(job_id)

    def queue(self, name: str) -> None:
        """A queue was paused or resumed."""
        self._queues.append(name)

    def take(self, now: datetime) -> list[Wake]:
        """The wakes since the last call."""
        if not (self._jobs or self._cancels or self._queues):
            return []
        wakes = [
            Wake("jobs", queue, max(0.0, (run_at - now).total_seconds()))
            for queue, run_at in self._jobs.items()
        ]
        if self._cancels:
            wakes.append(Wake("cancel", job_ids=tuple(self._cancels)))
        wakes += [Wake("queue", name) for name in self._queues]
        self._jobs.clear()
        self._cancels.clear()
        self._queues.clear()
        return wakes
