"""``goncordia doctor`` on databases with a fault each."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from goncordia import Registry
from goncordia.cli.app import app
from goncordia.driver import FetchRequest, NewJob, QueueFetch
from goncordia.gontest import MockClock
from goncordia.ids import new_session_id
from goncordia_conformance.commands import goncordia_json
from goncordia_driver_sqlite import SqliteDriver, doctor

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 3))


@pytest.fixture
def new(path: Path) -> Path:
    """A database with the schema and nothing else."""
    with SqliteDriver(path) as driver:
        driver.migrate_sync()
    return path


def diagnose(path: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what was found."""
    return goncordia_json("doctor", "--url", f"sqlite:///{path}", *words)


def only(path: Path, level: str, *words: str) -> str:
    """The message of the only finding, which has this level."""
    code, found = diagnose(path, *words)
    assert code == (level == "error"), found
    assert found["ok"] == (level != "error")
    (finding,) = found["findings"]
    assert finding["level"] == level
    message: str = finding["message"]
    return message


def seed(path: Path, since: timedelta, what: Callable[[SqliteDriver], Awaitable[None]]) -> None:
    """Do something to the database as if it were so long ago."""

    async def main() -> None:
        clock = MockClock(datetime.now(UTC) - since)
        async with SqliteDriver(path, clock=clock) as driver:
            await what(driver)

    asyncio.run(main())


def test_nothing_is_wrong(new: Path) -> None:
    code, found = diagnose(new)
    assert (code, found["findings"], found["driver"]) == (0, [], "sqlite")
    assert (found["workers"], found["oldest_due"]) == (0, None)


def test_no_file(path: Path) -> None:
    assert "does not exist: run migrate() or `goncordia migrate`" in only(path, "error")
    assert not path.exists()


def test_no_folder(path: Path) -> None:
    assert "does not exist" in only(path.parent / "absent" / "jobs.db", "error")


def test_a_folder(path: Path) -> None:
    assert "is a folder, not a database file" in only(path.parent, "error")


def test_no_database(path: Path) -> None:
    path.write_bytes(b"not a database at all" * 100)
    assert "not a database" in only(path, "error")


def test_no_schema(path: Path) -> None:
    path.touch()
    assert "migrate" in only(path, "error")


def test_a_newer_schema(new: Path) -> None:
    with closing(sqlite3.connect(new)) as own, own:
        own.execute("UPDATE goncordia_migration SET version = 1000, oldest = 1000")
    assert "upgrade goncordia" in only(new, "error")


def test_half_a_schema(new: Path) -> None:
    with closing(sqlite3.connect(new)) as own, own:
        own.execute("DROP TABLE goncordia_record")
    assert "is damaged: it has no table goncordia_record" in only(new, "error")


