from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from math import inf
from typing import Any
from uuid import UUID

import pytest

from goncordia.driver import (
    After,
    At,
    AttemptError,
    Change,
    FetchRequest,
    FetchResult,
    Finish,
    FinishTo,
    Mark,
    NewJob,
    QueueFetch,
)
from goncordia_sql import Batch, Rows, Statement
from goncordia_sql.ops import fetch
from goncordia_sql.states import Stored

New = Callable[..., NewJob]


class Fetcher:
    """A session that fetches."""

    def __init__(self, bare: Any, session: UUID) -> None:
        self.bare = bare
        self.session = session
        self.fetches = 0
        bare.run(bare.ops.sessions.session_open(session, "w", 60.0))

    def __call__(
        self,
        limit: int = 10,
        *queues: QueueFetch,
        kinds: Mapping[str, int] | None = None,
        skip: frozenset[str] = frozenset(),
    ) -> FetchResult:
        self.fetches += 1
        asked = queues or (QueueFetch("default", limit, kinds, skip),)
        request = FetchRequest(self.session, self.fetches, limit, asked, "w")
        result: FetchResult = self.bare.run(self.bare.ops.fetch.fetch(request))
        return result


@pytest.fixture
def take(bare: Any, session: UUID) -> Fetcher:
    return Fetcher(bare, session)


def insert(bare: Any, *jobs: NewJob) -> list[UUID]:
    bare.run(bare.ops.insert.insert_many(jobs))
    return [job.id for job in jobs]


def ids(result: FetchResult) -> list[UUID]:
    return [row.id for row in result.jobs]


def parked(bare: Any) -> int:
    query = f"SELECT count(*) FROM goncordia_job WHERE state = {Stored.PARKED}"
    count: int = bare.value(query)
    return count


def test_the_plain_fetch_takes_four_statements(bare: Any, new_job: New, take: Fetcher) -> None:
    jobs = insert(bare, *(new_job() for _ in range(50)))
    assert ids(take(20)) == jobs[:20]
    assert len(bare.asked) == 4


def test_a_claimed_row_is_the_stored_one(bare: Any, new_job: New, take: Fetcher) -> None:
    insert(bare, new_job(), new_job(group="g", group_limit=1, timeout=2.5))
    rows = take().jobs
    assert rows == bare.run(bare.ops.read.get_many([row.id for row in rows]))
    assert rows == bare.run(bare.ops.read.held(take.session, 1, 10))


@pytest.mark.parametrize("to", ["retry", "snooze", "release", "complete", "discard", "cancel"])
def test_a_claimed_row_is_the_stored_one_whatever_was_before(
    bare: Any, new_job: New, take: Fetcher, to: FinishTo
) -> None:
    """A fetch does not read the columns that no waiting job has anything in."""
    until = At(bare.clock.now + timedelta(hours=1))
    jobs = insert(
        bare,
        new_job(priority=3, max_attempts=2, tags=("x", "y"), meta={"k": "v"}),
        new_job(args=b"\xff", content="other", payload_version=2, run_at=After(1)),
        new_job(unique_key=b"1" * 32, unique_hold="until_deleted"),
        new_job(unique_key=b"2" * 32, unique_hold=until),
        new_job(unique_key=b"3" * 32, group="g", group_limit=9, timeout=2.5),
    )
    bare.clock.advance(1)
    claims = [row.claim for row in take().jobs if row.claim is not None]
    assert {claim.job_id for claim in claims} == set(jobs)
    bare.run(bare.ops.finish.mark_many([Mark(claim, started=True) for claim in claims]))
    if to in {"complete", "discard"}:
        bare.run(bare.ops.change.change_many([Change(job, "cancel") for job in jobs]))
    error = AttemptError(1, bare.clock.now, "E", "m", "t", "w")
    ends = [Finish(claim, to, None, error, b"[1]", b"[2]") for claim in claims]
    bare.run(bare.ops.finish.finish_many(ends))
    bare.clock.advance(1)
    bare.run(bare.ops.change.change_many([Change(job, "retry") for job in jobs]))
    rows = take().jobs
    assert {row.id for row in rows} == set(jobs)
    assert rows == bare.run(bare.ops.read.get_many([row.id for row in rows]))


