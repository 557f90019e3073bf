"""Parked jobs whose turn was not seen when it came: they are found all the same."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from goncordia.driver import FetchRequest, Finish, JobRow, NewJob, QueueFetch
from goncordia.ids import new_session_id
from goncordia_driver_pg import AsyncpgDriver


class _Worker:
    """A session that fetches."""

    def __init__(self, driver: AsyncpgDriver) -> None:
        self.executor = driver.executor()
        self.session = new_session_id()
        self._fetches = 0

    async def fetch(self) -> list[JobRow]:
        self._fetches += 1
        request = FetchRequest(self.session, self._fetches, 9, (QueueFetch("default", 9),), "w")
        return (await self.executor.fetch(request)).jobs


@pytest.fixture
async def worker(asyncpg_driver: AsyncpgDriver) -> _Worker:
    worker = _Worker(asyncpg_driver)
    await worker.executor.session_open(worker.session, "w", 600)
    return worker


@contextlib.asynccontextmanager
async def rolled_back(db: asyncpg.Connection) -> AsyncGenerator[None]:
    transaction = db.transaction()
    await transaction.start()
    yield
    await transaction.rollback()


def completed(row: JobRow) -> Finish:
    assert row.claim is not None
    return Finish(row.claim, "complete")


async def one_runs_and_one_is_parked(
    worker: _Worker, new_job: Callable[..., NewJob]
) -> tuple[JobRow, UUID]:
    parked = new_job(group="g", group_limit=1)
    await worker.executor.insert_many([new_job(group="g", group_limit=1)])
    (running,) = await worker.fetch()
    await worker.executor.insert_many([parked])
    assert await worker.fetch() == []
    return running, parked.id


async def test_one_that_was_held_locked_at_that_moment(
    worker: _Worker, asyncpg_driver: AsyncpgDriver, db: asyncpg.Connection, new_job: Any
) -> None:
    running, parked = await one_runs_and_one_is_parked(worker, new_job)
    async with rolled_back(db):
        await asyncpg_driver.unwrap_tx(db).cancel_many([parked])
        await worker.executor.finish_many([completed(running)])
    assert await worker.fetch() == []
    await worker.executor.expire(worker.session, 10)
    assert [row.id for row in await worker.fetch()] == [parked]


async def test_one_that_the_transaction_did_not_see(
    worker: _Worker, asyncpg_driver: AsyncpgDriver, db: asyncpg.Connection, new_job: Any
) -> None:
    await worker.executor.insert_many([new_job(group="g", group_limit=1)])
    (running,) = await worker.fetch()
    parked = new_job(group="g", group_limit=1)
    async with db.transaction(isolation="repeatable_read"):
        await db.fetch("SELECT 1 FROM pg_class LIMIT 1")
        await worker.executor.insert_many([parked])
        assert await worker.fetch() == []
        await asyncpg_driver.unwrap_tx(db).finish_many([completed(running)])
    await worker.executor.expire(worker.session, 10)
    assert [row.id for row in await worker.fetch()] == [parked.id]


async def test_one_of_a_lower_limit_after_two_ends_at_once(
    worker: _Worker, asyncpg_driver: AsyncpgDriver, db: asyncpg.Connection, new_job: Any
) -> None:
    await worker.executor.insert_many([new_job(group="g", group_limit=5) for _ in range(2)])
    first, second = await worker.fetch()
    parked = new_job(group="g", group_limit=1)
    await worker.executor.insert_many([parked])
    assert await worker.fetch() == []
    async with db.transaction():
        await asyncpg_driver.unwrap_tx(db).finish_many([completed(first)])
        await worker.executor.finish_many([completed(second)])
    assert [row.id for row in await worker.fetch()] == [parked.id]


async def test_no_more_come_back_than_there_is_room_for(
    worker: _Worker, db: asyncpg.Connection, asyncpg_driver: AsyncpgDriver, new_job: Any
) -> None:
    await one_runs_and_one_is_parked(worker, new_job)
    await worker.executor.expire(worker.session, 10)
    query = f'SELECT count(*) FROM "{asyncpg_driver.schema}".job WHERE state = 2'
    assert await db.fetchval(query) == 1
