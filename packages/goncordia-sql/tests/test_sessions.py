from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from goncordia.driver import (
    Beat,
    Change,
    FetchRequest,
    Finish,
    JobRow,
    JobState,
    NewJob,
    QueueFetch,
)

New = Callable[..., NewJob]
LEASE = 30.0
OURS, THEIRS = UUID(int=1), UUID(int=2)


def open_session(bare: Any, session: UUID) -> None:
    bare.run(bare.ops.sessions.session_open(session, "w", LEASE))


def beat(bare: Any, session: UUID) -> Beat:
    answer: Beat = bare.run(bare.ops.sessions.session_beat(session, LEASE))
    return answer


def beats(bare: Any, session: UUID, seconds: float, every: float = 5) -> None:
    """Beat for so long."""
    for _ in range(int(seconds / every)):
        bare.clock.advance(every)
        assert beat(bare, session).held


def fetch(bare: Any, session: UUID, number: int = 1) -> list[JobRow]:
    request = FetchRequest(session, number, 10, (QueueFetch("default", 10),))
    rows: list[JobRow] = bare.run(bare.ops.fetch.fetch(request)).jobs
    return rows


def expire(bare: Any, session: UUID, limit: int = 10) -> list[UUID]:
    return [row.id for row in bare.run(bare.ops.sessions.expire(session, limit))]


def names(bare: Any) -> dict[UUID, bool]:
    return {info.id: info.open for info in bare.run(bare.ops.sessions.session_list())}


def test_opening_again_changes_nothing(bare: Any) -> None:
    open_session(bare, OURS)
    (before,) = bare.run(bare.ops.sessions.session_list())
    bare.clock.advance(1)
    open_session(bare, OURS)
    assert bare.run(bare.ops.sessions.session_list()) == [before]
    assert (before.worker_id, before.lease, before.open) == ("w", LEASE, True)


def test_a_beat_never_creates_a_session(bare: Any) -> None:
    assert beat(bare, OURS) == Beat(held=False)
    assert names(bare) == {}


def test_a_beat_tells_of_cancels(bare: Any, new_job: New) -> None:
    open_session(bare, OURS)
    bare.run(bare.ops.insert.insert_many([new_job(), new_job()]))
    rows = fetch(bare, OURS)
    bare.run(bare.ops.change.change_many([Change(rows[1].id, "cancel")]))
    assert beat(bare, OURS) == Beat(held=True, cancels=(rows[1].claim,))  # type: ignore[arg-type]  # it runs


def test_closing_gives_everything_back(bare: Any, new_job: New) -> None:
    open_session(bare, OURS)
    jobs = [new_job(), new_job(unique_key=bytes(32)), new_job(group="g", group_limit=1)]
    waiting = new_job(group="g", group_limit=1)
    bare.run(bare.ops.insert.insert_many([*jobs, waiting]))
    fetch(bare, OURS)
    bare.run(bare.ops.change.change_many([Change(jobs[1].id, "cancel")]))
    bare.run(bare.ops.sessions.session_close(OURS))
    rows = bare.run(bare.ops.read.get_many([job.id for job in jobs]))
    assert [row.state for row in rows] == ["available", "cancelled", "available"]
    assert [row.attempt for row in rows] == [0, 0, 0]
    assert names(bare) == {}
    assert bare.value("SELECT count(held_key) FROM goncordia_job") == 0
    assert not beat(bare, OURS).held
    bare.run(bare.ops.sessions.session_close(OURS))


def test_only_who_is_in_contact_for_a_lease_may_end_others(bare: Any, new_job: New) -> None:
    open_session(bare, THEIRS)
    bare.run(bare.ops.insert.insert_many([new_job() for _ in range(3)]))
    claimed = [row.id for row in fetch(bare, THEIRS)]
    bare.clock.advance(LEASE)
    assert expire(bare, OURS) == []
    open_session(bare, OURS)
    beats(bare, OURS, LEASE - 5)
    assert expire(bare, OURS) == []
    bare.clock.advance(5)
    assert expire(bare, OURS, 2) == claimed[:2]
    assert expire(bare, OURS) == claimed
    assert names(bare) == {THEIRS: False, OURS: True}
    assert not beat(bare, THEIRS).held


def test_a_gap_starts_the_contact_anew(bare: Any, new_job: New) -> None:
    open_session(bare, THEIRS)
    open_session(bare, OURS)
    bare.run(bare.ops.insert.insert_many([new_job()]))
    claimed = [row.id for row in fetch(bare, THEIRS)]
    beats(bare, OURS, LEASE)
    bare.clock.advance(LEASE / 2 + 1)
    assert expire(bare, OURS) == []
    assert beat(bare, OURS).held
    assert expire(bare, OURS) == []
    beats(bare, OURS, LEASE)
    assert expire(bare, OURS) == claimed


def test_a_session_goes_with_its_last_claim(bare: Any, new_job: New) -> None:
    open_session(bare, THEIRS)
    bare.run(bare.ops.insert.insert_many([new_job()]))
    (row,) = fetch(bare, THEIRS)
    open_session(bare, OURS)
    beats(bare, OURS, 2 * LEASE)
    assert expire(bare, OURS) == [row.id]
    assert row.claim is not None
    finish = Finish(row.claim, "release", rescue=True)
    (outcome,) = bare.run(bare.ops.finish.finish_many([finish]))
    assert outcome.state == JobState.AVAILABLE
    assert expire(bare, OURS) == []
    assert names(bare) == {OURS: True}
    assert bare.value("SELECT count(*) FROM goncordia_session") == 1


def test_jobs_of_a_session_without_a_row_are_found(bare: Any, new_job: New) -> None:
    """As a claim that came in late, of a session that is forgotten."""
    for number in (1, 2, 3):
        open_session(bare, UUID(int=number))
        bare.run(bare.ops.insert.insert_many([new_job()]))
        fetch(bare, UUID(int=number))
    bare.connection.execute("DELETE FROM goncordia_session")
    open_session(bare, UUID(int=2))
    beats(bare, UUID(int=2), LEASE)
    held = [row.claim.session.int for row in bare.run(bare.ops.sessions.expire(UUID(int=2), 9))]
    assert held == [1, 3]
