from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from goncordia_driver_sqlite import SqliteDriver, doctor


@pytest.fixture(autouse=True)
def newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 3))


async def test_nothing_to_say(driver: SqliteDriver) -> None:
    assert await driver.check() == []


async def test_no_schema(path: Path) -> None:
    driver = SqliteDriver(path)
    (finding,) = await driver.check()
    await driver.aclose()
    assert finding.level == "error"
    assert "run migrate()" in finding.message


@pytest.mark.parametrize(
    ("version", "warned"),
    [
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((4, 0, 0), False),
    ],
)
async def test_a_library_with_a_known_flaw(
    driver: SqliteDriver,
    monkeypatch: pytest.MonkeyPatch,
    version: tuple[int, int, int],
    warned: bool,
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
    findings = await driver.check()
    assert bool(findings) is warned
    for finding in findings:
        assert "walresetbug" in finding.message


async def test_a_log_that_grew(driver: SqliteDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_LARGE_LOG", 0)
    await driver.executor().queue_pause("x")
    (finding,) = await driver.check()
    assert "-wal has 0 MiB" in finding.message


async def test_out_of_wal_mode(driver: SqliteDriver, path: Path) -> None:
    await driver.aclose()
    with closing(sqlite3.connect(path)) as own:
        own.execute("PRAGMA journal_mode = DELETE")
    assert [finding.level for finding in await driver.check()] == ["warning"]
    await driver.ready()
    await driver.executor().queue_pause("x")
    assert await driver.check() == []
