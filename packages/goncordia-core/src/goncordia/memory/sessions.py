"""Sessions and their leases: rule 4 of the contract, as far as it is about time."""

from __future__ import annotations

import copy
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from goncordia.driver.results import SessionInfo

if TYPE_CHECKING:
    from goncordia.memory.job import Job

__all__ = ["Session", "Sessions"]


class Session:
    """A worker pool's unbroken hold on its claims."""

    __slots__ = (
        "beat_at",
        "beat_wall",
        "held",
        "id",
        "lease",
        "open",
        "opened_at",
        "since",
        "worker_id",
    )

    def __init__(
        self, session: UUID, worker_id: str, lease: float, now: datetime, monotonic: float
    ) -> None:
        self.id = session
        self.worker_id = worker_id
        self.lease = lease
        self.open = True
        self.opened_at = now
        self.beat_wall = now
        self.beat_at = monotonic
        self.since = monotonic
        """Since when it has been in contact without a gap of more than half a lease."""
        self.held: dict[int, Job] = {}
        """The running jobs that it claimed, in the order of their claims."""

    def info(self) -> SessionInfo:
        """The session as it is reported."""
        return SessionInfo(
            self.id, self.worker_id, self.open, self.opened_at, self.beat_wall, self.lease
        )

    def beat(self, lease: float, now: datetime, monotonic: float) -> None:
        """Renew the lease; a gap of more than half of it restarts the contact."""
        if monotonic - self.beat_at > self.lease / 2:
            self.since = monotonic
        self.lease = lease
        self.beat_at = monotonic
        self.beat_wall = now

    def lapsed(self, monotonic: float) -> bool:
        """Whether the lease is over. That alone ends nothing."""
        return monotonic - self.beat_at > self.lease

    def may_expire_others(self, monotonic: float) -> bool:
        """Whether it has been in contact for a whole lease, and is now."""
        return (
            self.open
            and monotonic - self.beat_at <= self.lease / 2
            and monotonic - self.since >= self.lease
        )


class Sessions:
    """The open sessions, and the ended ones that still hold claims."""

    def __init__(self) -> None:
        self.open: dict[UUID, Session] = {}
        self.ended: dict[UUID, Session] = {}
        self._used: set[UUID] = set()

    def add(self, session: Session) -> None:
        """Open the session; an id that was ever used before stays what it is."""
        if session.id not in self._used:
            self._used.add(session.id)
            self.open[session.id] = session

    def end(self, session: Session) -> None:
        """End the session for good."""
        session.open = False
        del self.open[session.id]
        if session.held:
            self.ended[session.id] = session

    def expire(self, asker: UUID, monotonic: float) -> bool:
        """End the sessions whose lease is over, if the asker may; whether it may."""
        session = self.open.get(asker)
        if session is None or not session.may_expire_others(monotonic):
            return False
        for other in [other for other in self.open.values() if other.lapsed(monotonic)]:
            self.end(other)
        return True

    def copy_of(self, other: Session) -> Session:
        """Our session with the id of another store's; a copy without claims if there is none."""
        ours = self.open.get(other.id) or self.ended.get(other.id)
        if ours is None:
            ours = copy.copy(other)
            ours.held = {}
            self._used.add(ours.id)
            if ours.open:
                self.open[ours.id] = ours
        return ours

    def hold(self, session: Session, job: Job) -> None:
        """The session has claimed the job."""
        job.session = session
        if not session.open:
            self.ended[session.id] = session
        session.held[job.key] = job

    def let_go(self, job: Job) -> None:
        """The job's claim is over; an ended session without claims is forgotten."""
        session = job.session
        if session is None:
            return
        job.session = None
        del session.held[job.key]
        if not session.open and not session.held:
            del self.ended[session.id]