def test_a_log_that_grew(new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_LARGE_LOG", -1)
    assert "a connection that has been reading for long" in only(new, "warning")


def test_out_of_wal_mode(new: Path) -> None:
    with closing(sqlite3.connect(new)) as own:
        own.execute("PRAGMA journal_mode = DELETE")
    assert "out of WAL mode" in only(new, "warning")


def test_due_jobs_that_nobody_works(new: Path, new_job: Callable[..., NewJob]) -> None:
    async def enqueue(driver: SqliteDriver) -> None:
        await driver.ready()
        await driver.executor().insert_many([new_job(queue="mail"), new_job(queue="mail")])

    seed(new, HOUR, enqueue)
    told = only(new, "warning")
    assert told.startswith("queue 'mail': 2 jobs are due, the oldest for 36")
    assert told.endswith("no pool runs; start one, `goncordia worker --queue mail`")
    assert diagnose(new)[1]["oldest_due"] > 3599


def test_a_paused_queue(new: Path, new_job: Callable[..., NewJob]) -> None:
    async def enqueue(driver: SqliteDriver) -> None:
        await driver.ready()
        await driver.executor().insert_many([new_job(queue="mail")])
        await driver.executor().queue_pause("mail")

    seed(new, HOUR, enqueue)
    told = only(new, "warning")
    assert told.startswith("queue 'mail': 1 job is due, the oldest for 36")
    assert "it is paused; `goncordia queues resume mail`" in told


def test_a_pool_that_does_not_work_what_is_due(new: Path, new_job: Callable[..., NewJob]) -> None:
    async def enqueue(driver: SqliteDriver) -> None:
        await driver.ready()
        await driver.executor().insert_many([new_job()])

    async def work(driver: SqliteDriver) -> None:
        await driver.ready()
        await driver.executor().session_open(new_session_id(), "w", 60)

    seed(new, HOUR, enqueue)
    seed(new, timedelta(), work)
    assert "the pools that run do not work it" in only(new, "warning")
    assert diagnose(new)[1]["workers"] == 1


async def claimed(driver: SqliteDriver, job: NewJob) -> None:
    """A job that a session of an hour ago holds."""
    await driver.ready()
    executor, session = driver.executor(), new_session_id()
    await executor.insert_many([job])
    await executor.session_open(session, "w-1", 60)
    await executor.fetch(FetchRequest(session, 1, 1, (QueueFetch("default", 1),)))


def test_a_silent_session_with_jobs(new: Path, new_job: Callable[..., NewJob]) -> None:
    seed(new, HOUR, lambda driver: claimed(driver, new_job()))
    told = only(new, "warning")
    assert told.startswith("the pool 'w-1' (session ")
    assert " has been silent for 36" in told


def test_a_session_that_ended_and_holds_jobs(new: Path, new_job: Callable[..., NewJob]) -> None:
    seed(new, HOUR, lambda driver: claimed(driver, new_job()))
    with closing(sqlite3.connect(new)) as own, own:
        own.execute("UPDATE goncordia_session SET is_open = 0")
    assert "is gone and still holds jobs" in only(new, "warning")


def test_a_clock_that_was_set_back(new: Path) -> None:
    async def work(driver: SqliteDriver) -> None:
        await driver.ready()
        await driver.executor().session_open(new_session_id(), "w-1", 60)

    seed(new, -HOUR, work)
    assert "s in the future: a machine's clock is wrong" in only(new, "warning")


def test_kinds_that_the_registry_does_not_know(
    new: Path, new_job: Callable[..., NewJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def enqueue(driver: SqliteDriver) -> None:
        await driver.ready()
        await driver.executor().insert_many([new_job(kind="lost"), new_job(kind="work")])

    seed(new, timedelta(), enqueue)
    registry = Registry[object]()

    @registry.task(kind="work")
    async def work() -> None: ...

    monkeypatch.setattr("goncordia.cli.doctor.load_registry", lambda path: registry)
    assert only(new, "warning", "--registry", "app:registry").startswith(
        "kind 'lost': 1 job waits, and the registry has no worker of it"
    )


def test_a_schedule_that_nobody_fires(new: Path) -> None:
    record = b'{"kind":"work","schedule":"every hour","next":"2020-01-01T00:00:00Z"}'

    async def put(driver: SqliteDriver) -> None:
        await driver.ready()
        await driver.executor().record_put("cron/hourly", record, 0, b"0" * 16)

    seed(new, timedelta(), put)
    assert only(new, "warning").startswith("periodic job 'hourly' was to fire ")


def test_a_damaged_cursor(new: Path) -> None:
    async def put(driver: SqliteDriver) -> None:
        await driver.ready()
        await driver.executor().record_put("cron/hourly", b"{", 0, b"0" * 16)

    seed(new, timedelta(), put)
    assert "delete_schedule() removes it" in only(new, "error")


def test_words_for_people(path: Path) -> None:
    result = CliRunner().invoke(app, ["doctor", "--url", f"sqlite:///{path}"])
    assert result.exit_code == 1
    first, second = result.stdout.splitlines()
    assert first == "driver      sqlite"
    assert second.startswith(f"error: {path} does not exist")
