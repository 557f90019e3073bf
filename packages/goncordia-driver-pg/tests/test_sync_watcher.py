"""Telling of what synchronous callers have committed, when their transactions do not carry it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from goncordia.driver import NewJob, Wake
from goncordia_driver_pg import PsycopgDriver
from goncordia_driver_pg.psycopg_connections import PsycopgSyncConnection

NewJobs = Callable[..., NewJob]


class Ears:
    """What was heard."""

    def __init__(self, driver: PsycopgDriver) -> None:
        listener = driver.listener()
        assert listener is not None
        self._listener = listener
        self._heard: asyncio.Queue[Wake] = asyncio.Queue()

    async def listen(self) -> None:
        async for wake in self._listener.wakes():
            self._heard.put_nowait(wake)

    async def hears(self, queue: str) -> None:
        async with asyncio.timeout(60):
            while await self._heard.get() != Wake("jobs", queue, 0.0):
                pass

    def has_heard(self, queue: str) -> bool:
        heard = [self._heard.get_nowait() for _ in range(self._heard.qsize())]
        return Wake("jobs", queue, 0.0) in heard


@asynccontextmanager
async def listening(driver: PsycopgDriver, new_job: NewJobs) -> AsyncIterator[Ears]:
    ears = Ears(driver)
    task = asyncio.create_task(ears.listen())
    async with asyncio.timeout(60):
        while ears._heard.empty():
            await driver.executor().insert_many([new_job(queue="begin")])
            await asyncio.sleep(0.02)
    try:
        yield ears
    finally:
        await ears._listener.aclose()
        await task


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was run on the callers' connections."""
    run: list[str] = []
    execute: Any = PsycopgSyncConnection.execute

    def noted(self: Any, step: Any, /) -> Any:
        if type(self).__name__ == "PsycopgSyncTxConnection":
            run.append(step.sql.text)
        return execute(self, step)

    monkeypatch.setattr(PsycopgSyncConnection, "execute", noted)
    return run


@pytest.fixture
def closed_gate(psycopg_driver: PsycopgDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody has just told something, always."""
    monkeypatch.setattr(psycopg_driver._gate, "passes", lambda: False)


@pytest.mark.parametrize("count", [1, 3])
async def test_one_transaction_carries_it_and_the_next_does_not(
    psycopg_driver: PsycopgDriver,
    new_job: NewJobs,
    sync_db: psycopg.Connection,
    statements: list[str],
    monkeypatch: pytest.MonkeyPatch,
    count: int,
) -> None:
    async with listening(psycopg_driver, new_job) as ears:
        passes = iter([True, False])
        monkeypatch.setattr(psycopg_driver._gate, "passes", lambda: next(passes))
        carried = []
        for queue in ("a", "b"):
            with sync_db.transaction():
                jobs = [new_job(queue=queue) for _ in range(count)]
                psycopg_driver.unwrap_sync_tx(sync_db).insert_many(jobs)
            carried.append(sum("pg_notify" in each for each in statements))
            statements.clear()
            await ears.hears(queue)
    assert carried == [1, 0]


@pytest.mark.usefixtures("closed_gate")
async def test_a_late_commit_is_told_and_not_before(
    psycopg_driver: PsycopgDriver, new_job: NewJobs, sync_db: psycopg.Connection
) -> None:
    async with listening(psycopg_driver, new_job) as ears:
        with sync_db.transaction():
            psycopg_driver.unwrap_sync_tx(sync_db).insert_many([new_job(queue="late")])
            await asyncio.sleep(0.3)  # it is looked for several times
            assert not ears.has_heard("late")
        await ears.hears("late")


@pytest.mark.usefixtures("closed_gate")
async def test_a_rollback_is_not_told_and_forgotten(
    psycopg_driver: PsycopgDriver, new_job: NewJobs, sync_db: psycopg.Connection
) -> None:
    watcher = psycopg_driver._sync_watcher
    async with listening(psycopg_driver, new_job) as ears:
        with sync_db.transaction(force_rollback=True):
            psycopg_driver.unwrap_sync_tx(sync_db).insert_many([new_job(queue="never")])
        async with asyncio.timeout(60):
            while watcher._pending or watcher._thread is not None:  # noqa: ASYNC110  # a thread's
                await asyncio.sleep(0.01)
        with sync_db.transaction():
            psycopg_driver.unwrap_sync_tx(sync_db).insert_many([new_job(queue="kept")])
        async with asyncio.timeout(60):
            heard = []
            while Wake("jobs", "kept", 0.0) not in heard:
                heard.append(await ears._heard.get())
        assert Wake("jobs", "never", 0.0) not in heard


@pytest.mark.usefixtures("closed_gate")
@pytest.mark.parametrize("way", ["close", "aclose"])
async def test_closing_tells_what_is_committed_and_waits_for_nothing_else(
    psycopg_driver: PsycopgDriver,
    new_job: NewJobs,
    pg_dsn: str,
    sync_db: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    monkeypatch.setattr("goncordia_driver_pg.watcher._NAP", 0.2)  # it comes too late by itself
    other = PsycopgDriver(pg_dsn, schema=psycopg_driver.schema)
    async with listening(other, new_job) as ears:
        with psycopg.connect(pg_dsn) as still_open:
            psycopg_driver.unwrap_sync_tx(still_open).insert_many([new_job(queue="open")])
            with sync_db.transaction():
                psycopg_driver.unwrap_sync_tx(sync_db).insert_many([new_job(queue="a")])
            if way == "close":
                await asyncio.to_thread(psycopg_driver.close)
            else:
                await psycopg_driver.aclose()
            assert not psycopg_driver._sync_watcher._pending
            still_open.rollback()
        await ears.hears("a")
    await other.aclose()
