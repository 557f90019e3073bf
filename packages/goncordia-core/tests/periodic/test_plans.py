"""What is to be enqueued, given a cursor and the time; no scheduler, no backend."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goncordia import ConfigurationError, PeriodicJob, Schedule, cron, every
from goncordia.periodic.cursors import Cursor
from goncordia.periodic.job import CatchUp
from goncordia.periodic.plans import current, plan

from .kit import Report, moments, utc

NOON = utc("2026-01-01 12:00")
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def settle(
    entry: PeriodicJob, cursor: Cursor, now: datetime, most: int = 100
) -> tuple[list[datetime], Cursor]:
    """Plan until nothing is due: all that is enqueued, and the last cursor."""
    enqueued: list[datetime] = []
    for _ in range(100_000):
        todo = plan(entry, cursor, now, most)
        if todo is None:
            return enqueued, cursor
        assert len(todo.enqueue) <= most
        assert todo.cursor != cursor
        enqueued += todo.enqueue
        cursor = todo.cursor
    raise AssertionError("it goes on for ever")


def at(*times: str) -> list[datetime]:
    return [utc(f"2026-01-01 {time}") for time in times]


class TestANewEntry:
    def test_is_due_from_now_on(self) -> None:
        cursor = current(PeriodicJob(every(HOUR), Report()), None, NOON)
        assert cursor == Cursor("report", "every 1:00:00", NOON, None, NOON + HOUR)

    def test_is_due_from_its_start_on(self) -> None:
        entry = PeriodicJob(cron("*/30 * * * *"), Report(), start_at=NOON + 3 * HOUR)
        assert current(entry, None, NOON).next == NOON + 3 * HOUR

    def test_that_started_long_ago_has_missed_what_was_since(self) -> None:
        entry = PeriodicJob(
            every(HOUR), Report(), start_at=NOON - 3 * HOUR + MINUTE, catch_up="all"
        )
        enqueued, cursor = settle(entry, current(entry, None, NOON), NOON)
        assert enqueued == at("09:01", "10:01", "11:01")
        assert cursor.next == NOON + MINUTE

    def test_that_starts_later_than_it_did(self) -> None:
        entry = PeriodicJob(every(HOUR), Report(), start_at=NOON + 10 * HOUR)
        cursor = current(entry, None, NOON)
        sooner = PeriodicJob(every(HOUR), Report(), start_at=NOON + 5 * HOUR)
        assert current(sooner, cursor, NOON).next == NOON + 5 * HOUR
        later = PeriodicJob(every(HOUR), Report(), start_at=NOON + 20 * HOUR)
        assert current(later, cursor, NOON).next == NOON + 20 * HOUR


class TestIntervals:
    def test_are_counted_from_1970(self) -> None:
        assert every(7 * 86400).after(NOON) == utc("2026-01-08 00:00")
        assert every(HOUR).after(NOON) == NOON + HOUR
        assert every(HOUR).until(NOON) == NOON

    def test_are_counted_from_the_start_of_the_entry(self) -> None:
        entry = PeriodicJob(every(7 * 86400), Report(), start_at=utc("2026-01-02 09:00"))
        assert current(entry, None, NOON).next == utc("2026-01-02 09:00")
        assert entry.text == "every 7 days, 0:00:00 from 2026-01-02T09:00:00+00:00"

    @given(
        st.floats(0.1, 1e9),
        moments(1971, 9000),
    )
    def test_forward_and_back_agree(self, seconds: float, moment: datetime) -> None:
        schedule = every(seconds)
        until, after = schedule.until(moment), schedule.after(moment)
        assert until is not None
        assert until <= moment
        if after is not None:
            assert after > moment
            assert after - until == timedelta(seconds=seconds)
            assert schedule.until(after) == after

    def test_end_with_the_calendar(self) -> None:
        end = datetime.max.replace(tzinfo=NOON.tzinfo)
        assert every(HOUR).after(end) is None
        assert cron("0 0 * * *").after(end - HOUR) is None


class TestCatchingUp:
    @pytest.mark.parametrize(
        ("catch_up", "expected"),
        [
            ("all", at("12:30", "13:00", "13:30", "14:00", "14:30")),
            ("latest", at("14:30")),
            ("skip", []),
        ],
    )
    @pytest.mark.parametrize("most", [1, 2, 100])
    def test_after_a_pause(self, catch_up: CatchUp, expected: list[datetime], most: int) -> None:
        entry = PeriodicJob(cron("*/30 * * * *"), Report(), catch_up=catch_up)
        now = NOON + 2.75 * HOUR
        enqueued, cursor = settle(entry, current(entry, None, NOON), now, most)
        assert enqueued == expected
        assert cursor.next == NOON + 3 * HOUR
        assert cursor.last == (expected[-1] if expected else None)

    @pytest.mark.parametrize("catch_up", ["all", "latest", "skip"])
    def test_what_is_only_just_late_is_not_missed(self, catch_up: CatchUp) -> None:
        entry = PeriodicJob(every(HOUR), Report(), catch_up=catch_up)
        enqueued, _ = settle(entry, current(entry, None, NOON), NOON + HOUR + MINUTE)
        assert enqueued == [NOON + HOUR]

    def test_is_skipped_when_it_is_later_than_that(self) -> None:
        entry = PeriodicJob(every(HOUR), Report(), catch_up="skip", grace=120)
        cursor = current(entry, None, NOON)
        assert settle(entry, cursor, NOON + HOUR + 2 * MINUTE)[0] == [NOON + HOUR]
        assert settle(entry, cursor, NOON + HOUR + 2.01 * MINUTE)[0] == []

    def test_skipping_enqueues_one_of_those_that_are_only_just_late(self) -> None:
        entry = PeriodicJob(every(10), Report(), catch_up="skip")
        enqueued, _ = settle(entry, current(entry, None, NOON), NOON + HOUR)
        assert enqueued == [NOON + HOUR]

    def test_all_is_bounded_by_the_newest(self) -> None:
        entry = PeriodicJob(cron("* * * * *"), Report(), catch_up="all", catch_up_limit=3)
        cursor = current(entry, None, NOON)
        assert settle(entry, cursor, NOON + 3 * MINUTE)[0] == at("12:01", "12:02", "12:03")
        assert settle(entry, cursor, NOON + 4 * MINUTE)[0] == at("12:02", "12:03", "12:04")
        assert settle(entry, cursor, NOON + 9000 * MINUTE)[0] == [
            NOON + n * MINUTE for n in (8998, 8999, 9000)
        ]

    @pytest.mark.parametrize("catch_up_limit", [500, 10_000])
    @pytest.mark.parametrize("schedule", [every(60), cron("* * * * *", tz="Europe/Paris")])
    def test_all_is_walked_through_once(
        self, schedule: Schedule, catch_up_limit: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And not anew for each lot, which would keep others from their turn."""
        steps = Counter[str]()
        for name in ("after", "until"):
            found = getattr(type(schedule), name)

            def counted(
                self: Schedule, moment: datetime, name: str = name, found: Any = found
            ) -> datetime | None:
                steps[name] += 1
                return cast("datetime | None", found(self, moment))

            monkeypatch.setattr(type(schedule), name, counted)
        entry = PeriodicJob(schedule, Report(), catch_up="all", catch_up_limit=catch_up_limit)
        cursor = current(entry, None, NOON)
        enqueued, _ = settle(entry, cursor, NOON + 2000 * MINUTE)
        wanted = min(catch_up_limit, 2000)
        assert enqueued == [NOON + (2000 - wanted + n) * MINUTE for n in range(1, wanted + 1)]
        assert steps.total() <= 3 * 2000

    def test_all_keeps_to_its_lots_while_time_goes_on(self) -> None:
        """What is wanted once stays so: the newest count from the first look."""
        entry = PeriodicJob(every(60), Report(), catch_up="all", catch_up_limit=5)
        cursor = current(entry, None, NOON)
        enqueued: list[datetime] = []
        for minute in range(20, 40):
            while (todo := plan(entry, cursor, NOON + minute * MINUTE, 2)) is not None:
                enqueued += todo.enqueue
                cursor = todo.cursor
        assert enqueued == [NOON + n * MINUTE for n in range(16, 40)]

    def test_what_is_left_out_is_told(self) -> None:
        cursor = current(PeriodicJob(every(60), Report()), None, NOON)
        for catch_up, left_out in [("all", False), ("latest", True), ("skip", True)]:
            entry = PeriodicJob(every(60), Report(), catch_up=catch_up)  # type: ignore[arg-type]
            todo = plan(entry, cursor, NOON + 5 * MINUTE, 100)
            assert todo is not None
            assert todo.left_out is left_out

    def test_a_year_of_seconds_is_planned_at_once(self) -> None:
        """It takes no walk through what was missed."""
        for schedule in (every(1), cron("* * * * *", tz="Europe/Paris")):
            entry = PeriodicJob(schedule, Report(), catch_up="latest")
            cursor = current(entry, None, NOON)
            enqueued, _ = settle(entry, cursor, NOON + timedelta(days=3650))
            assert enqueued == [NOON + timedelta(days=3650)]


