from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from goncordia_sql.postgres.marks import LATE_FIND_BOUND, SLACK, WHOLE, Marks, Ranges
from goncordia_sql.rows import READY_ROW

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Seconds:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def marks(seconds: Seconds) -> Marks:
    return Marks(seconds)


def row(nice: int, second: float) -> tuple[Any, ...]:
    values: dict[str, Any] = dict.fromkeys(READY_ROW)
    values["id"] = UUID(int=round(second))
    values["nice"] = nice
    values["run_at"] = NOON + timedelta(seconds=second)
    return tuple(values.values())


def note(marks: Marks, ranges: Ranges, *rows: tuple[int, float], full: bool = True) -> None:
    marks.note("q", ranges, [row(*each) for each in rows], NOON, marks.now(), full=full)


def places(ranges: Ranges) -> list[tuple[int, datetime, int]]:
    return list(zip(ranges.first, ranges.since, ranges.last, strict=True))


def test_the_first_look_is_from_the_head_to_the_end(marks: Marks) -> None:
    assert marks.ranges("q") is WHOLE


def test_the_next_begins_where_the_last_claim_began(marks: Marks) -> None:
    note(marks, WHOLE, (0, 10.0), (0, 11.0))
    marks.ranges("q")
    ranges = marks.ranges("q")
    assert not ranges.whole
    (below, at, above) = places(ranges)
    assert at == (0, NOON + timedelta(seconds=10), 0)
    assert ranges.since_id[1] == UUID(int=10)
    # All other priorities from their heads: what comes before it first, what comes after it last.
    assert (below[2], above[0]) == (-1, 1)
    assert below[1] == above[1] == WHOLE.since[0]


def test_several_times_a_second_it_looks_back(marks: Marks, seconds: Seconds) -> None:
    note(marks, WHOLE, (0, 10.0))
    exact, back = NOON + timedelta(seconds=10), NOON + timedelta(seconds=10) - SLACK
    assert marks.ranges("q").since[1] == back
    assert marks.ranges("q").since[1] == exact
    seconds.now += 0.09
    assert marks.ranges("q").since[1] == exact
    seconds.now += 0.02
    ranges = marks.ranges("q")
    assert (ranges.since[1], ranges.since_id[1]) == (back, UUID(int=0))
    assert marks.ranges("q").since[1] == exact


def test_queues_have_marks_of_their_own(marks: Marks) -> None:
    note(marks, WHOLE, (0, 10.0))
    assert marks.ranges("other") is WHOLE


@pytest.mark.parametrize("nices", [(0,), (-5, 0), (-5, -4, 7), tuple(range(16))])
def test_the_ranges_leave_no_priority_out_and_none_comes_twice(
    marks: Marks, nices: tuple[int, ...]
) -> None:
    note(marks, WHOLE, *((nice, 1.0) for nice in nices))
    ranges = marks.ranges("q")
    assert ranges.first[0] == WHOLE.first[0]
    assert ranges.last[-1] == WHOLE.last[0]
    assert [last + 1 for last in ranges.last[:-1]] == ranges.first[1:]


def test_of_many_priorities_those_claimed_of_longest_ago_lose_their_mark(marks: Marks) -> None:
    note(marks, WHOLE, *((nice, 1.0) for nice in range(16)))
    note(marks, marks.ranges("q"), (0, 2.0), (100, 2.0))
    marked = [first for first, since, _ in places(marks.ranges("q")) if since > WHOLE.since[0]]
    assert marked == [0, *range(2, 16), 100]


def test_while_results_are_full_the_head_is_looked_at_in_time(
    marks: Marks, seconds: Seconds
) -> None:
    note(marks, WHOLE, (0, 1.0))
    seconds.now += LATE_FIND_BOUND / 2 - 0.01
    assert not marks.ranges("q").whole
    note(marks, marks.ranges("q"), (0, 2.0))
    seconds.now += 0.01
    # A look from a mark is none from the head: the bound counts from that.
    assert marks.ranges("q").whole


def test_after_a_short_result_the_head_is_looked_at_at_once(marks: Marks) -> None:
    note(marks, WHOLE, (0, 1.0))
    note(marks, marks.ranges("q"), (0, 2.0), full=False)
    assert marks.ranges("q").whole
    assert not marks.may_come_short("q")


def test_but_not_where_that_was_slow_a_moment_ago(marks: Marks, seconds: Seconds) -> None:
    began = marks.now()
    seconds.now += 0.05
    marks.note("q", WHOLE, [row(0, 1.0)], NOON, began, full=False)
    assert marks.may_come_short("q")
    assert not marks.ranges("q").whole
    seconds.now += 0.5
    assert not marks.may_come_short("q")
    assert marks.ranges("q").whole


def test_jobs_for_later_are_looked_for_from_a_little_before_the_last_look(marks: Marks) -> None:
    assert WHOLE.later_since < NOON - timedelta(days=1)
    note(marks, WHOLE, (0, 1.0))
    assert marks.ranges("q").later_since == NOON - SLACK


def test_a_mark_goes_back_to_an_older_job(marks: Marks) -> None:
    note(marks, WHOLE, (0, 10.0))
    note(marks, WHOLE, (0, 3.0), (0, 10.0))
    marks.ranges("q")
    assert places(marks.ranges("q"))[1][1] == NOON + timedelta(seconds=3)


def test_one_that_another_fetch_has_put_back_stays(marks: Marks, seconds: Seconds) -> None:
    note(marks, WHOLE, (0, 10.0))
    begun = marks.ranges("q")
    note(marks, WHOLE, (0, 3.0))
    note(marks, begun, (0, 11.0))
    assert places(marks.ranges("q"))[1][1] == NOON + timedelta(seconds=3)


def test_a_look_from_the_head_counts_from_its_beginning(marks: Marks, seconds: Seconds) -> None:
    began = marks.now()
    seconds.now += LATE_FIND_BOUND / 2 + 1
    marks.note("q", WHOLE, [row(0, 1.0)], NOON, began, full=True)
    assert marks.ranges("q").whole
