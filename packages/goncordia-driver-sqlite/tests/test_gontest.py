"""The test helpers on a real database, also beside a transaction that is open."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import aiosqlite
import pytest

from goncordia import Client, SyncClient
from goncordia.gontest import SyncTracker, Tracker
from goncordia_conformance.helpers import HelperTests, Make, Pay
from goncordia_driver_sqlite import SqliteDriver


class TestHelpers(HelperTests):
    @pytest.fixture
    def make(self, path: Path) -> Make:
        return partial(SqliteDriver, path)


async def test_a_tracker_sees_what_is_committed(driver: SqliteDriver, path: Path) -> None:
    client = Client(driver)
    tracker = Tracker(client)
    async with aiosqlite.connect(path) as db:
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


def test_so_does_a_synchronous_one(path: Path) -> None:
    with SqliteDriver(path) as driver, closing(sqlite3.connect(path)) as db:
        driver.migrate_sync()
        client = SyncClient(driver)
        db.execute("BEGIN IMMEDIATE")
        client.enqueue_tx(db, Pay(1))
        SyncTracker(client).require_not_enqueued(Pay)
        db.commit()
        SyncTracker(client).require_enqueued(Pay, 1)
