"""``goncordia doctor`` on PostgreSQL: before the migration, and of pools that work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from goncordia.cli.examining import examine
from goncordia.clock import SystemClock
from goncordia.driver import AnyDriver
from goncordia_conformance.commands import doctor_before_and_after


def test_before_and_after_the_migration(
    make: Callable[..., AnyDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = doctor_before_and_after(make, monkeypatch)
    # The server of the tests is one that a crash may cost its data.
    assert [each for each in found["findings"] if "fsync" not in each["message"]] == []


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
