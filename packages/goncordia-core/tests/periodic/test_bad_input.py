"""Whatever is wrong is answered with the field, the value and what would be right.

What mypy is told to ignore here is of the wrong type on purpose.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, ClassVar

import msgspec
import pytest

from goncordia import (
    ConfigurationError,
    CronScheduler,
    InsertOpts,
    PayloadError,
    PeriodicJob,
    UniqueOpts,
    UnsupportedError,
    cron,
    every,
)
from goncordia.memory import MemoryDriver

from .kit import Kit, Report

GOOD = every(60)
NAIVE = datetime.fromisoformat("2026-01-01")


@dataclass
class Anything:
    kind: ClassVar[str] = "anything"
    what: Any


async def later(last: datetime | None) -> datetime | None:
    return last


SCHEDULES: list[tuple[Callable[[], object], str]] = [
    (lambda: every(0), "every: 0 is not a positive number of seconds (or timedelta)"),
    (lambda: every(timedelta(0)), "every: datetime.timedelta(0) is not a positive number"),
    (lambda: every(-5), "every: -5 is not a positive number of seconds"),
    (lambda: every(0.01), "every: 0.01 is not at least 0.1 s"),
    (lambda: every(float("nan")), "every: nan is not a positive number of seconds"),
    (lambda: every("5 minutes"), "every: '5 minutes' is not a positive number of seconds"),  # type: ignore[arg-type]
    (lambda: every(10**12), "every: 1000000000000 is not at most a hundred years"),
    (lambda: cron(""), "cron: '' is empty"),
    (lambda: cron(5), "cron: 5 is not a str"),  # type: ignore[arg-type]
    (lambda: cron("* * * *"), "cron: '* * * *' is not five fields: minute 0-59, hour 0-23"),
    (lambda: cron("* * * *"), "; it has 4"),
    (lambda: cron("0 0 12 * * *"), "; it has 6"),
    (lambda: cron("@daily"), "; it has 1"),
    (lambda: cron("61 * * * *"), "cron: '61 * * * *': the minute is wrong; give five fields"),
    (lambda: cron("0 24 * * *"), "cron: '0 24 * * *': the hour is wrong"),
    (lambda: cron("0 0 0 * *"), "cron: '0 0 0 * *': the day-of-month is wrong"),
    (lambda: cron("0 0 * FOO *"), "cron: '0 0 * FOO *': the month is wrong"),
    (lambda: cron("0 0 * * 8"), "cron: '0 0 * * 8': the day-of-week is wrong"),
    (lambda: cron("*/0 * * * *"), "the minute is wrong"),
    (lambda: cron("5-1 * * * *"), "the minute is wrong"),
    (
        lambda: cron("0 0 30 2 *"),
        "cron: '0 0 30 2 *' is not ever due: none of its months has such a day",
    ),
    (lambda: cron("0 0 32 2 *"), "cron: '0 0 32 2 *': the day-of-month is wrong; give five"),
    (lambda: cron("0 0 31 2,4,6,9,11 *"), "is not ever due: none of its months has such a day"),
    (lambda: cron("0 0 */20 * 1L"), "cron: '0 0 */20 * 1L' is not ever due: no day fits within 50"),
    (lambda: cron("* " * 200), "at most 200 are allowed"),
    (lambda: cron("0 0 * * *\x00"), "free of control characters"),
    (
        lambda: cron("0 0 * * *", tz="Europe/Atlantis"),
        "tz: 'Europe/Atlantis' is not a zone of the tz database, such as 'Europe/Paris'",
    ),
    (lambda: cron("0 0 * * *", tz="../../etc/passwd"), "tz: '../../etc/passwd' is not a zone"),
    (lambda: cron("0 0 * * *", tz="Europe"), "tz: 'Europe' is not a zone"),
    (lambda: cron("0 0 * * *", tz=""), "tz: '' is empty"),
    (lambda: cron("0 0 * * *", tz=None), "tz: None is not a str"),  # type: ignore[arg-type]
    (lambda: cron("0 0 * * *", tz=UTC), "tz: datetime.timezone.utc is not a str"),  # type: ignore[arg-type]
    (
        lambda: cron("0 0 * * *").after(NAIVE),
        "moment: datetime.datetime(2026, 1, 1, 0, 0) is not aware",
    ),
    (
        lambda: cron("0 0 * * *").until(NAIVE),
        "moment: datetime.datetime(2026, 1, 1, 0, 0) is not aware",
    ),
    (lambda: GOOD.after(NAIVE), "moment: datetime.datetime(2026, 1, 1, 0, 0) is not aware"),
    (lambda: GOOD.until("now"), "moment: 'now' is not a datetime"),  # type: ignore[arg-type]
]

JOBS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: PeriodicJob("* * * * *", Report()),  # type: ignore[arg-type]
        "periodic job 'report': schedule: '* * * * *' is not every(…), cron(…), or a function",
    ),
    (lambda: PeriodicJob(datetime, Report()), "is not every(…), cron(…), or a function"),  # type: ignore[arg-type]
    (lambda: PeriodicJob(later, Report()), "is not a plain function"),  # type: ignore[arg-type]
    (lambda: PeriodicJob(GOOD, 5), "args"),  # type: ignore[arg-type]
    (lambda: PeriodicJob(GOOD, Report), "args"),  # type: ignore[arg-type]
    (lambda: PeriodicJob(GOOD, Report(), id=""), "id: '' is empty; give 1 to 128 characters"),
    (lambda: PeriodicJob(GOOD, Report(), id="x" * 129), "at most 128 are allowed"),
    (
        lambda: PeriodicJob(GOOD, Report(), id="daily", start_at=NAIVE),
        "periodic job 'daily': start_at: datetime.datetime(2026, 1, 1, 0, 0) is not aware",
    ),
    (
        lambda: PeriodicJob(GOOD, Report(), start_at=datetime(1960, 1, 1, tzinfo=UTC)),
        "is not after 1970",
    ),
    (
        lambda: PeriodicJob(GOOD, Report(), catch_up="newest"),  # type: ignore[arg-type]
        "catch_up: 'newest' is no way to catch up (there are: all, latest, skip)",
    ),
    (
        lambda: PeriodicJob(GOOD, Report(), catch_up_limit=0),
        "catch_up_limit: 0 is not a whole number from 1 to 10000",
    ),
    (lambda: PeriodicJob(GOOD, Report(), grace=0), "grace: 0 is not a positive number of seconds"),
    (lambda: PeriodicJob(GOOD, Report(), {"queue": "mail"}), "is not InsertOpts(…)"),  # type: ignore[arg-type]
    (
        lambda: PeriodicJob(GOOD, Report(), InsertOpts(delay=5)),
        "periodic job 'report': opts: delay is given; the schedule says when jobs are due",
    ),
    (
        lambda: PeriodicJob(GOOD, Report(), InsertOpts(run_at=datetime(2026, 1, 1, tzinfo=UTC))),
        "opts: run_at is given",
    ),
]

DRIVER = MemoryDriver()
ENTRY = PeriodicJob(GOOD, Report())

SCHEDULERS: list[tuple[Callable[[], object], str]] = [
    (lambda: CronScheduler("sqlite://", [ENTRY]), "driver: 'sqlite://' is not a driver"),  # type: ignore[arg-type]
    (lambda: CronScheduler(DRIVER, []), "jobs: it is empty; give at least one PeriodicJob"),
    (lambda: CronScheduler(DRIVER, ENTRY), "is not a sequence of PeriodicJob"),  # type: ignore[arg-type]
    (lambda: CronScheduler(DRIVER, [GOOD]), "jobs[0]: <_Every every 0:01:00> is not a PeriodicJob"),  # type: ignore[list-item]
    (
        lambda: CronScheduler(DRIVER, [ENTRY, PeriodicJob(cron("0 9 * * *"), Report())]),
        "jobs: two have the id 'report' (every 0:01:00; 0 9 * * * UTC); give each an id of its own",
    ),
    (lambda: CronScheduler(DRIVER, [ENTRY], lease=0.5), "lease: 0.5 is not from 1 s to 86400 s"),
    (lambda: CronScheduler(DRIVER, [ENTRY], lease=0), "lease: 0 is not a positive number"),
    (lambda: CronScheduler(DRIVER, [ENTRY], codec="aes"), "codec: 'aes' is not a Codec: a name"),  # type: ignore[arg-type]
    (lambda: CronScheduler(DRIVER, [ENTRY], clock=5), "clock: 5 is not a Clock"),  # type: ignore[arg-type]
    (lambda: CronScheduler(DRIVER, [ENTRY], rng=random), "is not a random.Random"),  # type: ignore[arg-type]
    (
        lambda: CronScheduler(
            DRIVER, [PeriodicJob(GOOD, Report(), catch_up="skip", grace=20)], lease=15
        ),
        "periodic job 'report': grace: 20 s is not at least twice the lease (15 s)",
    ),
]


@pytest.mark.parametrize(("make", "message"), SCHEDULES + JOBS + SCHEDULERS)
def test_a_wrong_value_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert message in str(caught.value)


def test_what_is_odd_and_right_is_taken() -> None:
    cron("0 0 31 4 MON")  # the 31st of April, or any Monday
    cron("0 0 29 2 *")
    cron("  0\t0 * * *  ")
    cron("0 0 L * *")
    cron("0 9 * * mon#1,fri")


class TestWhatTheDriverCannotKeep:
    def test_args_are_refused_before_anything_is_written(self) -> None:
        with pytest.raises(PayloadError):
            CronScheduler(MemoryDriver(), [PeriodicJob(GOOD, Anything(float("nan")))])

    def test_so_are_options(self) -> None:
        entry = PeriodicJob(GOOD, Report(), InsertOpts(unique=UniqueOpts(by_args=True)))
        driver = MemoryDriver()
        driver.capabilities = msgspec.structs.replace(driver.capabilities, unique_jobs=False)
        with pytest.raises(UnsupportedError, match="unique_jobs"):
            CronScheduler(driver, [entry])


class TestAFunction:
    """Its first answer is checked when the scheduler starts."""

    async def refused(self, function: Any) -> str:
        kit = Kit()
        scheduler = kit.scheduler(PeriodicJob(function, Report(), id="odd"))
        with pytest.raises(ConfigurationError) as caught:
            await scheduler.start()
        await scheduler.stop()
        assert await kit.times("odd") == []
        return str(caught.value)

    async def test_that_raises(self) -> None:
        def fails(last: datetime | None) -> datetime | None:
            raise KeyError("calendar")

        said = await self.refused(fails)
        assert said.startswith("periodic job 'odd': schedule: ")
        assert said.endswith("fails(None) raised KeyError: 'calendar'")

    async def test_that_answers_without_a_zone(self) -> None:
        said = await self.refused(lambda last: NAIVE)
        assert (
            "(None): datetime.datetime(2026, 1, 1, 0, 0) is not an aware datetime or None" in said
        )

    async def test_that_answers_something_else(self) -> None:
        assert "(None): 5 is not an aware datetime or None" in await self.refused(lambda last: 5)

    async def test_that_answers_long_ago(self) -> None:
        said = await self.refused(lambda last: datetime(1969, 1, 1, tzinfo=UTC))
        assert "is not after 1970" in said

    @pytest.mark.parametrize(
        "answer",
        [
            datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
            datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
        ],
    )
    async def test_that_answers_outside_of_the_calendar(self, answer: datetime) -> None:
        said = await self.refused(lambda last: answer)
        assert "is not in the years 1 to 9999 in UTC" in said
