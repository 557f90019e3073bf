"""Jobs inside the caller's own transaction: sqlite3's and aiosqlite's."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from goncordia.driver import Finish, JobState, ListFilter, NewJob
from goncordia.errors import (
    ConfigurationError,
    DriverBusyError,
    DriverError,
    DriverUnavailableError,
    MigrationRequiredError,
    TransactionAbortedError,
)
from goncordia_driver_sqlite import SqliteDriver

New = Callable[..., NewJob]
KEY = bytes(range(32))


@pytest.fixture
def own(driver: SqliteDriver) -> Iterator[sqlite3.Connection]:
    """The user's connection, as sqlite3 makes it unless told otherwise."""
    with closing(sqlite3.connect(driver.path, timeout=0.2)) as own:
        yield own


@pytest.fixture
async def async_own(driver: SqliteDriver) -> AsyncIterator[aiosqlite.Connection]:
    async with aiosqlite.connect(driver.path, timeout=0.2) as own:
        yield own


async def count(driver: SqliteDriver) -> int:
    return await driver.executor().count(ListFilter())


# ---------------------------------------------------------------- commit and rollback


@pytest.mark.parametrize("begin", [None, "BEGIN", "BEGIN IMMEDIATE"])
async def test_sync_jobs_come_with_the_commit(
    driver: SqliteDriver, own: sqlite3.Connection, new_job: New, begin: str | None
) -> None:
    for end, expected in ((own.rollback, 0), (own.commit, 2)):
        if begin:
            own.execute(begin)
        inside = driver.unwrap_sync_tx(own)
        assert [r.status for r in inside.insert_many([new_job(), new_job()])] == ["INSERTED"] * 2
        assert own.in_transaction
        assert await count(driver) == 0
        end()
        assert await count(driver) == expected


@pytest.mark.parametrize("begin", [None, "BEGIN", "BEGIN IMMEDIATE"])
async def test_async_jobs_come_with_the_commit(
    driver: SqliteDriver, async_own: aiosqlite.Connection, new_job: New, begin: str | None
) -> None:
    for end, expected in ((async_own.rollback, 0), (async_own.commit, 2)):
        if begin:
            await async_own.execute(begin)
        inside = driver.unwrap_tx(async_own)
        results = await inside.insert_many([new_job(), new_job()])
        assert [result.status for result in results] == ["INSERTED"] * 2
        assert async_own.in_transaction
        assert await count(driver) == 0
        await end()
        assert await count(driver) == expected


async def test_a_transaction_begun_for_the_caller_is_the_callers(
    driver: SqliteDriver, own: sqlite3.Connection, new_job: New
) -> None:
    """Without a transaction, sqlite3 would have begun one at the first change: so do we."""
    job = new_job()
    await driver.executor().insert_many([job])
    driver.unwrap_sync_tx(own).cancel_many([job.id])
    with own:
        own.execute("CREATE TABLE orders (a)")
        own.execute("INSERT INTO orders VALUES (1)")
    (row,) = await driver.executor().get_many([job.id])
    assert row is not None
    assert row.state == JobState.CANCELLED


async def test_savepoints_are_the_callers_too(
    driver: SqliteDriver, own: sqlite3.Connection, new_job: New
) -> None:
    own.execute("BEGIN IMMEDIATE")
    driver.unwrap_sync_tx(own).insert_many([new_job()])
    own.execute("SAVEPOINT a")
    driver.unwrap_sync_tx(own).insert_many([new_job() for _ in range(5)])
    own.execute("ROLLBACK TO a")
    own.commit()
    assert await count(driver) == 1


async def test_nothing_to_do_begins_nothing(
    driver: SqliteDriver, own: sqlite3.Connection, async_own: aiosqlite.Connection
) -> None:
    inside = driver.unwrap_sync_tx(own)
    assert (inside.insert_many([]), inside.cancel_many([]), inside.finish_many([])) == ([], [], [])
    outside = driver.unwrap_tx(async_own)
    assert await outside.insert_many([]) == []
    assert await outside.cancel_many([]) == []
    assert await outside.finish_many([]) == []
    assert not own.in_transaction
    assert not async_own.in_transaction


