"""Hearing of what others commit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from goncordia.driver import After, Change, Finish, NewJob, Wake
from goncordia_conformance.proxy import ChaosProxy
from goncordia_sql.postgres.notify import channel_of

NewJobs = Callable[..., NewJob]

HERE = "datname = current_database() AND state = 'idle'"
HEARS = f"SELECT pid FROM pg_stat_activity WHERE query = $1 AND {HERE}"


class Ears:
    """What one listener hears."""

    def __init__(self, driver: Any) -> None:
        self.listener = driver.listener()
        self.heard: asyncio.Queue[Wake] = asyncio.Queue()
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for wake in self.listener.wakes():
            self.heard.put_nowait(wake)

    async def next(self) -> Wake:
        async with asyncio.timeout(60):
            return await self.heard.get()

    async def close(self) -> None:
        await self.listener.aclose()
        await self.task


async def pid_of_listener(db: asyncpg.Connection, schema: str) -> int:
    """The backend that listens; waits until there is one."""
    async with asyncio.timeout(60):
        while True:
            pid: int | None = await db.fetchval(HEARS, f'LISTEN "{channel_of(schema)}"')
            if pid is not None:
                return pid
            await asyncio.sleep(0.01)


@pytest.fixture
async def ears(driver: Any, db: asyncpg.Connection, pg_schema: str) -> AsyncIterator[Ears]:
    ears = Ears(driver)
    await pid_of_listener(db, pg_schema)
    yield ears
    await ears.close()


async def test_each_queue_is_told_with_its_time(driver: Any, ears: Ears, new_job: NewJobs) -> None:
    await driver.executor().insert_many(
        [new_job(queue="a", run_at=After(60)), new_job(queue="a"), new_job(queue="b")]
    )
    heard = [await ears.next(), await ears.next()]  # in whatever order
    assert sorted(heard, key=str) == [Wake("jobs", "a", 0.0), Wake("jobs", "b", 0.0)]


async def test_a_burst_is_few_messages(
    driver: Any, ears: Ears, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goncordia_driver_pg.gate._QUIET", 3600)
    monkeypatch.setattr("goncordia_driver_pg.notifier._PAUSE", pause := 0.3)
    executor, loop = driver.executor(), asyncio.get_running_loop()
    began = loop.time()
    await asyncio.gather(*[executor.insert_many([new_job()]) for _ in range(100)])
    took = loop.time() - began
    await driver._notifier.flush()
    await executor.queue_pause("end")
    wakes = []
    while (wake := await ears.next()).what != "queue":
        wakes.append(wake)
    assert wakes
    assert set(wakes) == {Wake("jobs", "default", 0.0)}
    assert len(wakes) <= 3 + took / pause


async def test_jobs_that_come_back_are_told(
    driver: Any, ears: Ears, new_job: NewJobs, claim_all: Any
) -> None:
    await driver.executor().insert_many([new_job()])
    (row,) = await claim_all(driver)
    await driver.executor().finish_many([Finish(row.claim, "retry", After(3))])
    assert await ears.next() == Wake("jobs", "default", 0.0)
    assert await ears.next() == Wake("jobs", None, 3.0)


async def test_what_is_no_news_is_not_told(
    driver: Any, ears: Ears, new_job: NewJobs, claim_all: Any
) -> None:
    executor = driver.executor()
    job = new_job(queue="z")
    await executor.insert_many([job])
    assert await ears.next() == Wake("jobs", "z", 0.0)
    await executor.insert_many([job])
    await executor.change_many([Change(job.id, "cancel"), Change(job.id, "delete")])
    await executor.queue_pause("end")
    assert await ears.next() == Wake("queue", "end")


async def test_a_lost_connection_is_made_anew_and_a_gap_told(
    driver: Any,
    ears: Ears,
    db: asyncpg.Connection,
    pg_schema: str,
    new_job: NewJobs,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pid = await pid_of_listener(db, pg_schema)
    with caplog.at_level(logging.WARNING, "goncordia.postgresql"):
        await db.execute("SELECT pg_terminate_backend($1)", pid)
        assert await ears.next() == Wake("gap")
    assert "listening for jobs failed, trying again" in caplog.text
    await driver.executor().insert_many([new_job(queue="a")])
    assert await ears.next() == Wake("jobs", "a", 0.0)


async def test_what_it_does_not_understand_is_a_gap(
    ears: Ears, db: asyncpg.Connection, pg_schema: str
) -> None:
    await db.execute("SELECT pg_notify($1, 'from the future')", channel_of(pg_schema))
    assert await ears.next() == Wake("gap")


async def test_who_falls_behind_hears_of_a_gap(
    ears: Ears, db: asyncpg.Connection, pg_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goncordia.driver.connections.listener._MOST_HEARD", 3)
    channel = channel_of(pg_schema)
    many = '{"queue":["a","b","c","d","e"]}'
    async with db.transaction():
        await db.execute("SELECT pg_notify($1, $2)", channel, many)
        await db.execute("SELECT pg_notify($1, $2)", channel, '{"queue":["f"]}')
    wakes = [await ears.next()]
    while wakes[-1] != Wake("gap"):
        wakes.append(await ears.next())
    assert Wake("queue", "f") not in wakes


async def test_a_quiet_server_is_asked_whether_it_is_there(
    driver: Any, db: asyncpg.Connection, pg_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goncordia.driver.connections.listener._KEEP_ALIVE", 0.05)
    ears = Ears(driver)
    query = f"SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT 1' AND {HERE}"
    found = 0
    async with asyncio.timeout(60):
        while not found:
            await asyncio.sleep(0.01)
            found = await db.fetchval(query)
    assert ears.heard.empty()
    await ears.close()


async def test_a_server_that_does_not_answer_is_left(
    make: Any,
    driver: Any,
    pg_dsn: str,
    db: asyncpg.Connection,
    pg_schema: str,
    new_job: NewJobs,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Frozen between the two: the keep-alive notices it, and after the thaw a gap is told."""
    monkeypatch.setattr("goncordia.driver.connections.listener._KEEP_ALIVE", 0.1)
    monkeypatch.setattr("goncordia.driver.connections.listener._BOUND", 0.3)
    address = urlsplit(pg_dsn)
    with ChaosProxy(address.hostname or "", address.port or 0) as proxy:
        ears = Ears(make(proxy.before(pg_dsn)))
        while ears.heard.empty():
            await db.execute("SELECT pg_notify($1, 'ping')", channel_of(pg_schema))
            await asyncio.sleep(0.01)
        proxy.freeze()
        with caplog.at_level(logging.WARNING, "goncordia.postgresql"):
            async with asyncio.timeout(60):
                while "listening for jobs failed" not in caplog.text:  # noqa: ASYNC110  # as logs are
                    await asyncio.sleep(0.01)
        await driver.executor().insert_many([new_job(queue="missed")])
        await driver._notifier.flush()
        while not ears.heard.empty():
            ears.heard.get_nowait()
        proxy.thaw()
        assert await ears.next() == Wake("gap")
        await driver.executor().insert_many([new_job(queue="a")])
        assert await ears.next() == Wake("jobs", "a", 0.0)
        await ears.close()


