"""The lane as the driver uses it: writers share commits, and everyone is answered alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from goncordia.driver import Change, InsertResult, JobState, ListFilter, NewJob
from goncordia_driver_sqlite import SqliteDriver
from goncordia_driver_sqlite.lane import Lane


class Gate:
    """Keeps the lane's thread busy until it is opened."""

    def __init__(self, lane: Lane) -> None:
        self._event = threading.Event()
        self.future = lane.submit_function(self._event.wait)

    async def open(self) -> None:
        self._event.set()
        await self.future


async def test_writers_and_readers_do_not_wait_for_each_other(
    driver: SqliteDriver, new_job: Callable[..., NewJob]
) -> None:
    gate = Gate(driver._core.writer)
    assert await driver.executor().count(ListFilter()) == 0
    await gate.open()


async def test_one_sees_what_one_has_written(
    driver: SqliteDriver, new_job: Callable[..., NewJob]
) -> None:
    executor = driver.executor()
    for n in range(1, 50):
        await executor.insert_many([new_job()])
        assert await executor.count(ListFilter()) == n


async def test_many_producers_share_commits(
    driver: SqliteDriver, new_job: Callable[..., NewJob]
) -> None:
    async def produce() -> None:
        for _ in range(20):
            await driver.executor().insert_many([new_job()])

    before = driver._core.writer.transactor.committed
    await asyncio.gather(*(produce() for _ in range(16)))
    assert await driver.executor().count(ListFilter()) == 320
    assert driver._core.writer.transactor.committed - before <= 160


async def test_what_shares_a_statement_is_answered_each_for_itself(
    driver: SqliteDriver, new_job: Callable[..., NewJob]
) -> None:
    """A repeated insert, a held key, and one that cannot be stored at all."""
    known, keyed = new_job(), new_job(unique_key=b"k" * 32)
    await driver.executor().insert_many([known])
    bad = new_job(meta={"k": object()})
    new = new_job()
    jobs = [known, new, keyed, new_job(unique_key=b"k" * 32), bad, new, new_job()]
    inserting = [driver.executor().insert_many([job]) for job in jobs]
    answers = await asyncio.gather(*inserting, return_exceptions=True)
    found = [answer[0] if isinstance(answer, list) else type(answer) for answer in answers]
    assert found == [
        InsertResult(known.id, "REPLAYED"),
        InsertResult(new.id, "INSERTED"),
        InsertResult(keyed.id, "INSERTED"),
        InsertResult(jobs[3].id, "DUPLICATE", keyed.id),
        TypeError,
        InsertResult(new.id, "REPLAYED"),
        InsertResult(jobs[6].id, "INSERTED"),
    ]
    assert await driver.executor().count(ListFilter()) == 4


async def test_asynchronous_and_synchronous_code_together(
    driver: SqliteDriver, new_job: Callable[..., NewJob]
) -> None:
    sync = driver.sync_executor()
    jobs = [new_job() for _ in range(4)]
    await driver.executor().insert_many(jobs[:2])
    sync.insert_many(jobs[2:])
    rows = sync.get_many([job.id for job in jobs])
    assert rows == await driver.executor().get_many([job.id for job in jobs])
    assert sync.change_many([Change(jobs[0].id, "cancel")])[0].state == JobState.CANCELLED
    assert sync.list_jobs(ListFilter(), None, 2).jobs == rows[:1:-1]
    sync.queue_pause("default")
    assert [queue.paused for queue in sync.queue_list()] == [True]
    sync.queue_resume("default")
    assert sync.insert_many([]) == []


async def test_steps_are_counted(driver: SqliteDriver, new_job: Callable[..., NewJob]) -> None:
    executor = driver.executor()
    await executor.insert_many([new_job() for _ in range(100)])
    with driver.count_steps() as few:
        await executor.list_jobs(ListFilter(), None, 1)
    with driver.count_steps() as many:
        await executor.list_jobs(ListFilter(), None, 100)
    assert 0 < few.steps * 5 < many.steps
    before = many.steps
    await executor.list_jobs(ListFilter(), None, 100)
    assert many.steps == before
