from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from goncordia.clock import SystemClock
from goncordia.driver import NewJob
from goncordia.errors import DriverBusyError
from goncordia.ids import new_session_id
from goncordia_driver_sqlite import SqliteDriver


async def test_it_beats_on_its_own(driver: SqliteDriver) -> None:
    session = new_session_id()
    heartbeater = driver.heartbeater()
    assert heartbeater is not None
    assert not heartbeater.beat(session, 30).held
    await driver.executor().session_open(session, "w", 30)
    (before,) = await driver.executor().session_list()
    assert heartbeater.beat(session, 20).held
    (after,) = await driver.executor().session_list()
    assert after.lease == 20
    assert before.beat_at is not None
    assert after.beat_at is not None
    assert before.beat_at < after.beat_at
    heartbeater.close()


async def test_it_does_not_wait_for_long(
    path: Path, new_job: Callable[..., NewJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goncordia_driver_sqlite.core._BEAT_TIMEOUT", 0.1)
    async with SqliteDriver(path, busy_timeout=60) as driver:
        await driver.migrate()
        heartbeater = driver.heartbeater()
        assert heartbeater is not None
        with closing(sqlite3.connect(path, isolation_level=None)) as own:
            own.execute("BEGIN IMMEDIATE")
            started = time.monotonic()
            with pytest.raises(DriverBusyError):
                heartbeater.beat(new_session_id(), 30)
            assert time.monotonic() - started < 20
        heartbeater.close()


def test_under_a_given_clock_the_loop_beats(path: Path) -> None:
    assert SqliteDriver(path, clock=SystemClock()).heartbeater() is None
