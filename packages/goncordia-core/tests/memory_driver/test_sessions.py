"""Rule 4: sessions, leases, expiry, and what is given to rescuers."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from goncordia.driver import Claim, JobState, Outcome, SessionInfo

from .box import START, Box, seconds

LEASE = 30


@pytest.fixture
def box() -> Box:
    return Box()


def keep_beating(box: Box, *others: UUID, for_seconds: float = LEASE) -> None:
    """Time passes, and the box's own session (and others) beat every five seconds."""
    for _ in range(round(for_seconds / 5)):
        box.tick(5)
        assert box.beat()
        for session in others:
            assert box.beat(session)


# -------------------------------------------------------------------- open, beat, close


def test_an_open_session_is_listed(box: Box) -> None:
    box.tick(5)
    session = box.open(lease=20, worker_id="other")
    box.tick(5)
    assert box.beat(session, lease=40)
    assert box.store.session_list() == [
        SessionInfo(box.session, "worker", True, START, START, LEASE),
        SessionInfo(session, "other", True, START + seconds(5), START + seconds(10), 40),
    ]


def test_opening_again_changes_nothing(box: Box) -> None:
    before = box.store.session_list()
    box.tick(5)
    box.store.session_open(box.session, "thief", 99, box.now, box.monotonic)
    assert box.store.session_list() == before


def test_a_beat_never_creates_a_session(box: Box) -> None:
    session = uuid4()
    assert not box.beat(session)
    assert [info.id for info in box.store.session_list()] == [box.session]


def test_a_closed_session_never_comes_back(box: Box) -> None:
    box.store.session_close(box.session, box.now)
    assert not box.beat()
    box.store.session_open(box.session, "worker", LEASE, box.now, box.monotonic)
    assert not box.beat()
    assert box.store.session_list() == []
    box.store.session_close(box.session, box.now)


def test_closing_releases_what_is_held(box: Box) -> None:
    plain, cancelled, started = (box.insert() for _ in range(3))
    other = box.open()
    claims = [row.claim for row in box.fetch(session=other).jobs]
    box.change(cancelled, "cancel")
    assert claims[2] is not None
    box.mark(claims[2])
    box.tick(1)
    box.store.session_close(other, box.now)
    for job_id in (plain, started):
        row = box.row(job_id)
        assert (row.state, row.attempt, row.run_at) == (JobState.AVAILABLE, 0, START)
    assert (box.row(cancelled).state, box.row(cancelled).attempt) == (JobState.CANCELLED, 0)
    assert claims[0] is not None
    assert box.finish(claims[0], "complete") == Outcome("ALREADY", JobState.AVAILABLE)
    assert [info.id for info in box.store.session_list()] == [box.session]


def test_the_beat_tells_of_requested_cancels(box: Box) -> None:
    first, second = box.insert(), box.insert()
    box.fetch()
    other = box.open()
    box.change(second, "cancel")
    assert box.store.session_beat(other, LEASE, box.now, box.monotonic).cancels == ()
    beat = box.store.session_beat(box.session, LEASE, box.now, box.monotonic)
    assert [claim.job_id for claim in beat.cancels] == [second]
    box.change(first, "cancel")
    beat = box.store.session_beat(box.session, LEASE, box.now, box.monotonic)
    assert [claim.job_id for claim in beat.cancels] == [first, second]
    box.finish(beat.cancels[0], "cancel")
    beat = box.store.session_beat(box.session, LEASE, box.now, box.monotonic)
    assert [claim.job_id for claim in beat.cancels] == [second]


# -------------------------------------------------------------------- held


def test_held_gives_the_claims_of_a_session_or_of_one_fetch(box: Box) -> None:
    jobs = [box.insert() for _ in range(5)]
    first = box.fetch(limit=2).jobs
    second = box.fetch(limit=2).jobs
    other = box.open()
    box.fetch(session=other)
    assert box.store.held(box.session, None, 9, box.now) == [*first, *second]
    assert second[0].claim is not None
    assert box.store.held(box.session, second[0].claim.fetch_no, 9, box.now) == second
    assert [row.id for row in box.store.held(other, None, 9, box.now)] == jobs[4:]
    assert box.store.held(box.session, None, 3, box.now) == [*first, second[0]]
    assert box.store.held(box.session, 99, 9, box.now) == []
    assert box.store.held(uuid4(), None, 9, box.now) == []
    assert first[0].claim is not None
    box.finish(first[0].claim, "retry")
    assert box.store.held(box.session, None, 9, box.now) == [first[1], *second]


# -------------------------------------------------------------------- expire


def test_a_session_whose_lease_is_over_may_still_beat_and_finish(box: Box) -> None:
    box.insert()
    other = box.open()
    claim = box.claim(session=other)
    box.tick(10 * LEASE)
    assert box.finish(claim, "complete").status == "DONE"
    assert box.beat(other)