class TestAChangedEntry:
    """It goes on where it was: what the new schedule names since then counts as missed."""

    @pytest.mark.parametrize(
        ("catch_up", "expected"), [("all", at("13:00", "14:00")), ("latest", at("14:00"))]
    )
    def test_keeps_how_far_it_has_come(self, catch_up: CatchUp, expected: list[datetime]) -> None:
        daily = PeriodicJob(cron("0 12 * * *"), Report())
        _, cursor = settle(daily, current(daily, None, NOON - HOUR), NOON)
        hourly = PeriodicJob(cron("0 10-18 * * *"), Report(), catch_up=catch_up)
        changed = current(hourly, cursor, NOON + 2.5 * HOUR)
        assert changed == Cursor("report", "0 10-18 * * * UTC", NOON, NOON, NOON + HOUR)
        assert settle(hourly, changed, NOON + 2.5 * HOUR)[0] == expected

    def test_repeats_nothing_that_was_settled(self) -> None:
        late = PeriodicJob(cron("0 12 * * *"), Report())
        _, cursor = settle(late, current(late, None, NOON - HOUR), NOON)
        early = PeriodicJob(cron("0 9 * * *"), Report(), catch_up="all")
        assert current(early, cursor, NOON + HOUR).next == utc("2026-01-02 09:00")


