"""Times at the ends of the calendar: there Python's range ends, and PostgreSQL's goes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from goncordia.driver import At, JobState, ListFilter, NewJob
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver

Make = Callable[..., AsyncpgDriver | PsycopgDriver]

ENDS = [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/New_York"])
async def test_no_time_zone_of_a_connection_puts_a_job_out_of_the_calendar(
    make: Any, pg_dsn: str, migrated: str, new_job: Callable[..., NewJob], zone: str
) -> None:
    dsn = f"{pg_dsn}{'&' if '?' in pg_dsn else '?'}options=-c%20timezone%3D{zone}"
    async with make(dsn) as driver:
        executor = driver.executor()
        await executor.insert_many([new_job(run_at=At(end)) for end in ENDS])
        found = (await executor.list_jobs(ListFilter(), None, 10)).jobs
    jobs = sorted(found, key=lambda job: job.run_at)
    assert [job.state for job in jobs] == [JobState.AVAILABLE, JobState.SCHEDULED]
    away = [abs(job.run_at - end) for job, end in zip(jobs, ENDS, strict=True)]
    assert max(away) <= timedelta(days=1)


@pytest.mark.parametrize("column", ["run_at", "unique_until"])
@pytest.mark.parametrize("end", ["-infinity", "infinity"])
async def test_no_hand_puts_a_job_out_of_the_calendar_either(
    asyncpg_driver: AsyncpgDriver,
    migrated: str,
    sync_db: psycopg.Connection,
    new_job: Callable[..., NewJob],
    column: str,
    end: str,
) -> None:
    await asyncpg_driver.executor().insert_many([new_job()])
    with pytest.raises(psycopg.errors.CheckViolation, match="job_times_are_finite"):
        sync_db.execute(f"UPDATE \"{migrated}\".job SET {column} = '{end}'".encode())
