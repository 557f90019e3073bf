"""Inside the caller's transaction of asyncpg."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from goncordia.driver import After, Finish, JobState, ListFilter, NewJob
from goncordia.errors import (
    ConfigurationError,
    DriverUnavailableError,
    TransactionAbortedError,
    UnsupportedError,
)
from goncordia_driver_pg import AsyncpgDriver

NewJobs = Callable[..., NewJob]


@pytest.fixture
async def pool(pg_dsn: str) -> AsyncIterator[asyncpg.Pool]:
    async with asyncpg.create_pool(pg_dsn, min_size=1, max_size=3) as pool:
        yield pool


@pytest.fixture
def driver(asyncpg_driver: AsyncpgDriver) -> AsyncpgDriver:
    return asyncpg_driver


async def count(driver: AsyncpgDriver) -> int:
    return await driver.executor().count(ListFilter())


# -------------------------------------------------------------------- what is taken


async def test_a_connection_of_a_pool(
    driver: AsyncpgDriver, pool: asyncpg.Pool, new_job: NewJobs
) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await driver.unwrap_tx(connection).insert_many([new_job()])
        assert await count(driver) == 0
    assert await count(driver) == 1


async def test_a_transaction_begun_by_hand(
    driver: AsyncpgDriver, db: asyncpg.Connection, new_job: NewJobs
) -> None:
    await db.execute("BEGIN")
    await driver.unwrap_tx(db).insert_many([new_job()])
    await db.execute("COMMIT")
    assert await count(driver) == 1


async def test_a_savepoint_takes_its_jobs_back(
    driver: AsyncpgDriver, db: asyncpg.Connection, new_job: NewJobs
) -> None:
    async with db.transaction():
        await driver.unwrap_tx(db).insert_many([new_job()])
        savepoint = db.transaction()
        await savepoint.start()
        await driver.unwrap_tx(db).insert_many([new_job()])
        await savepoint.rollback()
    assert await count(driver) == 1


async def test_what_is_no_transaction_is_refused(
    driver: AsyncpgDriver, db: asyncpg.Connection, pool: asyncpg.Pool, sync_db: Any
) -> None:
    others: list[tuple[Any, str]] = [
        (db, "in no transaction"),
        (pool, "Pool is not an asyncpg.Connection.*: it is a pool: take a connection of it, and"),
        (db.transaction(), "Transaction is not an .*: it is the transaction: hand over the conn"),
        (sync_db.cursor(), "Cursor is not an asyncpg.Connection.*: it is a cursor"),
        (AsyncSession(), "AsyncSession is not an .*: it is an object of SQLAlchemy: hand over"),
        (sync_db, "an object of psycopg, for which PsycopgDriver is made"),
        (None, "NoneType is not"),
    ]
    for other, says in others:
        with pytest.raises(ConfigurationError, match=f"tx: .*{says}"):
            driver.unwrap_tx(other)
    with pytest.raises(UnsupportedError, match=r"sync_tx: .* there is PsycopgDriver") as caught:
        driver.unwrap_sync_tx(db)  # type: ignore[arg-type]
    assert caught.value.capability == "sync_tx"


async def test_what_is_over_is_refused(
    driver: AsyncpgDriver, pool: asyncpg.Pool, pg_dsn: str
) -> None:
    async with pool.acquire() as connection, connection.transaction():
        pass
    with pytest.raises(ConfigurationError, match="given back to its pool"):
        driver.unwrap_tx(connection)
    closed = await asyncpg.connect(pg_dsn)
    await closed.close()
    with pytest.raises(ConfigurationError, match="is closed"):
        driver.unwrap_tx(closed)


# -------------------------------------------------------------------- what is left as it was


async def teach(connection: asyncpg.Connection) -> None:
    """Have the connection know every type otherwise."""
    for name in ("uuid", "json", "jsonb", "timestamptz", "text", "int4", "int8", "bytea", "bool"):
        await connection.set_type_codec(
            name,
            schema="pg_catalog",
            encoder=lambda value: value.removeprefix("<").removesuffix(">"),
            decoder=lambda text: f"<{text}>",
        )


async def test_codecs_of_the_caller_play_no_part_and_stay(
    driver: AsyncpgDriver, db: asyncpg.Connection, new_job: NewJobs, claim_all: Any
) -> None:
    await driver.executor().insert_many([new_job()])
    (row,) = await claim_all(driver)
    await teach(db)
    first, second = new_job(unique_key=b"k" * 32), new_job(unique_key=b"k" * 32)
    async with db.transaction():
        tx = driver.unwrap_tx(db)
        results = await tx.insert_many([first, second, new_job(run_at=After(60)), first])
        assert [each.status for each in results] == [
            "INSERTED",
            "DUPLICATE",
            "INSERTED",
            "REPLAYED",
        ]
        assert results[1].holder == first.id
        (outcome,) = await tx.finish_many([Finish(row.claim, "complete", output=b"1")])
        assert outcome.status == "DONE"
        (answer,) = await tx.cancel_many([first.id])
        assert (answer.status, answer.state) == ("CHANGED", JobState.CANCELLED)
        assert await db.fetchval("SELECT 5") == "<5>"
        assert await db.fetchval("SELECT $1::uuid", f"<{first.id}>") == f"<{first.id}>"
    assert await count(driver) == 3


async def test_a_pool_with_codecs_serves_the_driver(
    pg_dsn: str, migrated: str, new_job: NewJobs, claim_all: Any
) -> None:
    async with asyncpg.create_pool(pg_dsn, min_size=0, max_size=3, init=teach) as pool:
        driver = AsyncpgDriver(pool, schema=migrated)
        job = new_job(tags=("a",), run_at=After(0))
        await driver.executor().insert_many([job, new_job()])
        rows = await claim_all(driver)
        assert rows[0].id == job.id
        assert rows[0].tags == ("a",)
        assert abs(rows[0].created_at - datetime.now(UTC)) < timedelta(minutes=10)
        assert await pool.fetchval("SELECT true") == "<t>"
        await driver.aclose()


class Row(asyncpg.Record):
    def __iter__(self) -> Any:
        raise AssertionError("rows of the caller's own class are not for us")


async def test_a_record_class_of_the_caller_plays_no_part(
    driver: AsyncpgDriver, pg_dsn: str, new_job: NewJobs
) -> None:
    connection = await asyncpg.connect(pg_dsn, record_class=Row)
    try:
        async with connection.transaction():
            job = new_job()
            results = await driver.unwrap_tx(connection).insert_many([job, new_job(), job])
        assert [each.status for each in results] == ["INSERTED", "INSERTED", "REPLAYED"]
    finally:
        await connection.close()


@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read", "serializable"])
async def test_settings_of_the_caller_play_no_part_and_stay(
    driver: AsyncpgDriver, db: asyncpg.Connection, new_job: NewJobs, isolation: Any
) -> None:
    await db.execute("SET search_path = pg_temp")
    await db.execute("SET TimeZone = 'Asia/Kathmandu'")
    await db.execute("SET standard_conforming_strings = off")
    await db.execute("SET DateStyle = 'German'")
    query = """
        SELECT name, setting FROM pg_settings WHERE source = 'session' OR name = 'search_path'
        OR name LIKE 'transaction%' ORDER BY name
        """
    async with db.transaction(isolation=isolation):
        before = await db.fetch(query)
        job = new_job(run_at=After(60))
        await driver.unwrap_tx(db).insert_many([job, new_job()])
        await driver.unwrap_tx(db).cancel_many([job.id])
        assert await db.fetch(query) == before
        assert not await db.fetchval(
            "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"
        )
    assert await count(driver) == 2


async def test_who_prepares_nothing_keeps_nothing_prepared(
    driver: AsyncpgDriver, pg_dsn: str, new_job: NewJobs
) -> None:
    connection = await asyncpg.connect(pg_dsn, statement_cache_size=0)
    try:
        async with connection.transaction():
            for _ in range(7):
                await driver.unwrap_tx(connection).insert_many([new_job()])
            assert not await connection.fetch("SELECT name FROM pg_prepared_statements")
    finally:
        await connection.close()


# -------------------------------------------------------------------- what goes wrong


async def test_a_failed_transaction_is_said(
    driver: AsyncpgDriver, db: asyncpg.Connection, new_job: NewJobs
) -> None:
    transaction = db.transaction()
    await transaction.start()
    with pytest.raises(asyncpg.DivisionByZeroError):
        await db.execute("SELECT 1 / 0")
    with pytest.raises(TransactionAbortedError, match=r"tx: .*roll it back") as caught:
        await driver.unwrap_tx(db).insert_many([new_job()])
    assert caught.value.outcome == "not_applied"
    await transaction.rollback()


async def test_read_only_is_said(
    driver: AsyncpgDriver, db: asyncpg.Connection, new_job: NewJobs
) -> None:
    transaction = db.transaction(readonly=True)
    await transaction.start()
    with pytest.raises(ConfigurationError, match="tx: it is READ ONLY"):
        await driver.unwrap_tx(db).insert_many([new_job()])
    await transaction.rollback()


async def test_a_connection_in_use_is_said(
    driver: AsyncpgDriver, db: asyncpg.Connection, new_job: NewJobs
) -> None:
    async with db.transaction():
        async with asyncio.TaskGroup() as group:
            group.create_task(db.execute("SELECT pg_sleep(0.05)"))
            await asyncio.sleep(0)
            with pytest.raises(ConfigurationError, match=r"tx: .*another operation is in progress"):
                await driver.unwrap_tx(db).insert_many([new_job()])
        await driver.unwrap_tx(db).insert_many([new_job()])
    assert await count(driver) == 1


async def test_a_snapshot_that_is_too_old_is_the_callers_to_repeat(
    driver: AsyncpgDriver, db: asyncpg.Connection, new_job: NewJobs, claim_all: Any
) -> None:
    await driver.executor().insert_many([new_job()])
    (row,) = await claim_all(driver)
    transaction = db.transaction(isolation="repeatable_read")
    await transaction.start()
    await db.fetch("SELECT 1")
    await driver.executor().finish_many([Finish(row.claim, "release")])
    with pytest.raises(TransactionAbortedError, match="repeat the whole transaction"):
        await driver.unwrap_tx(db).finish_many([Finish(row.claim, "complete")])
    await transaction.rollback()


async def test_a_lost_connection_has_written_nothing(
    driver: AsyncpgDriver, db: asyncpg.Connection, pg_dsn: str, new_job: NewJobs
) -> None:
    mine = await asyncpg.connect(pg_dsn)
    transaction = mine.transaction()
    await transaction.start()
    await db.execute("SELECT pg_terminate_backend($1)", mine.get_server_pid())
    with pytest.raises((DriverUnavailableError, ConfigurationError)) as caught:
        for _ in range(100):
            await driver.unwrap_tx(mine).insert_many([new_job()])
    assert getattr(caught.value, "outcome", "not_applied") == "not_applied"
    assert await count(driver) == 0
    mine.terminate()