# ---------------------------------------------------------------- the connection stays as it was


def as_dict(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def _settings(own: sqlite3.Connection) -> list[Any]:
    pragmas = ("foreign_keys", "synchronous", "busy_timeout", "cache_size", "recursive_triggers")
    values = [tuple(own.execute(f"PRAGMA {name}").fetchall()[0].values()) for name in pragmas]
    return [*values, own.row_factory, own.text_factory, own.isolation_level, own.total_changes]


async def _everything(inside: Any, new_job: New, claims: list[Any]) -> Any:
    """All that can be asked in a transaction, by every way that there is."""

    async def answer(value: Any) -> Any:
        return await value if hasattr(value, "__await__") else value

    jobs = [new_job(unique_key=KEY, kind="ü"), *(new_job(group="é", group_limit=1) for _ in "123")]
    results = await answer(inside.insert_many(jobs))
    results += await answer(inside.insert_many([jobs[0], new_job(unique_key=KEY)]))
    assert [r.status for r in results] == ["INSERTED"] * 4 + ["REPLAYED", "DUPLICATE"]
    changed = await answer(inside.cancel_many([jobs[1].id]))
    assert changed[0].status == "CHANGED"
    finishes = [Finish(claim, "complete", output=b"[1]") for claim in claims]
    outcomes = await answer(inside.finish_many(finishes))
    assert {outcome.status for outcome in outcomes} == {"DONE"}
    return jobs


@pytest.mark.parametrize("text_factory", [bytes, str, lambda raw: raw.decode().upper()])
async def test_sync_settings_play_no_part_and_stay(
    driver: SqliteDriver, own: sqlite3.Connection, new_job: New, claim_all: Any, text_factory: Any
) -> None:
    grouped = [new_job(group="é", group_limit=1) for _ in range(2)]
    await driver.executor().insert_many([new_job(), new_job(), *grouped])
    claims = [row.claim for row in await claim_all(driver)]
    assert len(claims) == 3
    own.row_factory, own.text_factory = as_dict, text_factory
    own.execute("PRAGMA foreign_keys = 1")
    own.execute("BEGIN IMMEDIATE")
    before = _settings(own)
    jobs = await _everything(driver.unwrap_sync_tx(own), new_job, claims)
    assert _settings(own)[:-1] == before[:-1]
    own.commit()
    # The group's place went to its next job, and the place of the one that was cancelled too.
    rows = await claim_all(driver)
    assert [row.id for row in rows] == [grouped[1].id, jobs[0].id]


@pytest.mark.parametrize("text_factory", [bytes, str])
async def test_async_settings_play_no_part_and_stay(
    driver: SqliteDriver,
    async_own: aiosqlite.Connection,
    new_job: New,
    claim_all: Any,
    text_factory: Any,
) -> None:
    await driver.executor().insert_many([new_job(), new_job(group="é", group_limit=1)])
    claims = [row.claim for row in await claim_all(driver)]
    async_own.row_factory = as_dict  # type: ignore[assignment]  # a function, as sqlite3 has it
    async_own.text_factory = text_factory
    await async_own.execute("BEGIN IMMEDIATE")
    await _everything(driver.unwrap_tx(async_own), new_job, claims)
    assert async_own.row_factory is as_dict
    assert async_own.text_factory is text_factory
    assert async_own.isolation_level == ""
    await async_own.commit()


# ---------------------------------------------------------------- refused


async def test_other_libraries_connections(
    driver: SqliteDriver, own: sqlite3.Connection, async_own: aiosqlite.Connection
) -> None:
    with pytest.raises(ConfigurationError, match=r"tx: a sqlite3\.Connection is for SyncClient"):
        driver.unwrap_tx(own)  # type: ignore[arg-type]  # the error under test
    with pytest.raises(ConfigurationError, match=r"tx: an aiosqlite\.Connection is for Client"):
        driver.unwrap_sync_tx(async_own)  # type: ignore[arg-type]  # the error under test
    for unwrap in (driver.unwrap_tx, driver.unwrap_sync_tx):
        with pytest.raises(ConfigurationError, match="tx: str is not a"):
            unwrap("tx")  # type: ignore[arg-type]  # the error under test


async def test_in_no_transaction_and_would_start_none(driver: SqliteDriver) -> None:
    with (
        closing(sqlite3.connect(driver.path, isolation_level=None)) as own,
        pytest.raises(ConfigurationError, match=r"tx: .* would start none.*BEGIN IMMEDIATE first"),
    ):
        driver.unwrap_sync_tx(own)
    async with aiosqlite.connect(driver.path, isolation_level=None) as async_own:
        with pytest.raises(ConfigurationError, match=r"tx: .* would start none"):
            driver.unwrap_tx(async_own)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="autocommit came with Python 3.12")
