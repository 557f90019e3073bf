"""Wall clocks that are put forward and back: what is due on those nights, and on all others."""

from __future__ import annotations

import functools
import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from goncordia import PeriodicJob, cron
from goncordia.periodic.job import CatchUp

from .daemon import daemon
from .kit import FULL, Kit, Report, between, moments, utc

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)

# On the wall, forward: Paris and New York 2:00 → 3:00, Lord Howe 2:00 → 2:30, Havana 0:00 → 1:00;
# back: Paris 3:00 → 2:00, New York 2:00 → 1:00, Lord Howe 2:00 → 1:30, Havana 1:00 → 0:00.
NIGHTS = {
    ("Europe/Paris", "forward"): ("2026-03-28 23:00", "2026-03-29 05:00"),
    ("Europe/Paris", "back"): ("2026-10-24 22:00", "2026-10-25 05:00"),
    ("America/New_York", "forward"): ("2026-03-08 05:00", "2026-03-08 11:00"),
    ("America/New_York", "back"): ("2026-11-01 04:00", "2026-11-01 11:00"),
    ("Australia/Lord_Howe", "forward"): ("2026-10-03 13:30", "2026-10-03 18:00"),
    ("Australia/Lord_Howe", "back"): ("2026-04-04 13:00", "2026-04-04 18:00"),
    ("America/Havana", "forward"): ("2026-03-08 04:00", "2026-03-08 09:00"),
    ("America/Havana", "back"): ("2026-11-01 03:00", "2026-11-01 09:00"),
}
"""From midnight of the night, or shortly before it, to the morning; in UTC."""

TABLE = [
    # A time that is skipped is due when the clock has been put forward.
    ("Europe/Paris", "forward", "30 2 * * *", ["01:00"]),
    ("America/New_York", "forward", "30 2 * * *", ["07:00"]),
    ("Australia/Lord_Howe", "forward", "15 2 * * *", ["15:30"]),
    ("America/Havana", "forward", "30 0 * * *", ["05:00"]),
    ("America/Havana", "forward", "0 0 * * *", ["05:00"]),
    # With others that are skipped, or due then anyway, once.
    ("Europe/Paris", "forward", "15,45 2 * * *", ["01:00"]),
    ("Europe/Paris", "forward", "0 2,3 * * *", ["01:00"]),
    ("Europe/Paris", "forward", "30 2,3 * * *", ["01:00", "01:30"]),
    # A time that comes twice is due the first time.
    ("Europe/Paris", "back", "30 2 * * *", ["00:30"]),
    ("America/New_York", "back", "30 1 * * *", ["05:30"]),
    ("Australia/Lord_Howe", "back", "45 1 * * *", ["14:45"]),
    ("America/Havana", "back", "30 0 * * *", ["04:30"]),
    ("America/Havana", "back", "0 0 * * *", ["04:00"]),
    ("Europe/Paris", "back", "0 3 * * *", ["02:00"]),
    # What goes by the clock is due in no hour that is skipped, and in both that are alike.
    ("Europe/Paris", "forward", "0 * * * *", [f"{hour:02}:00" for hour in range(6)]),
    ("Europe/Paris", "forward", "*/30 2 * * *", []),
    ("Europe/Paris", "forward", "0 */2 * * *", ["02:00", "04:00"]),
    ("America/New_York", "forward", "*/30 2 * * *", []),
    ("Australia/Lord_Howe", "forward", "*/15 2 * * *", ["15:30", "15:45"]),
    ("Australia/Lord_Howe", "forward", "*/20 3 * * *", ["16:00", "16:20", "16:40"]),
    ("America/Havana", "forward", "*/30 0 * * *", []),
    ("Europe/Paris", "back", "*/30 2 * * *", ["00:00", "00:30", "01:00", "01:30"]),
    ("America/New_York", "back", "0 */1 * * *", [f"{hour:02}:00" for hour in range(5, 12)]),
    ("Australia/Lord_Howe", "back", "*/15 1 * * *", [
        "14:00", "14:15", "14:30", "14:45", "15:00", "15:15",
    ]),
    ("America/Havana", "back", "*/30 0 * * *", ["04:00", "04:30", "05:00", "05:30"]),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "night", "expression", "times"), TABLE)
class TestTheNights:
    def expected(self, zone: str, night: str, times: list[str]) -> list[datetime]:
        start, end = (utc(text) for text in NIGHTS[zone, night])
        found = []
        for time in times:
            hour, minute = (int(part) for part in time.split(":"))
            at = start.replace(hour=hour, minute=minute)
            found.append(at if at > start else at + DAY)
        assert all(start < at <= end for at in found)
        return found

    def test_by_the_schedule(
        self, zone: str, night: str, expression: str, times: list[str]
    ) -> None:
        start, end = (utc(text) for text in NIGHTS[zone, night])
        assert between(cron(expression, tz=zone), start, end) == self.expected(zone, night, times)

    def test_by_a_daemon(self, zone: str, night: str, expression: str, times: list[str]) -> None:
        """The test's own stand-in for the truth says the same."""
        start, end = (utc(text) for text in NIGHTS[zone, night])
        found = list(daemon(expression, ZoneInfo(zone), start, end))
        assert found == self.expected(zone, night, times)

    async def test_by_a_scheduler_that_runs(
        self, zone: str, night: str, expression: str, times: list[str]
    ) -> None:
        start, end = NIGHTS[zone, night]
        kit = Kit(start)
        job = PeriodicJob(cron(expression, tz=zone), Report())
        async with kit.scheduler(job, lease=3600):
            await kit.until(end)
        assert await kit.times() == self.expected(zone, night, times)

    @pytest.mark.parametrize("catch_up", ["all", "latest", "skip"])
    async def test_by_a_scheduler_that_was_away(
        self, zone: str, night: str, expression: str, times: list[str], catch_up: CatchUp
    ) -> None:
        start, end = NIGHTS[zone, night]
        kit = Kit(start)
        job = PeriodicJob(cron(expression, tz=zone), Report(), catch_up=catch_up)
        async with kit.scheduler(job):
            pass
        kit.clock.set(utc(end))
        await kit.clock.advance(100)  # so that nothing is only a little late
        async with kit.scheduler(job):
            await kit.clock.settle()
        missed = self.expected(zone, night, times)
        expected = {"all": missed, "latest": missed[-1:], "skip": []}[catch_up]
        assert await kit.times() == expected


