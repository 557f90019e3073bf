from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from goncordia.driver import ListFilter, NewJob, connect
from goncordia.errors import (
    ConfigurationError,
    DriverUnavailableError,
    MigrationRequiredError,
)
from goncordia_driver_sqlite import SqliteDriver


async def use(driver: SqliteDriver) -> None:
    try:
        await driver.ready()
    finally:
        await driver.aclose()


# ---------------------------------------------------------------- bad paths


@pytest.mark.parametrize(
    "path", [":memory:", "", "sqlite:///:memory:", "sqlite://", "file:x?mode=memory"]
)
def test_no_database_in_memory(path: str) -> None:
    with pytest.raises(ConfigurationError, match=r"path: .*MemoryDriver.* temporary file"):
        SqliteDriver(path)


@pytest.mark.parametrize("path", [None, 3, b"x\0", object(), "x\0y"])
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(ConfigurationError, match="path: "):
        SqliteDriver(path)


def test_a_url_with_a_host_or_options() -> None:
    with pytest.raises(ConfigurationError, match=r"names a host, 'jobs\.db': write sqlite:///"):
        SqliteDriver("sqlite://jobs.db")
    with pytest.raises(ConfigurationError, match="has options; give them to SqliteDriver in code"):
        SqliteDriver("sqlite:///jobs.db?synchronous=NORMAL")


def test_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert SqliteDriver("sqlite:///a%20b.db").path == str(tmp_path / "a b.db")
    assert SqliteDriver(f"sqlite:///{tmp_path}/x.db").path == str(tmp_path / "x.db")
    assert SqliteDriver(Path("y.db")).path == str(tmp_path / "y.db")
    driver = connect("SQLite:///z.db")
    assert isinstance(driver, SqliteDriver)
    assert driver.path == str(tmp_path / "z.db")


@pytest.mark.parametrize(
    "options",
    [
        {"synchronous": "OFF"},
        {"synchronous": "full"},
        {"busy_timeout": -1},
        {"busy_timeout": "30"},
        {"busy_timeout": float("nan")},
        {"busy_timeout": True},
    ],
)
def test_wrong_options(path: Path, options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigurationError, match=f"{name}: .* is not "):
        SqliteDriver(path, **options)


async def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is a folder, not a database file"):
        await use(SqliteDriver(tmp_path))


async def test_no_folder(tmp_path: Path) -> None:
    for step in (use, SqliteDriver.migrate):
        with pytest.raises(ConfigurationError, match=r"the folder of .* does not exist"):
            await step(SqliteDriver(tmp_path / "no" / "jobs.db"))


async def test_no_plain_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="is not a file"):
        await use(SqliteDriver(tmp_path / "pipe"))


@pytest.fixture(params=["text", "header only"])
def foreign(request: pytest.FixtureRequest, path: Path) -> Iterator[Path]:
    text = b"no database, just text. " if request.param == "text" else b"SQLite format 3\0"
    path.write_bytes(text * 70)
    yield path
    assert path.read_bytes() == text * 70


async def test_a_foreign_file(foreign: Path) -> None:
    for step in (SqliteDriver.ready, SqliteDriver.migrate):
        driver = SqliteDriver(foreign)
        with pytest.raises(ConfigurationError, match="is not an SQLite database"):
            await step(driver)
        await driver.aclose()


async def test_a_path_that_is_not_there_stays_so(path: Path) -> None:
    driver = SqliteDriver(path)
    with pytest.raises(MigrationRequiredError, match=r"does not exist: run migrate\(\)"):
        await driver.ready()
    with pytest.raises(MigrationRequiredError):
        driver.sync_executor().count(ListFilter())
    await driver.aclose()
    assert os.listdir(path.parent) == []


async def test_a_database_of_the_users_own(path: Path) -> None:
    with closing(sqlite3.connect(path)) as own, own:
        own.execute("CREATE TABLE orders (a)")
    driver = SqliteDriver(path)
    with pytest.raises(MigrationRequiredError, match=r"no Goncordia tables: run migrate\(\)"):
        await driver.ready()
    assert await driver.migrate() == ["1: jobs, sessions, queues and records"]
    await use(driver)
    with closing(sqlite3.connect(path)) as own:
        assert own.execute("SELECT count(*) FROM orders").fetchone() == (0,)
        assert own.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.fixture
def empty(path: Path) -> Path:
    path.touch()
    return path


async def test_an_empty_file(empty: Path) -> None:
    driver = SqliteDriver(empty)
    with pytest.raises(MigrationRequiredError):
        await driver.ready()
    await driver.migrate()
    await use(driver)


