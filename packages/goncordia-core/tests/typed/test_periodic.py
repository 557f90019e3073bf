"""Periodic jobs to type checkers: each ``# type: ignore[code]`` is an error that both must find."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, assert_type

from goncordia import (
    CronScheduler,
    PeriodicJob,
    Schedule,
    ScheduleFunction,
    ScheduleInfo,
    cron,
    every,
    list_schedules,
)
from goncordia.memory import MemoryDriver


@dataclass
class CleanUp:
    kind: ClassVar[str] = "clean_up"


def hourly(last: datetime | None) -> datetime | None:
    return last and last + timedelta(hours=1)


def forgetful(last: datetime) -> datetime:
    return last


async def test_the_right_lines_run() -> None:
    driver = MemoryDriver()
    assert_type(every(5), Schedule)
    assert_type(cron("0 9 * * *", tz="Europe/Paris").after(datetime.now(UTC)), datetime | None)
    assert_type(await list_schedules(driver), list[ScheduleInfo])
    function: ScheduleFunction = hourly
    jobs = [
        PeriodicJob(every(timedelta(hours=1)), CleanUp(), id="a", catch_up="all"),
        PeriodicJob(function, CleanUp(), id="b"),
    ]
    async with CronScheduler(driver, jobs) as scheduler:
        assert_type(scheduler, CronScheduler)


if TYPE_CHECKING:
    every("5 minutes")  # type: ignore[arg-type]
    cron("0 9 * * *", tz=5)  # type: ignore[arg-type]
    PeriodicJob(forgetful, CleanUp())  # type: ignore[arg-type]
    PeriodicJob("0 9 * * *", CleanUp())  # type: ignore[arg-type]
    PeriodicJob(every(5), CleanUp(), catch_up="newest")  # type: ignore[arg-type]
    PeriodicJob(every(5), "clean_up")  # type: ignore[arg-type]
    CronScheduler(MemoryDriver(), [every(5)])  # type: ignore[list-item]
