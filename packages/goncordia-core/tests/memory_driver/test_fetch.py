"""Fetching: order, one claim, kinds, groups, pauses, and when to come again."""

from __future__ import annotations

from math import inf
from uuid import uuid4

import pytest

from goncordia.driver import After, At, Claim, FetchResult, JobState, QueueFetch

from .box import START, Box, seconds


@pytest.fixture
def box() -> Box:
    return Box()


# -------------------------------------------------------------------- rule 1: order


def test_by_priority_then_run_at_then_id(box: Box) -> None:
    late = box.insert(run_at=At(START - seconds(1)))
    early = box.insert(run_at=At(START - seconds(9)))
    first, second = (box.insert(run_at=At(START - seconds(5))) for _ in range(2))
    urgent = box.insert(priority=1)
    least = box.insert(priority=-32768, run_at=At(START - seconds(99)))
    most = box.insert(priority=32767)
    assert box.fetched() == [most, urgent, early, first, second, late, least]


def test_the_order_holds_across_kinds_and_groups(box: Box) -> None:
    jobs = [
        box.insert(kind=f"k{number % 3}", group=f"g{number % 2}", group_limit=24)
        if number % 4
        else box.insert(kind=f"k{number % 3}")
        for number in range(24)
    ]
    assert box.fetched(limit=10) == jobs[:10]
    assert box.fetched() == jobs[10:]


def test_what_is_not_due_is_left(box: Box) -> None:
    later = box.insert(run_at=After(10), priority=9)
    due = box.insert()
    assert box.fetched() == [due]
    box.tick(9.999)
    assert box.fetched() == []
    box.tick(0.001)
    assert box.fetched() == [later]


def test_a_scheduled_job_of_higher_priority_goes_first_once_due(box: Box) -> None:
    waiting = [box.insert() for _ in range(3)]
    box.tick(1)
    urgent = box.insert(run_at=After(10), priority=9)
    assert box.fetched(limit=1) == waiting[:1]
    box.tick(10)
    assert box.fetched() == [urgent, *waiting[1:]]


def test_when_the_clock_steps_back_what_was_due_is_due_later(box: Box) -> None:
    job_id = box.insert()
    assert box.fetched("other") == []
    box.now -= seconds(60)
    result = box.fetch()
    assert (result.jobs, result.next_due_in) == ([], 60)
    assert box.row(job_id).state is JobState.SCHEDULED
    box.now += seconds(60)
    assert box.fetched() == [job_id]


def test_queues_in_strict_precedence(box: Box) -> None:
    low = [box.insert(queue="low", priority=100) for _ in range(2)]
    high = [box.insert(queue="high") for _ in range(2)]
    box.insert(queue="not asked for")
    assert box.fetched("high", "low", limit=3) == [*high, low[0]]
    assert box.fetched("high", "low", limit=3) == [low[1]]


def test_a_queues_own_limit(box: Box) -> None:
    a = [box.insert(queue="a") for _ in range(3)]
    b = [box.insert(queue="b") for _ in range(3)]
    wanted = (QueueFetch("a", 2), QueueFetch("b", 2))
    assert box.fetched(*wanted, limit=3) == [*a[:2], b[0]]
    assert box.fetched(QueueFetch("a", 0), QueueFetch("b", 1)) == [b[1]]


# -------------------------------------------------------------------- rule 2: one claim


def test_what_a_fetch_notes_on_the_row(box: Box) -> None:
    job_id = box.insert()
    box.tick(3)
    (row,) = box.fetch().jobs
    assert row == box.row(job_id)
    assert row.claim == Claim(job_id, box.session, 1)
    assert (row.state, row.attempt, row.worker_id) == (JobState.RUNNING, 1, "worker")
    assert (row.claimed_at, row.created_at) == (START + seconds(3), START)
    assert (row.started, row.cancel_requested) == (False, False)


def test_no_job_is_given_twice_while_claimed(box: Box) -> None:
    jobs = [box.insert() for _ in range(10)]
    other = box.open()
    assert box.fetched(limit=6) == jobs[:6]
    assert box.fetched(session=other) == jobs[6:]
    assert box.fetched() == []


@pytest.mark.parametrize("how", ["unknown", "closed", "ended"])
def test_a_session_that_is_not_open_claims_nothing(box: Box, how: str) -> None:
    job_id = box.insert()
    session = uuid4() if how == "unknown" else box.open(lease=1)
    if how == "closed":
        box.store.session_close(session, box.now)
    elif how == "ended":
        for _ in range(4):
            box.tick(10)
            box.beat()
        box.expire()
    assert box.fetch(session=session) == FetchResult(jobs=[], lost=True)
    assert box.row(job_id).state is JobState.AVAILABLE
    assert box.fetched() == [job_id]