async def test_a_schema_that_is_too_new(driver: SqliteDriver, path: Path) -> None:
    with closing(sqlite3.connect(path)) as own, own:
        own.execute("INSERT INTO goncordia_migration VALUES (7, 'future', 7, 0)")
    other = SqliteDriver(path)
    for step in (other.ready, other.migrate):
        with pytest.raises(MigrationRequiredError, match="which needs code of version 7"):
            await step()
    await other.aclose()


def test_an_old_sqlite(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    driver = SqliteDriver(path)
    with pytest.raises(ConfigurationError, match=r"SQLite .*; 3\.37\.0 or newer is needed"):
        driver.migrate_sync()
    driver.close()


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that other users can enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


AS_NOBODY = """
import asyncio, os, sys
from goncordia_driver_sqlite import SqliteDriver
os.setgroups([]); os.setgid(65534); os.setuid(65534)
async def main():
    driver = SqliteDriver(sys.argv[1])
    try:
        await driver.ready()
    except Exception as error:
        print(type(error).__name__, error)
    finally:
        await driver.aclose()
asyncio.run(main())
"""


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)
@pytest.mark.parametrize(
    ("mode", "cannot"),
    [(0o644, "cannot be read and written by"), (0o666, "keeps files beside the database")],
)
def test_what_this_user_may_not_write(readable: Path, mode: int, cannot: str) -> None:
    path = readable / "jobs.db"
    with SqliteDriver(path) as driver:
        driver.migrate_sync()
    path.chmod(mode)
    run = [sys.executable, "-c", AS_NOBODY, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ConfigurationError path: "), done
    assert cannot in done.stdout


async def test_a_database_that_turned_read_only(
    driver: SqliteDriver, new_job: Callable[..., NewJob]
) -> None:
    """As root may write everything, SQLite itself is told not to."""
    executor = driver.executor()
    await executor.insert_many([new_job()])
    lane = driver._core.writer
    await lane.submit_function(lambda: lane.transactor.connected().run("PRAGMA query_only = 1"))
    with pytest.raises(ConfigurationError, match=r"path: .* cannot be written"):
        await executor.insert_many([new_job()])


# ---------------------------------------------------------------- opening and closing


async def test_closing_leaves_nothing(path: Path, new_job: Callable[..., NewJob]) -> None:
    threads = set(threading.enumerate())
    async with SqliteDriver(path) as driver:
        await driver.migrate()
        await driver.ready()
        await driver.executor().insert_many([new_job()])
        await driver.executor().count(ListFilter())
        driver.sync_executor().insert_many([new_job()])
        listener = driver.listener()
        heartbeater = driver.heartbeater()
        assert heartbeater is not None
        heartbeater.beat(new_job().id, 30)
        heartbeater.close()
    await listener.aclose()
    assert set(threading.enumerate()) == threads
    assert os.listdir(path.parent) == [path.name], "a log was left behind"
    assert not [name for name in _open_files() if name.startswith(str(path))]


def _open_files() -> list[str]:
    found: list[str] = []
    for link in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(link))
    return found


def test_the_synchronous_twins(path: Path, new_job: Callable[..., NewJob]) -> None:
    threads = set(threading.enumerate())
    with SqliteDriver(path) as driver:
        assert driver.migrate_sync() == ["1: jobs, sessions, queues and records"]
        executor = driver.sync_executor()
        (result,) = executor.insert_many([new_job()])
        assert result.status == "INSERTED"
        assert executor.count(ListFilter()) == 1
    assert set(threading.enumerate()) == threads


async def test_it_can_be_opened_again(driver: SqliteDriver, new_job: Callable[..., NewJob]) -> None:
    job = new_job()
    await driver.executor().insert_many([job])
    await driver.aclose()
    await driver.aclose()
    with pytest.raises(DriverUnavailableError, match="the driver is closed") as caught:
        await driver.executor().insert_many([new_job()])
    assert caught.value.outcome == "not_applied"
    await driver.ready()
    assert await driver.executor().count(ListFilter()) == 1


async def test_requests_before_the_end_are_answered(
    driver: SqliteDriver, new_job: Callable[..., NewJob]
) -> None:
    asked = [asyncio.ensure_future(driver.executor().insert_many([new_job()])) for _ in range(20)]
    await asyncio.sleep(0)
    await driver.aclose()
    assert {(await each)[0].status for each in asked} == {"INSERTED"}


async def test_how_hard_commits_are_pressed_to_the_disk(path: Path) -> None:
    for synchronous, number in (("FULL", 2), ("NORMAL", 1)):
        async with SqliteDriver(path, synchronous=synchronous) as driver:  # type: ignore[arg-type]  # a str of the loop
            await driver.migrate()
            await driver.executor().queue_pause("x")
            lane = driver._core.writer

            def pragma(lane: Any = lane) -> Any:
                return lane.transactor.connected().value("PRAGMA synchronous")

            assert await lane.submit_function(pragma) == number
