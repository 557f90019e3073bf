"""Jobs that others write after a statement has begun and before it locks them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import asyncpg
import pytest

from goncordia.driver import FetchRequest, Finish, FinishTo, JobRow, Mark, NewJob, QueueFetch
from goncordia.ids import new_session_id
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver
from goncordia_sql.postgres.dialect import quoted

AnyPgDriver: TypeAlias = AsyncpgDriver | PsycopgDriver
Pool: TypeAlias = "Callable[[], Awaitable[Claims]]"

PATIENCE = 60.0


def finish(row: JobRow, to: FinishTo = "complete") -> Finish:
    assert row.claim is not None
    return Finish(row.claim, to)


class Claims:
    """A session and its fetches."""

    def __init__(self, driver: AnyPgDriver) -> None:
        self.executor = driver.executor()
        self.session = new_session_id()
        self._fetches = 0

    def request(self, most: int) -> FetchRequest:
        self._fetches += 1
        return FetchRequest(self.session, self._fetches, most, (QueueFetch("default", most),), "w")

    async def fetch(self, most: int) -> list[JobRow]:
        return (await self.executor.fetch(self.request(most))).jobs


@pytest.fixture
def pool(driver: AnyPgDriver) -> Pool:
    async def pool() -> Claims:
        claims = Claims(driver)
        await claims.executor.session_open(claims.session, "w", 600)
        return claims

    return pool


@pytest.fixture
async def half_way(driver: AnyPgDriver, db: asyncpg.Connection) -> Any:
    """While it is entered, a statement that completes a first job stands still there."""
    schema = quoted(driver.schema)
    await db.execute(f"""
        CREATE TABLE {schema}.door (); INSERT INTO {schema}.door DEFAULT VALUES;
        CREATE FUNCTION {schema}.wait() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM 1 FROM {schema}.door FOR UPDATE; RETURN NEW; END $$;
        CREATE TRIGGER wait BEFORE UPDATE ON {schema}.job FOR EACH ROW
        WHEN (NEW.finished_at IS NOT NULL) EXECUTE FUNCTION {schema}.wait();
        """)

    @asynccontextmanager
    async def half_way(work: Awaitable[Any]) -> AsyncIterator[asyncio.Future[Any]]:
        waits = "SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        async with db.transaction():
            await db.execute(f"SELECT 1 FROM {schema}.door FOR UPDATE")
            task = asyncio.ensure_future(work)
            async with asyncio.timeout(PATIENCE):
                while await db.fetchval(waits) is None:  # noqa: ASYNC110 - it tells nobody
                    await asyncio.sleep(0.01)
            yield task

    return half_way


@pytest.mark.parametrize("others", [0, 1])
async def test_one_that_was_claimed_and_given_back_is_left_for_the_next_fetch(
    driver: AnyPgDriver,
    pool: Pool,
    half_way: Any,
    new_job: Callable[..., NewJob],
    others: int,
) -> None:
    ours, theirs = await pool(), await pool()
    done, moved, *rest = jobs = [new_job() for _ in range(2 + others)]
    await driver.executor().insert_many(jobs)
    claimed = await ours.fetch(1)
    assert [row.id for row in claimed] == [done.id]
    exchange = driver.executor().exchange([finish(claimed[0])], ours.request(10))
    async with half_way(exchange) as exchanging:
        (row,) = await theirs.fetch(1)
        assert row.id == moved.id
        await driver.executor().finish_many([finish(row, "release")])
    (outcome,), result = await exchanging
    assert outcome.status == "DONE"
    assert [row.id for row in result.jobs] == [job.id for job in rest]
    assert result.more
    (stored,) = await driver.executor().get_many([moved.id])
    assert stored is not None
    assert (stored.state, stored.attempt, stored.claim) == ("available", 0, None)
    (again,) = await ours.fetch(10)
    assert (again.id, again.attempt) == (moved.id, 1)


async def test_one_that_was_claimed_meanwhile_is_not_claimed_again(
    driver: AnyPgDriver, pool: Pool, half_way: Any, new_job: Callable[..., NewJob]
) -> None:
    ours, theirs = await pool(), await pool()
    done, taken, last = jobs = [new_job() for _ in range(3)]
    await driver.executor().insert_many(jobs)
    (claimed,) = await ours.fetch(1)
    assert claimed.id == done.id
    exchange = driver.executor().exchange([finish(claimed)], ours.request(10))
    async with half_way(exchange) as exchanging:
        (row,) = await theirs.fetch(1)
    _, result = await exchanging
    assert [each.id for each in result.jobs] == [last.id]
    (stored,) = await driver.executor().get_many([taken.id])
    assert stored is not None
    assert stored.claim == row.claim


async def test_one_that_was_marked_meanwhile_is_completed_all_the_same(
    driver: AnyPgDriver, pool: Pool, half_way: Any, new_job: Callable[..., NewJob]
) -> None:
    ours = await pool()
    await driver.executor().insert_many([new_job() for _ in range(2)])
    rows = await ours.fetch(2)
    claim = rows[1].claim
    assert claim is not None
    exchange = driver.executor().exchange([finish(row) for row in rows], ours.request(10))
    async with half_way(exchange) as exchanging:
        await driver.executor().mark_many([Mark(claim, checkpoint=b"7")])
    outcomes, _ = await exchanging
    assert [(each.status, each.state) for each in outcomes] == [("DONE", "completed")] * 2
    (stored,) = await driver.executor().get_many([rows[1].id])
    assert stored is not None
    assert (stored.state, stored.checkpoint) == ("completed", b"7")
