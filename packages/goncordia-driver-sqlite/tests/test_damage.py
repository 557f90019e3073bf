from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from goncordia.driver import ListFilter
from goncordia.errors import MigrationRequiredError
from goncordia_driver_sqlite import SqliteDriver


def run(path: Path, statements: Iterable[str]) -> None:
    with closing(sqlite3.connect(path)) as own, own:
        for statement in statements:
            own.execute(statement)


async def said(path: Path) -> str:
    """What verifying, migrating and the check say: the same, and they change nothing."""
    with closing(sqlite3.connect(path)) as own:
        before = own.execute("SELECT * FROM sqlite_master ORDER BY name").fetchall()
    messages: set[str] = set()
    async with SqliteDriver(path) as driver:
        for step in (driver.ready, driver.migrate):
            with pytest.raises(MigrationRequiredError) as caught:
                await step()
            messages.add(str(caught.value))
        (finding,) = await driver.check()
        messages.add(finding.message)
    with closing(sqlite3.connect(path)) as own:
        assert own.execute("SELECT * FROM sqlite_master ORDER BY name").fetchall() == before
    (message,) = messages
    return message


async def is_whole(path: Path) -> None:
    async with SqliteDriver(path) as driver:
        await driver.migrate()
        await driver.ready()
        assert await driver.executor().count(ListFilter()) == 0
        assert [finding for finding in await driver.check() if finding.level == "error"] == []


def advised(message: str) -> list[str]:
    """The statements that the message says to run."""
    return [each for each in message.split("`")[1].split(";") if each.strip()]


@pytest.mark.parametrize(
    "table", ["goncordia_job", "goncordia_session", "goncordia_queue", "goncordia_record"]
)
async def test_a_table_was_dropped(driver: SqliteDriver, path: Path, table: str) -> None:
    await driver.aclose()
    run(path, [f"DROP TABLE {table}"])
    message = await said(path)
    assert f"is damaged: it has no table {table}, though its schema has version" in message
    assert "Restore it from a backup; or begin anew" in message
    run(path, advised(message))
    await is_whole(path)


async def test_an_index_was_dropped(driver: SqliteDriver, path: Path) -> None:
    await driver.aclose()
    run(path, ["DROP INDEX goncordia_job_key", "DROP INDEX goncordia_job_later"])
    for name in ("key", "later"):
        message = await said(path)
        assert f"is damaged: it has no index goncordia_job_{name}. Make it again: " in message
        run(path, [message.partition("Make it again: ")[2]])
    await is_whole(path)


@pytest.mark.parametrize(
    "loss",
    ["DELETE FROM goncordia_migration", "DROP TABLE goncordia_migration"],
)
async def test_nothing_tells_the_version(driver: SqliteDriver, path: Path, loss: str) -> None:
    await driver.aclose()
    run(path, [loss])
    message = await said(path)
    assert "goncordia_migration does not say of which version goncordia_job, gon" in message
    run(path, advised(message))
    await is_whole(path)


async def test_a_table_that_is_lost_under_an_open_driver(driver: SqliteDriver, path: Path) -> None:
    run(path, ["DROP TABLE goncordia_job"])
    with pytest.raises(MigrationRequiredError, match="no such table: goncordia_job: run migrate"):
        await driver.executor().count(ListFilter())
    with pytest.raises(MigrationRequiredError, match="it has no table goncordia_job"):
        await driver.migrate()


async def test_a_newer_schema_is_not_judged(driver: SqliteDriver, path: Path) -> None:
    await driver.aclose()
    run(
        path,
        [
            "INSERT INTO goncordia_migration VALUES (99, 'future', 1, 0)",
            "DROP INDEX goncordia_job_parked",
        ],
    )
    await is_whole(path)


async def test_the_view_is_for_people(driver: SqliteDriver, path: Path) -> None:
    await driver.aclose()
    run(path, ["DROP VIEW goncordia_jobs"])
    await is_whole(path)
