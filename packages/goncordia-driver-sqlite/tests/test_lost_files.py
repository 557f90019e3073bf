"""A database file that goes away, and a connection that was forgotten with the lock in hand."""

from __future__ import annotations

import gc
import logging
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from goncordia import Client, DriverUnavailableError, SyncClient
from goncordia_driver_sqlite import SqliteDriver


@dataclass
class Work:
    kind: ClassVar[str] = "work"
    n: int = 0


def remove(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        os.unlink(f"{path}{end}")


async def test_nothing_is_written_to_a_file_that_was_deleted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jobs.db"
    async with SqliteDriver(path) as driver:
        await driver.migrate()
        client = Client(driver, replays=0)
        await client.enqueue(Work(1))
        remove(path)
        with pytest.raises(DriverUnavailableError, match="unable to open database file") as caught:
            await client.enqueue(Work(2))
        assert caught.value.outcome == "not_applied"
    assert "deleted or replaced" in caplog.text


async def test_it_goes_on_with_the_file_that_took_its_place(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with SqliteDriver(path) as driver, SqliteDriver(path) as other:
        await driver.migrate()
        client = Client(driver)
        lost = await client.enqueue(Work(1))
        remove(path)
        await other.migrate()
        kept = await client.enqueue(Work(2))
        assert await client.get_many([lost.id]) == [None]
        assert (await Client(other).get(kept.id)).args == {"n": 2}


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")  # that is the point
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_forgotten_transaction_does_not_keep_the_lock_for_good(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jobs.db"
    driver = SqliteDriver(path)
    driver.migrate_sync()

    def forget() -> None:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE mine (n)")
        connection.execute("INSERT INTO mine VALUES (1)")
        cycle: list[object] = [connection]
        cycle.append(cycle)

    forget()
    with caplog.at_level(logging.WARNING, "goncordia.sqlite"):
        SyncClient(driver, replays=0).enqueue(Work())
    driver.close()
    assert [record.message for record in caplog.records] == [
        f"{path}: another connection has had the write lock for 1 s: "
        "is a transaction left open, without a commit, rollback or close?"
    ]