def test_a_lapsed_lease_alone_does_not_refuse_a_fetch(box: Box) -> None:
    job_id = box.insert()
    box.tick(1000)
    assert box.fetched() == [job_id]


# -------------------------------------------------------------------- kinds


def test_only_the_kinds_asked_for_and_at_most_so_many(box: Box) -> None:
    a = [box.insert(kind="a") for _ in range(3)]
    b = [box.insert(kind="b") for _ in range(3)]
    c = box.insert(kind="c")
    assert box.fetched(kinds={"a": 2, "b": 9, "x": 9}) == [*a[:2], *b]
    assert box.fetched(kinds={"a": 0, "c": 1}) == [c]
    assert box.fetched(kinds={}) == []
    assert box.fetched(kinds=None) == [a[2]]


def test_kinds_are_counted_in_each_queue_for_itself(box: Box) -> None:
    one = [box.insert(queue="one") for _ in range(2)]
    two = [box.insert(queue="two") for _ in range(2)]
    wanted = (QueueFetch("one", 9, {"k": 1}), QueueFetch("two", 9, {"k": 2}))
    assert box.fetched(*wanted) == [one[0], *two]


# -------------------------------------------------------------------- pauses


def test_a_paused_queue_gives_nothing_and_says_so(box: Box) -> None:
    paused = box.insert(queue="paused")
    other = box.insert(queue="other")
    box.store.queue_set_paused("paused", paused=True)
    result = box.fetch("paused", "other")
    assert [row.id for row in result.jobs] == [other]
    assert (result.paused, result.next_due_in, result.more) == (("paused",), inf, False)
    alone = box.fetch("paused")
    assert (alone.jobs, alone.paused, alone.more) == ([], ("paused",), False)
    box.store.queue_set_paused("paused", paused=False)
    assert box.fetched("paused") == [paused]


# -------------------------------------------------------------------- rule 7: groups


def test_a_group_runs_at_most_its_limit(box: Box) -> None:
    group = [box.insert(group="g", group_limit=2) for _ in range(5)]
    free = box.insert()
    first = box.fetch()
    assert [row.id for row in first.jobs] == [*group[:2], free]
    assert box.fetched() == []
    claim = first.jobs[0].claim
    assert claim is not None
    box.finish(claim, "complete")
    assert box.fetched() == [group[2]]


def test_each_job_counts_by_the_limit_that_it_carries(box: Box) -> None:
    narrow = box.insert(group="g", group_limit=1)
    wide = [box.insert(group="g", group_limit=3) for _ in range(2)]
    narrow_2 = box.insert(group="g", group_limit=1)
    result = box.fetch()
    assert [row.id for row in result.jobs] == [narrow, *wide]
    for row in result.jobs[:2]:
        assert row.claim is not None
        box.finish(row.claim, "complete")
        assert box.fetched() == []
    last = result.jobs[2].claim
    assert last is not None
    box.finish(last, "complete")
    assert box.fetched() == [narrow_2]


def test_a_freed_group_gives_its_first_job_in_every_queue_and_kind(box: Box) -> None:
    box.insert(group="g", group_limit=1)
    claim = box.claim()
    parked = [
        box.insert(queue=queue, kind=kind, priority=priority, group="g", group_limit=1)
        for queue in ("a", "b")
        for kind in ("k", "l")
        for priority in (0, 1)
    ]
    assert box.fetched("a", "b") == []
    box.finish(claim, "complete")
    assert box.fetched("b", kinds={"l": 9}) == [parked[-1]]
    assert box.fetched("a", "b") == []


@pytest.mark.parametrize("how", ["retry", "snooze", "release", "discard", "close", "cancelled"])
def test_whatever_ends_a_claim_frees_its_place(box: Box, how: str) -> None:
    box.insert(group="g", group_limit=1, priority=-1)
    other = box.open()
    claim = box.claim(session=other)
    waiting = box.insert(group="g", group_limit=1)
    assert box.fetched() == []
    match how:
        case "close":
            box.store.session_close(other, box.now)
        case "cancelled":
            box.change(claim.job_id, "cancel")
            box.finish(claim, "release")
        case "retry" | "snooze" | "release" | "discard":
            box.finish(claim, how)
        case _:
            raise AssertionError(how)
    assert box.fetched() == [waiting], "the first of its group, the other stays parked"