class TestFunctions:
    @staticmethod
    def doubling(last: datetime | None) -> datetime | None:
        """At once, then after a minute, two, four, eight, and never again."""
        if last is None:
            return None
        return last + (last - NOON or MINUTE) if last < NOON + 8 * MINUTE else None

    def test_none_is_now_and_then_never(self) -> None:
        entry = PeriodicJob(self.doubling, Report(), catch_up="all")
        cursor = current(entry, None, NOON)
        assert (cursor.upto, cursor.next) == (None, NOON)
        enqueued, cursor = settle(entry, cursor, NOON + HOUR)
        assert enqueued == [NOON + n * MINUTE for n in (0, 1, 2, 4, 8)]
        assert cursor.next is None
        assert current(entry, cursor, NOON + 2 * HOUR).next is None

    def test_the_first_time_may_be_of_their_own_choice(self) -> None:
        entry = PeriodicJob(lambda last: NOON + HOUR if last is None else None, Report())
        cursor = current(entry, None, NOON)
        assert cursor.next == NOON + HOUR
        assert settle(entry, cursor, NOON + HOUR)[0] == [NOON + HOUR]

    def test_nothing_is_due_before_the_start(self) -> None:
        entry = PeriodicJob(lambda last: last, Report(), start_at=NOON + HOUR)
        assert current(entry, None, NOON).next == NOON + HOUR

    @pytest.mark.parametrize(
        ("catch_up", "expected"), [("all", [8, 9, 10]), ("latest", [10]), ("skip", [])]
    )
    def test_catch_up_like_others(self, catch_up: CatchUp, expected: list[int]) -> None:
        def each_minute(last: datetime | None) -> datetime | None:
            return NOON if last is None else last + MINUTE

        entry = PeriodicJob(each_minute, Report(), catch_up=catch_up, catch_up_limit=3, grace=20)
        cursor = current(entry, None, NOON)
        enqueued, cursor = settle(entry, cursor, NOON + 10.5 * MINUTE)
        assert enqueued == [NOON + n * MINUTE for n in expected]
        assert (cursor.upto, cursor.next) == (NOON + 10 * MINUTE, NOON + 11 * MINUTE)

    def test_what_they_say_is_kept_before_it_is_enqueued(self) -> None:
        """Who comes next, and hears something else of the function, enqueues the same."""
        steps = count(60)

        def moody(last: datetime | None) -> datetime | None:
            return NOON if last is None else last + timedelta(seconds=next(steps))

        for catch_up in ("all", "latest"):
            entry = PeriodicJob(moody, Report(), catch_up=catch_up)
            cursor = current(entry, None, NOON)
            now = NOON + 10 * MINUTE
            while (todo := plan(entry, cursor, now, 100)) is not None:
                assert len(todo.enqueue) <= 1
                assert todo.enqueue in ((), (cursor.next,))
                cursor = todo.cursor

    def test_a_long_walk_is_taken_in_parts(self) -> None:
        asked = 0

        def each_second(last: datetime | None) -> datetime | None:
            nonlocal asked
            asked += 1
            return NOON if last is None else last + timedelta(seconds=1)

        entry = PeriodicJob(each_second, Report())
        cursor = current(entry, None, NOON)
        todo = plan(entry, cursor, NOON + 24 * HOUR, 100)
        assert todo is not None
        assert todo.enqueue == ()
        assert asked <= 10_001
        enqueued, _ = settle(entry, cursor, NOON + 24 * HOUR)
        assert enqueued == [NOON + 24 * HOUR]

    def test_a_changed_function_is_asked_anew(self) -> None:
        def one(last: datetime | None) -> datetime | None:
            return last and last + MINUTE

        def other(last: datetime | None) -> datetime | None:
            return last and last + HOUR

        cursor = current(PeriodicJob(one, Report()), None, NOON)
        _, cursor = settle(PeriodicJob(one, Report()), cursor, NOON)
        assert cursor.next == NOON + MINUTE
        assert current(PeriodicJob(other, Report()), cursor, NOON).next == NOON + HOUR

    @pytest.mark.parametrize("back", [timedelta(0), timedelta(seconds=1)])
    def test_that_go_back_are_refused(self, back: timedelta) -> None:
        entry = PeriodicJob(lambda last: last and last - back, Report())
        cursor = current(entry, None, NOON)
        with pytest.raises(ConfigurationError, match="is not after the occurrence that it was"):
            plan(entry, cursor, NOON, 100)

    def test_they_may_take_the_place_of_a_rule_and_the_other_way_round(self) -> None:
        rule = PeriodicJob(every(HOUR), Report())
        function = PeriodicJob(lambda last: last and last + MINUTE, Report())
        cursor = current(function, current(rule, None, NOON), NOON)
        assert cursor.next == NOON + MINUTE
        fresh = current(function, None, NOON)
        assert current(rule, fresh, NOON).next == NOON + HOUR
