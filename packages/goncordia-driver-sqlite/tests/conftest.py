from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from goncordia.clock import SystemClock
from goncordia.driver import FetchRequest, JobRow, NewJob, QueueFetch
from goncordia.ids import JobIds, new_session_id
from goncordia_driver_sqlite import SqliteDriver


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
async def driver(path: Path) -> AsyncIterator[SqliteDriver]:
    async with SqliteDriver(path, busy_timeout=5) as driver:
        await driver.migrate()
        await driver.ready()
        yield driver


@pytest.fixture(scope="session")
def new_job() -> Callable[..., NewJob]:
    ids = JobIds(SystemClock())

    def new_job(**fields: Any) -> NewJob:
        fields.setdefault("id", ids())
        fields.setdefault("kind", "work")
        fields.setdefault("args", b"{}")
        return NewJob(**fields)

    return new_job


@pytest.fixture
def claim_all() -> Callable[[SqliteDriver], Any]:
    async def claim_all(driver: SqliteDriver) -> list[JobRow]:
        """Everything that is due, claimed by a session of its own."""
        executor, session = driver.executor(), new_session_id()
        await executor.session_open(session, "w", 60)
        request = FetchRequest(session, 1, 1000, (QueueFetch("default", 1000),))
        return (await executor.fetch(request)).jobs

    return claim_all
