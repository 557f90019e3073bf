from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from goncordia_conformance.jobs import claim_all, new_job
from goncordia_driver_sqlite import SqliteDriver

__all__ = ["claim_all", "new_job"]  # the kit's fixtures, for the tests here


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
async def driver(path: Path) -> AsyncIterator[SqliteDriver]:
    async with SqliteDriver(path, busy_timeout=5) as driver:
        await driver.migrate()
        await driver.ready()
        yield driver