def test_a_waiting_retry_does_not_block_its_group(box: Box) -> None:
    retried = box.insert(group="g", group_limit=1)
    box.finish(box.claim(), "retry", After(60))
    second = box.insert(group="g", group_limit=1)
    assert box.fetched() == [second]
    box.tick(60)
    assert box.fetched() == [], "due, and its group is full"
    assert box.row(retried).state is JobState.AVAILABLE


def test_parked_jobs_can_be_changed(box: Box) -> None:
    box.insert(group="g", group_limit=1)
    claim = box.claim()
    first, second, third = (box.insert(group="g", group_limit=1) for _ in range(3))
    box.change(first, "cancel")
    box.change(second, "reschedule", After(60))
    box.finish(claim, "complete")
    last = box.claim()
    assert last.job_id == third
    box.tick(60)
    assert box.fetched() == []
    box.change(third, "cancel")
    box.finish(last, "release")
    assert box.row(third).state is JobState.CANCELLED
    assert box.fetched() == [second]


def test_the_first_of_a_group_leaves_and_the_next_takes_its_place(box: Box) -> None:
    first, second = (box.insert(group="g", group_limit=1) for _ in range(2))
    box.change(first, "delete")
    assert box.fetched() == [second]


def test_an_earlier_job_of_a_group_overtakes(box: Box) -> None:
    box.insert(group="g", group_limit=1)
    earlier = box.insert(group="g", group_limit=1, run_at=At(START - seconds(5)))
    assert box.fetched() == [earlier]


def test_groups_with_other_names_do_not_meet(box: Box) -> None:
    jobs = [box.insert(group=f"g{number}", group_limit=1) for number in range(5)]
    assert box.fetched() == jobs


def test_groups_to_leave_are_left_where_they_are(box: Box) -> None:
    a = [box.insert(group="a", group_limit=9) for _ in range(3)]
    b = [box.insert(group="b", group_limit=1) for _ in range(2)]
    free = box.insert()
    assert box.fetched(skip=frozenset({"a", "x"})) == [b[0], free]
    assert box.fetched(skip=frozenset({"b"})) == a
    assert box.fetched(skip=frozenset({"a", "b"})) == []


# -------------------------------------------------------------------- more, next_due_in


def told(result: FetchResult) -> tuple[int, bool, float | None]:
    return len(result.jobs), result.more, result.next_due_in


def test_more_and_when_to_come_again(box: Box) -> None:
    assert told(box.fetch()) == (0, False, inf)
    for _ in range(3):
        box.insert()
    assert told(box.fetch(limit=2)) == (2, True, 0)
    assert told(box.fetch(limit=1)) == (1, False, inf)
    box.insert(run_at=After(7.5))
    assert told(box.fetch()) == (0, False, 7.5)
    box.insert(queue="low")
    box.insert(run_at=After(3), kind="other")
    assert told(box.fetch()) == (0, False, 3), "other queues do not count"
    assert told(box.fetch(kinds={"k": 1})) == (0, False, 7.5), "nor kinds left out"
    assert told(box.fetch("default", "low", limit=1)) == (1, False, 3)


def test_what_the_same_request_would_get_is_due_now(box: Box) -> None:
    for _ in range(4):
        box.insert()
    assert told(box.fetch(QueueFetch("default", 1))) == (1, True, 0)
    assert told(box.fetch(QueueFetch("default", 9, {"k": 1}))) == (1, True, 0)
    assert told(box.fetch(QueueFetch("default", 0))) == (0, False, inf)
    assert told(box.fetch(QueueFetch("default", 9, {"k": 0}))) == (0, False, inf)
    assert told(box.fetch(limit=0)) == (0, False, None)
    assert told(box.fetch(limit=2)) == (2, False, inf)


def test_a_full_group_is_not_waited_for(box: Box) -> None:
    for _ in range(2):
        box.insert(group="g", group_limit=1)
    assert told(box.fetch()) == (1, False, inf), "what is due is blocked, what is not does not wait"
    box.insert(group="g", group_limit=1, run_at=After(20))
    box.insert(group="g", group_limit=1, run_at=After(10))
    assert told(box.fetch()) == (0, False, 10), "a job due later counts, full group or not"
    box.insert(run_at=After(5))
    assert told(box.fetch()) == (0, False, 5)


def test_groups_to_leave_are_not_waited_for(box: Box) -> None:
    box.insert(group="g", group_limit=1)
    box.insert(queue="low", group="g", group_limit=1)
    box.insert()
    skip = frozenset({"g"})
    assert told(box.fetch("default", "low", limit=1, skip=skip)) == (1, False, inf)
    assert told(box.fetch("default", "low", limit=1)) == (1, False, inf), "now the group is full"
