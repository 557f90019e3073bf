"""Telling of what synchronous callers have committed, when their transactions do not carry it."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from goncordia.driver import ListFilter, NewJob, Wake
from goncordia.errors import DriverUnavailableError
from goncordia_driver_pg import PsycopgDriver
from goncordia_driver_pg.gate import Gate
from goncordia_driver_pg.psycopg_connections import PsycopgSyncConnection
from goncordia_driver_pg.watcher import SyncWatcher
from goncordia_sql.postgres.notify import News

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
    psycopg_driver: PsycopgDriver,
    new_job: NewJobs,
    sync_db: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watcher = psycopg_driver._sync_watcher
    async with listening(psycopg_driver, new_job) as ears:
        with sync_db.transaction(force_rollback=True):
            psycopg_driver.unwrap_sync_tx(sync_db).insert_many([new_job(queue="never")])
        monkeypatch.setattr("goncordia_driver_pg.watcher._OLDEST_UNSEEN", 0.3)
        async with asyncio.timeout(60):
            while watcher._pending or watcher._thread is not None:  # noqa: ASYNC110  # a thread's
                await asyncio.sleep(0.01)
        monkeypatch.setattr("goncordia_driver_pg.watcher._OLDEST_UNSEEN", 600)
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
    monkeypatch.setattr("goncordia_driver_pg.watcher._FIRST_LOOK", 60)  # too late by itself
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


# -------------------------------------------------------------------- the watcher alone


class Server:
    """Knows which jobs are there, and what was told of them."""

    def __init__(self) -> None:
        self.there: set[UUID] = set()
        self.asked: list[set[UUID]] = []
        self.told = threading.Event()
        self.watcher = SyncWatcher(self.send, Gate())

    def send(self, messages: Any) -> set[UUID]:
        self.asked.append(set(messages))
        found = self.there & set(messages)
        if found:
            self.told.set()
        return found


def test_the_callers_connection_is_left_alone() -> None:
    """Another thread may not ask it, and it may be dropped meanwhile."""
    server, job_id = Server(), uuid4()
    connection = Connection()
    seen = weakref.ref(connection)
    server.watcher.watch(connection, job_id, News())
    del connection
    gc.collect()
    assert seen() is None
    server.there.add(job_id)
    assert server.told.wait(60)


class Connection:
    """Whatever is asked of it is an error: it has nothing."""


def test_one_that_was_rolled_back_is_looked_for_less_and_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, connection = Server(), Connection()
    server.watcher.watch(connection, uuid4(), News())
    (pending,) = server.watcher._pending.values()
    looks = [pending.look_at - pending.added]
    with server.watcher._lock:  # the watcher's thread waits
        now = pending.added
        while pending.ids and len(looks) < 100:
            now = max(now, pending.look_at)
            before = now
            assert pending.is_due(now)
            pending.seen({pending.ids[0]: ""}, set(), now)
            looks.append(pending.look_at - before)
    server.watcher.flush()
    assert [round(each, 2) for each in looks[:9]] == [
        0.05,
        0.1,
        0.2,
        0.4,
        0.8,
        1.6,
        3.2,
        5.0,
        5.0,
    ]
    assert len(looks) < 25


def test_the_next_transaction_on_a_connection_is_looked_for_at_once() -> None:
    server, connection = Server(), Connection()
    job_id = uuid4()
    server.watcher.watch(connection, uuid4(), News())
    with server.watcher._lock:
        (pending,) = server.watcher._pending.values()
        pending.look_at += 3600
    server.there.add(job_id)
    server.watcher.watch(connection, job_id, News())
    assert server.told.wait(60)
    server.watcher.flush()


# -------------------------------------------------------------------- outside of a transaction


async def test_a_lone_insert_is_told_by_its_own_commit(
    psycopg_driver: PsycopgDriver, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[News] = []
    monkeypatch.setattr(psycopg_driver._sync_executor._told, "_send", said.append)
    async with listening(psycopg_driver, new_job) as ears:
        monkeypatch.setattr(psycopg_driver._gate, "passes", lambda: True)
        executor = psycopg_driver.sync_executor()
        (result,) = await asyncio.to_thread(executor.insert_many, [new_job(queue="a")])
        assert result.status == "INSERTED"
        await ears.hears("a")
        assert not said
        monkeypatch.setattr(psycopg_driver._gate, "passes", lambda: False)
        await asyncio.to_thread(executor.insert_many, [new_job(queue="b")])
        assert len(said) == 1


async def test_telling_takes_a_bounded_time(
    psycopg_driver: PsycopgDriver,
    sync_db: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("goncordia_driver_pg.psycopg_driver.BOUND", 0.3)
    executor = psycopg_driver.sync_executor()
    assert await asyncio.to_thread(executor.count, ListFilter()) == 0
    with sync_db.transaction():
        sync_db.execute(
            f"LOCK TABLE {psycopg_driver._dialect.job} IN ACCESS EXCLUSIVE MODE".encode()
        )
        with pytest.raises(DriverUnavailableError, match=r"within 0\.3 s"):
            await asyncio.to_thread(psycopg_driver._say_sync_of_jobs, {uuid4(): ""})
    assert await asyncio.to_thread(executor.count, ListFilter()) == 0


async def test_closing_needs_none_of_the_loops_threads(
    psycopg_driver: PsycopgDriver, new_job: NewJobs
) -> None:
    await asyncio.to_thread(psycopg_driver.sync_executor().insert_many, [new_job()])
    assert psycopg_driver._own_sync is not None
    free = threading.Event()
    with ThreadPoolExecutor(1) as executor:
        asyncio.get_running_loop().set_default_executor(executor)
        taken = asyncio.create_task(asyncio.to_thread(free.wait, 60))
        await asyncio.sleep(0)
        await psycopg_driver.aclose()
        assert not taken.done()
        free.set()
        await taken
    assert psycopg_driver._own_sync is None