async def test_the_channel_of_a_long_name_is_short() -> None:
    assert channel_of("jobs") == "goncordia_jobs"
    long = "ä" * 31
    assert len(channel_of(long).encode()) <= 63
    assert channel_of(long) != channel_of("ä" * 30 + "b")
    assert channel_of('my "jobs"') == 'goncordia_my "jobs"'


async def test_schemas_do_not_hear_each_other(
    make: Any, driver: Any, ears: Ears, new_job: NewJobs, db: asyncpg.Connection, pg_schema: str
) -> None:
    name = f"{pg_schema} too"
    async with make(schema=name) as other:
        try:
            await other.migrate()
            await other.executor().insert_many([new_job(queue="theirs")])
        finally:
            await db.execute(f'DROP SCHEMA "{name}" CASCADE')
    await driver.executor().insert_many([new_job(queue="ours")])
    assert await ears.next() == Wake("jobs", "ours", 0.0)


async def test_closing_waits_for_what_is_to_be_told(
    make: Any, ears: Ears, migrated: str, new_job: NewJobs
) -> None:
    async with make() as other:
        await other.executor().insert_many([new_job(queue="last")])
    assert await ears.next() == Wake("jobs", "last", 0.0)


@pytest.mark.parametrize("commits", [True, False])
async def test_a_transaction_tells_with_its_commit(
    asyncpg_driver: Any, db: asyncpg.Connection, migrated: str, new_job: NewJobs, commits: bool
) -> None:
    ears = Ears(asyncpg_driver)
    await pid_of_listener(db, migrated)
    transaction = db.transaction()
    await transaction.start()
    await asyncpg_driver.unwrap_tx(db).insert_many([new_job(queue="a"), new_job(queue="b")])
    await asyncpg_driver.executor().queue_pause("before")
    assert await ears.next() == Wake("queue", "before")
    await (transaction.commit() if commits else transaction.rollback())
    await asyncpg_driver.executor().queue_pause("after")
    heard = [await ears.next()]
    while heard[-1].what != "queue":
        heard.append(await ears.next())
    told = {wake.queue for wake in heard if wake.what == "jobs"}
    assert told == ({"a", "b"} if commits else set())
    await ears.close()
