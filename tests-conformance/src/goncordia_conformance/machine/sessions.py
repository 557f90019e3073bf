"""Steps about sessions: beats, silence, and the rescue of what was lost."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from goncordia.driver import Claim
from goncordia_conformance.machine import draws
from goncordia_conformance.machine.base import same, same_rows
from goncordia_conformance.machine.claims import ClaimSteps
from goncordia_conformance.machine.draws import LEASES, FinishSpec

__all__ = ["SessionSteps"]

MOST_SESSIONS = 4


class SessionSteps(ClaimSteps):
    """What worker pools do to hold their jobs, and to find those of others."""

    @rule(lease=st.sampled_from(LEASES))
    def session_open(self, lease: float) -> None:
        """Open a session; when there are enough, the first again, which may be over."""
        if len(self.known.sessions) < MOST_SESSIONS:
            session = UUID(int=self.arena.number())
            self.known.sessions.append(session)
            self.known.leases[session] = lease
        else:
            session = self.known.sessions[0]
            infos = self.ask_driver(lambda executor: executor.session_list())
            if session not in {info.id for info in infos}:
                return  # it is forgotten, and an id is not to be used again
        lease = self.known.leases[session]
        self.ask_both(lambda executor: executor.session_open(session, "worker", lease))

    @precondition(lambda self: self.known.sessions)
    @rule(which=draws.index)
    def session_beat(self, which: int) -> None:
        """Beat."""
        session = self.session(which)
        lease = self.known.leases[session]
        found = self.ask_driver(lambda executor: executor.session_beat(session, lease))
        expected = self.ask_model(lambda executor: executor.session_beat(session, lease))
        same((found.held, _bare(found.cancels)), (expected.held, _bare(expected.cancels)))

    @precondition(lambda self: self.known.sessions)
    @rule(which=draws.index)
    def session_close(self, which: int) -> None:
        """Close."""
        session = self.session(which)
        self.ask_both(lambda executor: executor.session_close(session))

    @precondition(lambda self: self.known.sessions)
    @rule(which=draws.index, limit=st.sampled_from([1, 2, 100]))
    def expire(self, which: int, limit: int) -> None:
        """Look for lost jobs."""
        asker = self.session(which)
        rows = self.ask_driver(lambda executor: executor.expire(asker, limit))
        self.arena.run(self.model.check_expire(asker, limit, rows))

    @precondition(lambda self: self.known.sessions)
    @rule(which=draws.index, steps=st.integers(2, 8), end=draws.finishes, rescues=st.integers(0, 3))
    def keep_in_contact(self, which: int, steps: int, end: FinishSpec, rescues: int) -> None:
        """A session beats and looks for others while time passes, and rescues what it finds."""
        asker = self.session(which)
        step = self.known.leases[asker] / 3
        for _ in range(steps):
            self.arena.run(self.arena.clock.advance(step))
            self.session_beat(which)
            self.expire(which, 100)
        rows = self.ask_driver(lambda executor: executor.expire(asker, 100))
        self.arena.run(self.model.check_expire(asker, 100, rows))
        theirs = [claim for _, claim in self.known.claims]
        for row in rows[:rescues]:
            assert row.claim is not None, "checked just now"
            claim = Claim(row.id, row.claim.session, row.claim.fetch_no)
            behind = len(theirs) - 1 - theirs.index(claim)
            self.finish([replace(end, claim=behind, rescue=True)])

    @precondition(lambda self: len(self.known.sessions) > 1)
    @rule(
        silent=draws.index,
        asker=st.integers(1, MOST_SESSIONS - 1),
        steps=st.integers(4, 9),
        end=draws.finishes,
        rescues=st.integers(0, 3),
    )
    def lose(self, silent: int, asker: int, steps: int, end: FinishSpec, rescues: int) -> None:
        """A session claims what it can and falls silent; another finds what it holds."""
        self.work(silent, [])
        other = silent + asker % (len(self.known.sessions) - 1) + 1
        self.keep_in_contact(other, steps, end, rescues)

    @precondition(lambda self: self.known.sessions)
    @rule(which=draws.index, fetch_no=st.one_of(st.none(), st.integers(1, 9)))
    def held(self, which: int, fetch_no: int | None) -> None:
        """What a session holds."""
        session = self.session(which)
        found = self.ask_driver(lambda executor: executor.held(session, fetch_no, 100))
        same_rows(found, self.ask_model(lambda executor: executor.held(session, fetch_no, 100)))


def _bare(claims: tuple[Claim, ...]) -> set[tuple[UUID, UUID, int]]:
    return {(claim.job_id, claim.session, claim.fetch_no) for claim in claims}
