"""``goncordia doctor`` on PostgreSQL: before the migration, and of pools that work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
import pytest
from typer.testing import CliRunner

from goncordia.cli import backend
from goncordia.cli.app import app
from goncordia.cli.examining import examine
from goncordia.clock import SystemClock
from goncordia.driver import AnyDriver
from goncordia.ids import new_session_id


def test_before_and_after_the_migration(
    make: Callable[..., AnyDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "connect", lambda url: make())
    words = ["doctor", "--json", "--url", "postgresql://"]
    before = CliRunner().invoke(app, words)
    assert before.exit_code == 1
    (finding,) = msgspec.json.decode(before.stdout)["findings"]
    assert finding["level"] == "error"
    assert "migrate" in finding["message"]

    async def work() -> None:
        async with make() as driver:
            await driver.migrate()
            await driver.ready()
            await driver.executor().session_open(new_session_id(), "w", 60)

    asyncio.run(work())
    found = msgspec.json.decode(CliRunner().invoke(app, words).stdout)
    # The server of the tests is one that a crash may cost its data.
    assert [each for each in found["findings"] if "fsync" not in each["message"]] == []
    assert found["workers"] == 1
    assert abs(found["clock_skew"]) < 5
    pools = CliRunner().invoke(app, ["workers", "--json", "--url", "postgresql://"])
    assert [pool["worker_id"] for pool in msgspec.json.decode(pools.stdout)["workers"]] == ["w"]


async def test_clocks_that_differ_are_told_of_once(
    make: Callable[..., AnyDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = SystemClock.now

    def ahead(clock: SystemClock) -> datetime:
        return right(clock) + timedelta(hours=1)

    async with make() as driver:
        await driver.migrate()
        monkeypatch.setattr(SystemClock, "now", ahead)
        found = await examine(driver)
    (told,) = [each.message for each in found.findings if "clock" in each.message]
    assert "this machine's clock and the backend's differ by 3600 s" in told