# -------------------------------------------------------------------- all other nights

FIFTY = [
    "Africa/Cairo", "Africa/Casablanca", "Africa/Johannesburg", "Africa/Lagos", "America/Adak",
    "America/Anchorage", "America/Argentina/Buenos_Aires", "America/Asuncion", "America/Bogota",
    "America/Caracas", "America/Chicago", "America/Denver", "America/Godthab", "America/Halifax",
    "America/Havana", "America/Los_Angeles", "America/Mexico_City", "America/Miquelon",
    "America/New_York", "America/Phoenix", "America/Santiago", "America/Sao_Paulo",
    "America/Scoresbysund", "America/St_Johns", "Antarctica/Troll", "Asia/Amman", "Asia/Beirut",
    "Asia/Dhaka", "Asia/Gaza", "Asia/Jerusalem", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Shanghai",
    "Asia/Tehran", "Asia/Tokyo", "Atlantic/Azores", "Australia/Adelaide", "Australia/Brisbane",
    "Australia/Lord_Howe", "Australia/Sydney", "Europe/Berlin", "Europe/Dublin", "Europe/Istanbul",
    "Europe/Lisbon", "Europe/London", "Europe/Moscow", "Pacific/Apia", "Pacific/Auckland",
    "Pacific/Chatham", "Pacific/Easter",
]  # fmt: skip
YEARS = range(2020, 2030)


@functools.cache
def changes(zone: ZoneInfo) -> list[datetime]:
    """The hours in those years in which the clock is put forward or back."""
    found = []
    day, end = datetime(YEARS[0], 1, 1, tzinfo=UTC), datetime(YEARS[-1] + 1, 1, 1, tzinfo=UTC)
    while day < end:
        ahead = day.astimezone(zone).utcoffset()
        if ahead != (day + DAY).astimezone(zone).utcoffset():
            hours = (day + n * HOUR for n in range(1, 25))
            found.append(next(at for at in hours if at.astimezone(zone).utcoffset() != ahead))
        day += DAY
    return found


EXPRESSIONS = [
    "* * * * *",
    "0 * * * *",
    "*/7 */3 * * *",
    "30 2 * * *",
    "*/20 0-3 * * *",
    "0 0 * * *",
    "0,30 0-3 * * *",
    "59 23 * * 6,0",
    "15 1,2,3 */2 * 1-5",
    "5 4 1-7 * 0",
    "0 12 29 2 *",
    "45 1 31 3,10 5",
]


@pytest.mark.parametrize("zone", FIFTY)
def test_every_change_of_a_clock_is_as_a_daemon_would_have_it(zone: str) -> None:
    rng = random.Random(zone)
    info = ZoneInfo(zone)
    nights = changes(info) or [datetime(2024, 2, 28, tzinfo=UTC)]
    for night in nights if FULL else rng.sample(nights, min(len(nights), 2)):
        for expression in EXPRESSIONS if FULL else rng.sample(EXPRESSIONS, 3):
            start, end = night - 5 * HOUR, night + 5 * HOUR
            found = between(cron(expression, tz=zone), start, end)
            assert found == list(daemon(expression, info, start, end)), (night, expression)


@pytest.mark.parametrize("zone", FIFTY)
def test_ten_years_are_as_another_library_has_them(zone: str) -> None:
    """But for the nights on which a clock is changed: there it has another policy."""
    rng = random.Random(zone)
    info = ZoneInfo(zone)
    # A change touches what is looked up from the day before to the day after.
    near = {day.date() + n * DAY for day in changes(info) for n in (-1, 0, 1, 2)}
    rare = ["30 2 * * *", "0 9 * * 1-5", "15 10 1,15 * *", "5 4 1-7 * 0", "0 12 29 2 *"]
    compared = 0
    for expression in rare if FULL else rng.sample(rare, 2):
        schedule = cron(expression, tz=zone)
        starts = [
            datetime(year, month, day, 12, tzinfo=UTC)
            for year in YEARS
            for month in range(1, 13)
            for day in range(1, 29)
        ]
        for start in starts if FULL else rng.sample(starts, 40):
            theirs = croniter(expression, start.astimezone(info)).get_next(datetime)
            ours = schedule.after(start)
            assert ours is not None
            if {ours.date(), theirs.astimezone(UTC).date()} & near or start.date() in near:
                continue
            compared += 1
            assert ours == theirs, start
            assert schedule.until(ours) == ours
    assert compared > 30


@given(
    zone=st.sampled_from(FIFTY),
    expression=st.sampled_from(EXPRESSIONS),
    moment=moments(2020, 2030),
)
def test_forward_and_back_agree(zone: str, expression: str, moment: datetime) -> None:
    schedule = cron(expression, tz=zone)
    after = schedule.after(moment)
    assert after is not None
    assert after > moment
    assert schedule.until(after) == after
    until = schedule.until(moment)
    assert until is not None
    assert until <= moment
    assert schedule.until(after - datetime.resolution) == until
    assert schedule.after(until) == after