@pytest.mark.parametrize("autocommit", [True, False])
async def test_the_autocommit_of_newer_pythons(
    driver: SqliteDriver, new_job: New, autocommit: bool
) -> None:
    options: dict[str, Any] = {"autocommit": autocommit}
    with closing(sqlite3.connect(driver.path, **options)) as own:
        if autocommit:
            with pytest.raises(ConfigurationError, match="would start none"):
                driver.unwrap_sync_tx(own)
        else:
            driver.unwrap_sync_tx(own).insert_many([new_job()])
            own.commit()
    async with aiosqlite.connect(driver.path, **options) as async_own:
        if autocommit:
            with pytest.raises(ConfigurationError, match="would start none"):
                await driver.unwrap_tx(async_own).insert_many([new_job()])
        else:
            await driver.unwrap_tx(async_own).insert_many([new_job()])
            await async_own.commit()
    assert await count(driver) == (0 if autocommit else 2)


@pytest.mark.parametrize("name", ["other.db", ":memory:", ""])
async def test_another_database(
    driver: SqliteDriver, tmp_path: Path, new_job: New, name: str
) -> None:
    place = str(tmp_path / name) if name.endswith(".db") else name
    wrong = "tx: its database is .* and the jobs are in .*: one transaction is of one file"
    with closing(sqlite3.connect(place)) as own, pytest.raises(ConfigurationError, match=wrong):
        driver.unwrap_sync_tx(own)
    async with aiosqlite.connect(place) as async_own:
        with pytest.raises(ConfigurationError, match=wrong):
            await driver.unwrap_tx(async_own).insert_many([new_job()])
        assert not async_own.in_transaction


async def test_the_same_database_by_another_name(
    driver: SqliteDriver, tmp_path: Path, new_job: New
) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(driver.path)
    for place in (link, f"file:{driver.path}?cache=private"):
        with closing(sqlite3.connect(place, uri=True)) as own, own:
            driver.unwrap_sync_tx(own).insert_many([new_job()])
    assert await count(driver) == 2


async def test_closed_connections(driver: SqliteDriver, new_job: New) -> None:
    own = sqlite3.connect(driver.path)
    own.close()
    with pytest.raises(ConfigurationError, match=r"cannot be used here: .*closed"):
        driver.unwrap_sync_tx(own)
    async_own = await aiosqlite.connect(driver.path)
    inside = driver.unwrap_tx(async_own)
    await async_own.close()
    with pytest.raises(ConfigurationError, match="tx: the connection is closed"):
        driver.unwrap_tx(async_own)
    with pytest.raises(DriverUnavailableError, match="tx: the connection is closed"):
        await inside.insert_many([new_job()])


async def test_another_threads_connection(driver: SqliteDriver, own: sqlite3.Connection) -> None:
    caught: list[Exception] = []

    def use() -> None:
        try:
            driver.unwrap_sync_tx(own)
        except ConfigurationError as error:
            caught.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "thread" in str(caught[0])


# ---------------------------------------------------------------- locks and snapshots


def _read(own: sqlite3.Connection) -> None:
    own.execute("BEGIN")
    own.execute("SELECT count(*) FROM goncordia_job").fetchall()


async def test_a_stale_snapshot(
    driver: SqliteDriver, own: sqlite3.Connection, new_job: New
) -> None:
    _read(own)
    await driver.executor().insert_many([new_job()])
    with pytest.raises(TransactionAbortedError, match="start it with BEGIN IMMEDIATE") as caught:
        driver.unwrap_sync_tx(own).insert_many([new_job()])
    assert caught.value.outcome == "not_applied"
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)


