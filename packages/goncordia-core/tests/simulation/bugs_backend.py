"""Bugs in the backend: rules of the contract that the engine cannot do without."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from goncordia.driver import Beat, Claim, FetchResult, Finish, JobRow, Outcome, Record
from goncordia.driver.defaults.sessions import RecordSessions
from goncordia.errors import DriverError
from goncordia.memory import store as store_module
from goncordia.memory.sessions import Session, Sessions
from goncordia.memory.store import Store

from .network import Faults
from .planting import bug

__all__: list[str] = []


@bug("a finish acts only on its claim", store_module, "is_claim", within=100)
def claims_do_not_fence(ours: Claim | None, named: Claim) -> bool:
    return ours is not None


_session_beat = Store.session_beat


@bug("a beat never revives a session", Store, "session_beat", within=200, records=False)
def beats_revive(self: Store, session: UUID, lease: float, now: datetime, monotonic: float) -> Beat:
    if session not in self.sessions.open:
        self.sessions.open[session] = Session(session, "", lease, now, monotonic)
    return _session_beat(self, session, lease, now, monotonic)


@bug("only who was in contact ends others", Session, "may_expire_others", records=False)
def anybody_ends_others(self: Session, monotonic: float) -> bool:
    return self.open


_fetch = Store.fetch


@bug(
    "a claim clears the mark",
    Store,
    "fetch",
    within=300,
    hot_admin=True,
    focus=("fetch", "exchange"),
)
def claims_keep_the_mark(self: Store, *args: Any) -> FetchResult:
    marked = {job.new.id for job in self.jobs.values() if job.started}
    result = _fetch(self, *args)
    for row in result.jobs:
        if row.id in marked:
            self.jobs[row.id.int].started = True
    return result


_finish_many = Store.finish_many


@bug("a cancel request outlives a retry", Store, "finish_many", within=100)
def cancel_requests_are_forgotten(
    self: Store, finishes: Sequence[Finish], now: datetime
) -> list[Outcome]:
    for finish in finishes:
        job = self.jobs.get(finish.claim.job_id.int)
        if job is not None:
            job.cancel_requested = False
    return _finish_many(self, finishes, now)


_finish = Store._finish


@bug("a rescuer releases only what has not started", Store, "_finish", within=0)
def rescues_release_what_has_started(self: Store, finish: Finish, now: datetime) -> Outcome:
    if finish.rescue and finish.to == "release":
        finish = msgspec.structs.replace(finish, rescue=False)
    return _finish(self, finish, now)


@bug("an ended session is told so", Sessions, "end", records=False)
def ended_sessions_stay_open(self: Sessions, session: Session) -> None:
    session.open = False
    if session.held:
        self.ended[session.id] = session


@bug(
    "who watches records and was out of touch begins anew",
    RecordSessions,
    "_was_out_of_touch",
    records=True,
)
def watches_outlive_an_outage(self: RecordSessions, asker: UUID, own: Record, now: float) -> bool:
    return False


_expire = RecordSessions.expire


@bug(
    "who watches records goes on after a failed call",
    RecordSessions,
    "expire",
    within=100,
    records=True,
    faults=Faults(rate=0.05),
)
async def failed_looks_restart_the_watch(
    self: RecordSessions, session: UUID, limit: int
) -> list[JobRow]:
    try:
        return await _expire(self, session, limit)
    except DriverError:
        self._watched.clear()
        raise
