"""Inserts that carry a NOTIFY themselves, and those of which it is told afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import asyncpg
import psycopg
import pytest

from goncordia.driver import At, NewJob
from goncordia_driver_pg import AsyncpgDriver
from goncordia_driver_pg.gate import Gate
from goncordia_sql.postgres.notify import channel_of

NewJobs = Callable[..., NewJob]
Heard = list[str]


@pytest.fixture
async def heard(db: asyncpg.Connection, pg_schema: str) -> AsyncIterator[Heard]:
    """What was heard on the schema's channel."""
    heard: Heard = []

    def hear(_connection: object, _pid: int, _channel: str, payload: object) -> None:
        heard.append(str(payload))

    channel = channel_of(pg_schema)
    await db.add_listener(channel, hear)
    yield heard
    await db.remove_listener(channel, hear)


@pytest.fixture
def lone(driver: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A driver of which every insert finds the gate open, and that tells nothing by the way."""
    monkeypatch.setattr(driver._gate, "passes", lambda: True)
    monkeypatch.setattr(driver._notifier, "say", lambda: None)
    return driver


def test_only_now_and_then_a_transaction_carries_it(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([100.0, 100.019, 100.021, 100.040, 100.042, 100.050, 100.063, 100.071])
    monkeypatch.setattr("goncordia_driver_pg.gate.time", SimpleNamespace(monotonic=times.__next__))
    gate = Gate()
    assert [gate.passes() for _ in range(5)] == [True, False, True, False, True]
    gate.told()
    assert [gate.passes(), gate.passes()] == [False, True]


async def test_a_lone_insert_is_told_by_its_own_commit(
    lone: Any, heard: Heard, db: asyncpg.Connection, new_job: NewJobs
) -> None:
    (result,) = await lone.executor().insert_many([new_job(queue="a")])
    await db.execute("SELECT 1")  # what was notified before comes with the answer
    assert result.status == "INSERTED"
    assert heard == ['{"jobs":{"a":0.0}}']


async def test_what_is_not_new_is_not_told(
    lone: Any, heard: Heard, db: asyncpg.Connection, new_job: NewJobs
) -> None:
    job = new_job(unique_key=b"k")
    statuses = [
        (await lone.executor().insert_many([each]))[0].status
        for each in (job, job, new_job(unique_key=b"k"))
    ]
    await db.execute("SELECT 1")
    assert statuses == ["INSERTED", "REPLAYED", "DUPLICATE"]
    assert heard == ['{"jobs":{"default":0.0}}']


async def test_the_next_holder_of_a_key_is_told(
    lone: Any, heard: Heard, db: asyncpg.Connection, new_job: NewJobs
) -> None:
    """Its first statement meets a hold that is over; the one after that inserts."""
    executor = lone.executor()
    over = At(await executor.now())
    first = new_job(unique_key=b"k", unique_hold=over, queue="a")
    await executor.insert_many([first])
    (result,) = await executor.insert_many([new_job(unique_key=b"k", queue="b")])
    await db.execute("SELECT 1")
    assert result.status == "INSERTED"
    assert heard == ['{"jobs":{"a":0.0}}', '{"jobs":{"b":0.0}}']


@pytest.mark.parametrize("commits", [True, False])
async def test_in_the_callers_transaction(
    lone: Any, heard: Heard, db: asyncpg.Connection, pg_dsn: str, new_job: NewJobs, commits: bool
) -> None:
    if isinstance(lone, AsyncpgDriver):
        mine = await asyncpg.connect(pg_dsn)
        transaction = mine.transaction()
        await transaction.start()
        await lone.unwrap_tx(mine).insert_many([new_job()])
        assert await mine.fetchval("SHOW synchronous_commit") == "on"
        await (transaction.commit() if commits else transaction.rollback())
        await mine.close()
    else:
        async with await psycopg.AsyncConnection.connect(pg_dsn) as other:
            await lone.unwrap_tx(other).insert_many([new_job()])
            cursor = await other.execute("SHOW synchronous_commit")
            assert await cursor.fetchone() == ("on",)
            await (other.commit() if commits else other.rollback())
    await db.execute("SELECT 1")
    assert heard == (['{"jobs":{"default":0.0}}'] if commits else [])
    assert not lone._watcher._pending


async def test_of_many_only_few_carry_it(
    driver: Any,
    db: asyncpg.Connection,
    heard: Heard,
    new_job: NewJobs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One at once; while it is quiet no more, the others are one message."""
    monkeypatch.setattr("goncordia_driver_pg.gate._QUIET", 3600)
    monkeypatch.setattr("goncordia_driver_pg.notifier._PAUSE", 3600)
    executor = driver.executor()
    for _ in range(5):
        await executor.insert_many([new_job()])
    assert not driver._gate.passes()
    await db.execute("SELECT 1")
    assert heard[0] == '{"jobs":{"default":0.0}}'
    assert len(heard) <= 2


async def test_after_a_message_commits_wait_for_the_disk_again(
    make: Any, driver: Any, new_job: NewJobs
) -> None:
    """What is told afterwards does not; the setting is of its transaction alone."""
    async with make(pool_size=1) as only:
        await only.ready()
        await only.executor().insert_many([new_job(), new_job()])
        await only._notifier.flush()
        shown = only._dialect.sql("SELECT current_setting('synchronous_commit')")

        def setting() -> Any:
            return (yield shown()).rows[0][0]

        assert await only._runner.run(await only._pool(), setting, writes=False) == "on"