async def test_a_stale_snapshot_asynchronously(
    driver: SqliteDriver, async_own: aiosqlite.Connection, new_job: New
) -> None:
    await async_own.execute("BEGIN")
    await async_own.execute_fetchall("SELECT count(*) FROM goncordia_job")
    await driver.executor().insert_many([new_job()])
    with pytest.raises(TransactionAbortedError, match="start it with BEGIN IMMEDIATE"):
        await driver.unwrap_tx(async_own).insert_many([new_job()])


async def test_a_snapshot_while_another_writes(
    driver: SqliteDriver, own: sqlite3.Connection, new_job: New
) -> None:
    """SQLite refuses at once, whatever the connection's time-out: to wait would be in vain."""
    own.execute("PRAGMA busy_timeout = 5000")
    _read(own)
    with closing(sqlite3.connect(driver.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TransactionAbortedError, match="start it with BEGIN IMMEDIATE"):
            driver.unwrap_sync_tx(own).insert_many([new_job()])
        other.execute("ROLLBACK")


@pytest.mark.parametrize("begin", [None, "BEGIN"])
async def test_the_lock_of_another(
    driver: SqliteDriver,
    own: sqlite3.Connection,
    async_own: aiosqlite.Connection,
    new_job: New,
    begin: str | None,
) -> None:
    with closing(sqlite3.connect(driver.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        if begin:
            own.execute(begin)
            await async_own.execute(begin)
        with pytest.raises(DriverBusyError) as caught:
            driver.unwrap_sync_tx(own).insert_many([new_job()])
        assert caught.value.outcome == "not_applied"
        with pytest.raises(DriverBusyError):
            await driver.unwrap_tx(async_own).insert_many([new_job()])
        other.execute("ROLLBACK")
    driver.unwrap_sync_tx(own).insert_many([new_job()])
    own.commit()
    assert await count(driver) == 1


async def test_the_callers_own_transaction_is_named_as_the_likely_cause(
    path: Path, new_job: New
) -> None:
    async with SqliteDriver(path, busy_timeout=0.1) as driver:
        await driver.migrate()
        with closing(sqlite3.connect(path, isolation_level=None)) as own:
            own.execute("BEGIN IMMEDIATE")
            driver.unwrap_sync_tx(own).insert_many([new_job()])
            with pytest.raises(DriverBusyError, match="enqueue inside it with enqueue_tx"):
                await driver.executor().insert_many([new_job()])
            with pytest.raises(DriverBusyError):
                driver.sync_executor().insert_many([new_job()])
            own.execute("COMMIT")
        assert await count(driver) == 1


# ---------------------------------------------------------------- other errors


async def test_no_tables(path: Path, new_job: New) -> None:
    driver = SqliteDriver(path)
    with closing(sqlite3.connect(path)) as own:
        own.execute("CREATE TABLE orders (a)")
        with pytest.raises(MigrationRequiredError, match="run migrate"):
            driver.unwrap_sync_tx(own).insert_many([new_job()])
    await driver.aclose()


async def test_a_read_only_connection(driver: SqliteDriver, new_job: New) -> None:
    with closing(sqlite3.connect(f"file:{driver.path}?mode=ro", uri=True)) as own:
        own.execute("BEGIN")
        with pytest.raises(ConfigurationError, match="cannot be written"):
            driver.unwrap_sync_tx(own).insert_many([new_job()])


async def test_an_error_of_sqlites_is_ours(
    driver: SqliteDriver, own: sqlite3.Connection, async_own: aiosqlite.Connection, new_job: New
) -> None:
    limit = sqlite3.SQLITE_LIMIT_LENGTH
    own.setlimit(limit, 1000)
    job = new_job(args=b'"' + b"x" * 2000 + b'"')
    with pytest.raises(DriverError, match="too big") as caught:
        driver.unwrap_sync_tx(own).insert_many([job])
    assert isinstance(caught.value.__cause__, sqlite3.Error)
    assert caught.value.outcome == "not_applied"
