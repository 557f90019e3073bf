"""The test helpers on a real database: nothing in them is the memory driver's own."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import aiosqlite
import pytest

from goncordia import Client, Job, Registry, RetryAfter, SyncClient, SyncJob
from goncordia.gontest import (
    InlineClient,
    SyncInlineClient,
    SyncTracker,
    Tracker,
    WorkerHelper,
    worker_pool,
)
from goncordia_driver_sqlite import SqliteDriver


@dataclass
class Pay:
    kind: ClassVar[str] = "pay"
    order: int


@dataclass
class Print:
    kind: ClassVar[str] = "print"
    order: int


registry = Registry()


@registry.worker(Pay)
async def pay(job: Job[Pay]) -> int:
    if job.attempt == 1:
        raise RetryAfter(3600, "the bank is closed")
    await job.client.enqueue(Print(job.args.order), queue="paper")
    return job.attempt


@registry.worker(Print)
def print_order(job: SyncJob[Print]) -> int:
    return job.args.order


@pytest.fixture
async def driver(tmp_path: Path) -> AsyncIterator[SqliteDriver]:
    async with SqliteDriver(tmp_path / "jobs.db") as made:
        await made.migrate()
        yield made


async def test_a_tracker_sees_what_is_committed(driver: SqliteDriver, tmp_path: Path) -> None:
    client = Client(driver)
    tracker = Tracker(client)
    async with aiosqlite.connect(tmp_path / "jobs.db") as db:
        await db.execute("BEGIN IMMEDIATE")
        await client.enqueue_tx(db, Pay(1), queue="money")
        await tracker.require_not_enqueued(Pay)
        await db.rollback()
        await tracker.require_not_enqueued(Pay)
        await db.execute("BEGIN IMMEDIATE")
        await client.enqueue_tx(db, Pay(2), queue="money")
        await db.commit()
    (found,) = await tracker.require_enqueued(Pay, 1, queue="money")
    assert found.args == Pay(2)
    with pytest.raises(AssertionError, match=r"pay in 'money', available: Pay\(order=2\)"):
        await tracker.require_enqueued(Pay, 1, where=lambda args: args.order == 1)


def test_so_does_a_synchronous_one(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with SqliteDriver(path) as driver, closing(sqlite3.connect(path)) as db:
        driver.migrate_sync()
        client = SyncClient(driver)
        db.execute("BEGIN IMMEDIATE")
        client.enqueue_tx(db, Pay(1))
        SyncTracker(client).require_not_enqueued(Pay)
        db.commit()
        SyncTracker(client).require_enqueued(Pay, 1)


async def test_attempts_one_by_one(driver: SqliteDriver) -> None:
    helper = WorkerHelper(registry, driver)
    result = await helper.work(Pay(5))
    assert (result.state, result.info.attempt) == ("retryable", 1)
    result = await helper.attempt(result.info)
    assert (result.state, result.output) == ("completed", 2)


async def test_inline(driver: SqliteDriver) -> None:
    client = InlineClient(driver, registry)
    assert await client.wait(await client.enqueue(Pay(7)), timeout=0) == 2
    (printed,) = await Tracker(client).require_enqueued(Print, 1, queue="paper")
    assert (printed.info.state, printed.info.output) == ("completed", 7)


def test_inline_and_synchronous(tmp_path: Path) -> None:
    with SqliteDriver(tmp_path / "jobs.db") as driver:
        driver.migrate_sync()
        client = SyncInlineClient(driver, registry)
        assert client.wait(client.enqueue(Pay(7)), timeout=0) == 2
        SyncTracker(client).require_enqueued(Print, 1, queue="paper")


async def test_a_pool(driver: SqliteDriver) -> None:
    client = Client(driver)
    handle = await client.enqueue(Print(3))
    async with worker_pool(driver, registry) as pool:
        await pool.drain()
    assert await client.wait(handle, timeout=0) == 3
