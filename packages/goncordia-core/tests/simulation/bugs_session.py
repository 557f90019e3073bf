"""Bugs in how a pool keeps its session, its lease and its heartbeat."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

from goncordia.driver import Mark
from goncordia.engine import session as session_module
from goncordia.engine.dispatch import Dispatcher
from goncordia.engine.heart_thread import HeartThread
from goncordia.engine.run import Cause, Run
from goncordia.engine.session import Session
from goncordia.errors import DriverError

from .network import Faults
from .planting import BUGS, Bug, bug

__all__: list[str] = []

# -------------------------------------------------------------------- lost sessions

_interrupt = Dispatcher.interrupt


@bug(
    "a lost session interrupts what runs under it",
    Dispatcher,
    "interrupt",
    within=100,
    focus=("session_beat",),
)
def lost_does_not_interrupt(self: Dispatcher, run: Run, cause: Cause) -> None:
    if cause is not Cause.LOST:
        _interrupt(self, run, cause)


_session_lost = Dispatcher.session_lost


@bug(
    "a lost session drops what was fetched under it",
    Dispatcher,
    "session_lost",
    within=200,
    focus=("fetch", "exchange"),
)
def lost_keeps_pending(self: Dispatcher, session: object) -> int:
    pending = list(self._claims.pending)
    self._claims.pending.clear()
    for run in pending:
        self._claims._runs.discard(run)
    interrupted = _session_lost(self, session)
    self._claims._runs.update(pending)
    self._claims.pending.extend(pending)
    return interrupted


_lost = Session.lost


@bug("an answer about an older session says nothing", Session, "lost", within=0)
async def old_answers_count(self: Session, session: UUID) -> None:
    await _lost(self, self.id)


@bug("a session's id is asked for once", Session, "open", within=100)
async def session_id_is_reused(self: Session) -> None:
    backoff = self._calls.backoff()
    where_the_seed_puts_its_own: Any = session_module
    self.id, self._fetch_no = where_the_seed_puts_its_own.new_session_id(), 0
    while not self.is_open:
        sent = self._clock.monotonic()
        try:
            await self._calls.once(self._executor.session_open(self.id, self.worker_id, self.lease))
        except DriverError as error:
            await backoff.pause(error, "opening a session")
            continue
        self.good_until = sent + self.lease
        self.is_open = True
        self.on_open()
        self.on_good()


# -------------------------------------------------------------------- the own lease


@bug("an answered beat renews the lease", Session, "renewed")
def beats_do_not_renew(self: Session, session: UUID, sent: float) -> None:
    return


BUGS["starts_are_not_checked"] = Bug(
    "a handler is started only before the own lease is over",
    Session,
    "good_until",
    property(lambda _: math.inf, lambda *_: None),
    within=200,
)


@bug(
    "the lease counts from the sending of the beat",
    Session,
    "renewed",
    within=400,
    faults=Faults(rate=0.08),
    focus=("session_beat",),
    records=False,
)
def lease_counts_from_the_answer(self: Session, session: UUID, sent: float) -> None:
    if session == self.id and self.is_open:
        self.good_until = self._clock.monotonic() + self.lease


# -------------------------------------------------------------------- marks


async def _await_mark(self: Dispatcher, run: Run) -> None:
    """What comes before a start, without the second look at the lease."""
    await self._until_good(run)
    is_last = self._outcomes.is_last(run.row, run.worker)
    if run.cause is None and is_last and self._marks is not None:
        outcome = await self._marks.put(Mark(run.claim, started=True))
        if outcome.status != "DONE":
            run.cause = Cause.LOST


@bug(
    "the lease is looked at again after the mark",
    Dispatcher,
    "_await_leave",
    within=300,
    focus=("mark_many",),
)
async def lease_is_not_looked_at_again(self: Dispatcher, run: Run) -> None:
    await _await_mark(self, run)


@bug(
    "a mark that is stale stops the start",
    Dispatcher,
    "_await_leave",
    within=300,
    focus=("mark_many",),
)
async def stale_marks_are_ignored(self: Dispatcher, run: Run) -> None:
    await _await_mark(self, run)
    if run.cause is Cause.LOST and self._session.good():
        run.cause = None


@bug("a last attempt is marked before it starts", Dispatcher, "_await_leave", within=100)
async def last_attempts_are_not_marked(self: Dispatcher, run: Run) -> None:
    await self._until_good(run)


# -------------------------------------------------------------------- the heartbeat thread

_watch_loop = HeartThread._watch_loop


@bug("a pool whose loop is dead does not beat", HeartThread, "_watch_loop", within=200)
def stalls_are_ignored(self: HeartThread) -> None:
    _watch_loop(self)
    self._stalled = False


@bug("a blocked loop does not cost the session", HeartThread, "_watch_loop", within=200)
def blocked_loops_do_not_beat(self: HeartThread) -> None:
    _watch_loop(self)
    self._stalled = self._reported