def test_no_more_is_read_than_there_is_room_for(
    bare: Any, new_job: New, take: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one, which tells whether there is more."""
    monkeypatch.setattr(fetch, "_SHORTEST_PAGE", 2)
    monkeypatch.setattr(fetch, "_LONGEST_PAGE", 10)
    jobs = insert(bare, *(new_job() for _ in range(50)))
    read: list[int] = []
    execute = bare.execute

    def counting(step: Statement | Batch) -> Rows:
        rows: Rows = execute(step)
        if " j.args," in step.sql.text:
            read.append(len(rows.rows))
        return rows

    monkeypatch.setattr(bare, "execute", counting)
    result = take(15)
    assert (ids(result), result.next_due_in) == (jobs[:15], 0.0)
    assert read == [10, 6]


def test_what_became_due_is_made_ready(bare: Any, new_job: New, take: Fetcher) -> None:
    late, soon = insert(bare, new_job(run_at=After(2)), new_job(run_at=After(1), priority=-1))
    assert (ids(take()), take().next_due_in) == ([], 1.0)
    bare.clock.advance(2)
    assert ids(take()) == [late, soon]


def test_a_flood_is_made_ready_step_by_step(
    bare: Any, new_job: New, take: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_PROMOTED_AT_ONCE", 10)
    jobs = insert(bare, *(new_job(run_at=After(1), priority=n) for n in range(25)))
    bare.clock.advance(1)
    for _ in range(2):
        result = take(5)
        assert (result.jobs, result.more, result.next_due_in) == ([], True, None)
    # Only now is it known which are the first.
    assert ids(take(5)) == jobs[:-6:-1]


def test_a_full_group_is_parked_and_comes_back(bare: Any, new_job: New, take: Fetcher) -> None:
    group: dict[str, Any] = {"group": "g", "group_limit": 1, "run_at": After(1)}
    jobs = insert(bare, *(new_job(**group) for _ in range(5)), new_job())
    bare.clock.advance(1)
    result = take()
    assert ids(result) == [jobs[5], jobs[0]] or ids(result) == [jobs[0], jobs[5]]
    assert (result.more, result.next_due_in) == (False, inf)
    assert parked(bare) == 4
    claim = next(row.claim for row in result.jobs if row.id == jobs[0])
    assert claim is not None
    bare.run(bare.ops.finish.finish_many([Finish(claim, "complete")]))
    assert parked(bare) == 3
    assert ids(take()) == [jobs[1]]


def test_a_flood_is_parked_step_by_step(
    bare: Any, new_job: New, take: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_PARKED_AT_ONCE", 10)
    grouped = [new_job(group="g", group_limit=1, run_at=After(1), priority=1) for _ in range(25)]
    jobs = insert(bare, *grouped, new_job())
    bare.clock.advance(1)
    found = [take(5), take(5), take(5)]
    assert [ids(result) for result in found] == [[jobs[0]], [], [jobs[25]]]
    assert [result.more for result in found] == [True, True, False]
    assert parked(bare) == 24


def test_kinds_left_out_are_passed_over(
    bare: Any, new_job: New, take: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when they are so many that it goes on kind by kind."""
    monkeypatch.setattr(fetch, "_PASSED_OVER", 5)
    strangers = [new_job(kind=f"s{n % 3}", priority=9) for n in range(30)]
    wanted = [new_job(kind="ab"[n % 2], priority=n % 3) for n in range(12)]
    insert(bare, *strangers, *wanted)
    order = sorted(wanted, key=lambda job: (-job.priority, job.id.int))
    result = take(8, kinds={"a": 100, "b": 100, "never": 1})
    assert ids(result) == [job.id for job in order[:8]]
    assert (result.more, result.next_due_in) == (True, 0.0)
    result = take(8, kinds={"a": 100, "b": 100})
    assert ids(result) == [job.id for job in order[8:]]
    assert (result.more, result.next_due_in) == (False, inf)


@pytest.mark.parametrize("passed_over", [0, 1000])
def test_at_most_so_many_of_a_kind(
    bare: Any, new_job: New, take: Fetcher, monkeypatch: pytest.MonkeyPatch, passed_over: int
) -> None:
    monkeypatch.setattr(fetch, "_PASSED_OVER", passed_over)
    jobs = insert(bare, *(new_job(kind="ab"[n % 2]) for n in range(10)), new_job(kind="c"))
    result = take(10, kinds={"a": 2, "b": 1, "c": 0})
    assert ids(result) == [jobs[0], jobs[1], jobs[2]]
    assert (result.more, result.next_due_in) == (True, 0.0)
    assert ids(take(3, kinds={"b": 9})) == [jobs[3], jobs[5], jobs[7]]


def test_groups_to_leave(bare: Any, new_job: New, take: Fetcher) -> None:
    jobs = insert(bare, new_job(group="g", group_limit=9), new_job(), new_job(group="h"))
    assert ids(take(skip=frozenset("g"))) == [jobs[1]]
    assert parked(bare) == 1, "a group with the limit 0 never has room"
    assert ids(take()) == [jobs[0]]


def test_queues_are_taken_in_order_and_up_to_their_limits(
    bare: Any, new_job: New, take: Fetcher
) -> None:
    first = insert(bare, *(new_job(queue="a") for _ in range(3)))
    second = insert(bare, *(new_job(queue="b") for _ in range(3)))
    insert(bare, new_job(queue="c"))
    result = take(4, QueueFetch("a", 2), QueueFetch("c", 0), QueueFetch("b", 4))
    assert ids(result) == [*first[:2], *second[:2]]
    assert (result.more, result.next_due_in) == (True, 0.0)


def test_a_full_result_says_whether_there_is_more(bare: Any, new_job: New, take: Fetcher) -> None:
    insert(bare, *(new_job() for _ in range(3)), new_job(run_at=After(5)))
    assert (take(2).next_due_in, take(1).next_due_in) == (0.0, 5.0)


def test_what_blocks_alone_does_not_count_as_due(bare: Any, new_job: New, take: Fetcher) -> None:
    insert(bare, *(new_job(group="g", group_limit=1) for _ in range(3)))
    result = take(1)
    assert (len(result.jobs), result.more, result.next_due_in) == (1, False, inf)


def test_nothing_asked(bare: Any, new_job: New, take: Fetcher) -> None:
    insert(bare, new_job())
    assert take(0) == FetchResult([], next_due_in=None)
    bare.run(bare.ops.queues.queue_pause("default"))
    assert take() == FetchResult([], next_due_in=None, paused=("default",))


def test_under_a_session_that_is_not_open(bare: Any, new_job: New) -> None:
    insert(bare, new_job())
    request = FetchRequest(UUID(int=9), 1, 1, (QueueFetch("default", 1),))
    assert bare.run(bare.ops.fetch.fetch(request)) == FetchResult([], lost=True)


def test_a_job_that_the_clock_left_behind_is_not_due(
    bare: Any, new_job: New, take: Fetcher
) -> None:
    (job,) = insert(bare, new_job())
    bare.clock.advance(-10)
    assert (ids(take()), take().next_due_in) == ([], 10.0)
    bare.clock.advance(10)
    assert ids(take()) == [job]