def test_expire_ends_lapsed_sessions_for_good_and_gives_their_jobs(box: Box) -> None:
    jobs = [box.insert() for _ in range(3)]
    other = box.open()
    claims = [row.claim for row in box.fetch(session=other, limit=2).jobs]
    keep_beating(box)
    assert box.expire() == [], "the lease is over when more than a lease has passed"
    assert box.beat(other)
    keep_beating(box, for_seconds=LEASE + 5)
    rows = box.expire()
    assert [row.id for row in rows] == jobs[:2]
    assert [row.claim for row in rows] == claims
    assert {row.state for row in rows} == {JobState.RUNNING}
    assert not box.beat(other)
    (own, ended) = box.store.session_list()
    assert (own.open, ended.id, ended.open) == (True, other, False)


def test_the_jobs_of_an_ended_session_are_given_until_they_are_finished(box: Box) -> None:
    jobs = [box.insert() for _ in range(3)]
    other = box.open()
    box.fetch(session=other)
    keep_beating(box, for_seconds=LEASE + 5)
    assert [row.id for row in box.expire(limit=2)] == jobs[:2]
    rows = box.expire()
    assert [row.id for row in rows] == jobs
    third = box.open()
    assert box.expire(third) == [], "not to a session without contact for a lease"
    for row in rows:
        assert row.claim is not None
        assert box.finish(row.claim, "retry", rescue=True).status == "DONE"
    assert box.expire() == []
    assert other not in {info.id for info in box.store.session_list()}
    assert box.fetched() == jobs


def test_an_ended_session_may_finish_until_it_is_rescued(box: Box) -> None:
    box.insert()
    other = box.open()
    claim = box.claim(session=other)
    keep_beating(box, for_seconds=LEASE + 5)
    assert len(box.expire()) == 1
    assert box.finish(claim, "complete").status == "DONE"
    assert box.expire() == []


def test_expire_does_nothing_for_a_session_that_is_not_open(box: Box) -> None:
    box.open()
    keep_beating(box, for_seconds=LEASE + 5)
    assert box.expire(uuid4()) == []
    closed = box.open()
    box.store.session_close(closed, box.now)
    assert box.expire(closed) == []
    assert len(box.store.session_list()) == 2


def test_expire_needs_contact_for_a_whole_lease(box: Box) -> None:
    box.open(lease=1)
    for _ in range(5):
        box.tick(5)
        box.beat()
    box.tick(4.999)
    box.beat()
    box.expire()
    assert len(box.store.session_list()) == 2
    box.tick(0.001)
    box.expire()
    assert len(box.store.session_list()) == 1


def test_expire_needs_a_beat_within_half_a_lease(box: Box) -> None:
    box.open(lease=1)
    keep_beating(box)
    box.tick(15.001)
    box.expire()
    assert len(box.store.session_list()) == 2
    keep_beating(box, for_seconds=5)
    box.expire()
    assert len(box.store.session_list()) == 2, "the gap restarted the contact"
    keep_beating(box)
    box.expire()
    assert len(box.store.session_list()) == 1


def test_a_gap_of_half_a_lease_is_no_gap(box: Box) -> None:
    box.open(lease=1)
    box.tick(15)
    box.beat()
    box.tick(15)
    box.expire()
    assert len(box.store.session_list()) == 1


def test_an_outage_ends_nobody(box: Box) -> None:
    """Nobody could beat for longer than the lease; then all come back, in whatever order."""
    other = box.open()
    keep_beating(box, other)
    box.tick(2 * LEASE)
    assert box.expire() == []
    assert box.beat()
    assert box.expire() == []
    assert box.beat(other)
    keep_beating(box, other, for_seconds=2 * LEASE)
    assert box.expire() == []
    assert all(info.open for info in box.store.session_list())


def test_the_asker_itself_is_never_ended_by_its_own_question(box: Box) -> None:
    keep_beating(box, for_seconds=2 * LEASE)
    box.tick(2 * LEASE)
    box.expire()
    assert box.beat()


def test_steps_of_the_wall_clock_end_nobody(box: Box) -> None:
    other = box.open()
    keep_beating(box, other)
    box.now += seconds(3600)
    assert box.expire() == []
    box.now -= seconds(7200)
    assert box.beat(other)
    assert box.expire() == []
    assert all(info.open for info in box.store.session_list())


def test_a_claim_of_an_ended_session_does_not_come_back_to_another_fetch(box: Box) -> None:
    job_id = box.insert()
    other = box.open()
    claim = box.claim(session=other)
    keep_beating(box, for_seconds=LEASE + 5)
    box.expire()
    assert box.fetched() == []
    assert box.row(job_id).claim == claim
    box.store.session_close(other, box.now)
    assert box.row(job_id).claim == claim, "it was ended already, closing releases nothing"
    assert box.finish(Claim(job_id, other, claim.fetch_no), "release", rescue=True).state is (
        JobState.AVAILABLE
    )
