"""Jobs that somebody's open transaction holds: nothing else waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import asyncpg
import pytest

from goncordia.driver import (
    Change,
    FetchRequest,
    Finish,
    FinishTo,
    JobRow,
    Mark,
    NewJob,
    QueueFetch,
)
from goncordia.ids import new_session_id
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver
from goncordia_sql.postgres.dialect import quoted

KEY = b"k" * 32
AnyPgDriver: TypeAlias = AsyncpgDriver | PsycopgDriver


def finish(row: JobRow, to: FinishTo = "complete") -> Finish:
    assert row.claim is not None
    return Finish(row.claim, to)


@pytest.fixture
def claimed(
    driver: AnyPgDriver,
    db: asyncpg.Connection,
    new_job: Callable[..., NewJob],
    claim_all: Callable[[AnyPgDriver], Any],
) -> Callable[..., Awaitable[list[JobRow]]]:
    """Gives three jobs that were claimed; the last is not there any more."""

    async def claimed(**fields: Any) -> list[JobRow]:
        await driver.executor().insert_many([new_job(**fields) for _ in range(3)])
        rows: list[JobRow] = await claim_all(driver)
        await db.execute(f"DELETE FROM {quoted(driver.schema)}.job WHERE id = $1", rows[2].id)
        return rows

    return claimed


@pytest.mark.parametrize("to", ["complete", "retry", "release", "discard"])
@pytest.mark.parametrize("group", [None, "g"])
async def test_results_for_others_are_stored_meanwhile(
    driver: AnyPgDriver,
    db: asyncpg.Connection,
    claimed: Callable[..., Awaitable[list[JobRow]]],
    to: FinishTo,
    group: str | None,
) -> None:
    executor = driver.executor()
    held, other, gone = await claimed(group=group, group_limit=0 if group is None else 9)
    job = f"{quoted(driver.schema)}.job"
    async with db.transaction():
        await db.execute(f"SELECT 1 FROM {job} WHERE id = $1 FOR UPDATE", held.id)
        sent = [finish(held, to), finish(other), finish(gone)]
        outcomes, _ = await executor.exchange(sent, None)
        assert [outcome.status for outcome in outcomes] == ["BUSY", "DONE", "GONE"]
        (again,) = await executor.finish_many(sent[:1])
        assert again.status == "BUSY"
    outcomes = await executor.finish_many(sent)
    assert [outcome.status for outcome in outcomes] == ["DONE", "ALREADY", "GONE"]


async def test_marks_of_others_are_stored_meanwhile(
    driver: AnyPgDriver,
    db: asyncpg.Connection,
    claimed: Callable[..., Awaitable[list[JobRow]]],
) -> None:
    executor = driver.executor()
    rows = await claimed()
    held = rows[0]
    job = f"{quoted(driver.schema)}.job"
    marks = [Mark(row.claim, checkpoint=b"1") for row in rows if row.claim is not None]
    async with db.transaction():
        await db.execute(f"SELECT 1 FROM {job} WHERE id = $1 FOR UPDATE", held.id)
        outcomes = await executor.mark_many(marks)
        assert [outcome.status for outcome in outcomes] == ["BUSY", "DONE", "GONE"]
    outcomes = await executor.mark_many(marks)
    assert [outcome.status for outcome in outcomes] == ["DONE", "DONE", "GONE"]


async def test_jobs_of_the_dead_are_rescued_though_another_stands_still_in_its_beat(
    driver: AnyPgDriver,
    db: asyncpg.Connection,
    new_job: Callable[..., NewJob],
    claim_all: Callable[[AnyPgDriver], Any],
) -> None:
    executor = driver.executor()
    await executor.insert_many([new_job()])
    (row,) = await claim_all(driver)
    asker, frozen = new_session_id(), new_session_id()
    await executor.session_open(frozen, "frozen", 30.0)
    await executor.session_open(asker, "asker", 30.0)
    table = f"{quoted(driver.schema)}.session"
    long_ago = "now() - interval '1 hour'"
    await db.execute(f"UPDATE {table} SET beat_at = {long_ago} WHERE id <> $1", asker)
    await db.execute(f"UPDATE {table} SET since = {long_ago} WHERE id = $1", asker)
    async with db.transaction():
        await db.execute(f"SELECT 1 FROM {table} WHERE id = $1 FOR UPDATE", frozen)
        async with asyncio.timeout(30):
            rescued = await executor.expire(asker, 10)
    assert [each.id for each in rescued] == [row.id]
    held = [each for each in await executor.session_list() if each.id == frozen]
    assert [each.open for each in held] == [True]
    await executor.expire(asker, 10)
    assert frozen not in {each.id for each in await executor.session_list()}


async def test_an_exchange_tells_which_one_is_held(
    driver: AnyPgDriver,
    db: asyncpg.Connection,
    new_job: Callable[..., NewJob],
    claim_all: Callable[[AnyPgDriver], Any],
) -> None:
    executor = driver.executor()
    await executor.insert_many([new_job() for _ in range(3)])
    rows = await claim_all(driver)
    await executor.insert_many([new_job()])
    assert rows[0].claim is not None
    request = FetchRequest(rows[0].claim.session, 2, 5, (QueueFetch("default", 5),), "w")
    async with db.transaction():
        job = f"{quoted(driver.schema)}.job"
        await db.execute(f"SELECT 1 FROM {job} WHERE id = $1 FOR UPDATE", rows[0].id)
        outcomes, result = await executor.exchange([finish(row) for row in rows], request)
    assert [outcome.status for outcome in outcomes] == ["BUSY", "DONE", "DONE"]
    assert result is not None
    assert len(result.jobs) == 1


async def test_a_retry_that_meets_a_key_that_is_just_being_taken_is_a_conflict(
    asyncpg_driver: AsyncpgDriver,
    db: asyncpg.Connection,
    new_job: Callable[..., NewJob],
    claim_all: Callable[[AnyPgDriver], Any],
) -> None:
    executor = asyncpg_driver.executor()
    old, new, other = new_job(unique_key=KEY), new_job(unique_key=KEY), new_job()
    await executor.insert_many([old, other])
    for row in await claim_all(asyncpg_driver):
        await executor.finish_many([finish(row, "discard")])
    async with db.transaction():
        await asyncpg_driver.unwrap_tx(db).insert_many([new])
        changes = [Change(old.id, "retry"), Change(other.id, "retry")]
        retrying = asyncio.create_task(executor.change_many(changes))
        await until_somebody_waits(db)
    conflict, changed = await retrying
    assert (conflict.status, conflict.holder) == ("CONFLICT", new.id)
    assert changed.status == "CHANGED"


async def until_somebody_waits(db: asyncpg.Connection) -> None:
    """Until another connection waits for a lock of this one's transaction."""
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    )
    while not await db.fetchval(query):  # noqa: ASYNC110  # nobody tells of it
        await asyncio.sleep(0.01)
