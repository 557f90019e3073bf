"""The driver around the store: capabilities, listeners, threads and loops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from goncordia.driver import (
    After,
    Change,
    FetchRequest,
    Finish,
    JobState,
    ListFilter,
    Mark,
    NewJob,
    PruneRequest,
    QueueFetch,
    Wake,
    connect,
)
from goncordia.errors import ConfigurationError
from goncordia.gontest import MockClock
from goncordia.ids import JobIds
from goncordia.memory import MemoryDriver


class Lab:
    """A memory driver under a mock clock."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.driver = MemoryDriver(self.clock)
        self.executor = self.driver.executor()
        self.ids = JobIds(self.clock)

    def job(self, **fields: Any) -> NewJob:
        return NewJob(**{"id": self.ids(), "kind": "k", "args": b"{}", **fields})

    async def insert(self, **fields: Any) -> UUID:
        job = self.job(**fields)
        await self.executor.insert_many([job])
        return job.id


@pytest.fixture
def lab() -> Lab:
    return Lab()


def request(session: UUID, number: int, limit: int = 100) -> FetchRequest:
    return FetchRequest(session, number, limit, (QueueFetch("default", limit),), "w")


# -------------------------------------------------------------------- lifecycle


async def test_jobs_stay_when_the_driver_is_closed(lab: Lab) -> None:
    async with lab.driver:
        assert await lab.driver.migrate() == []
        await lab.driver.ready()
        job_id = await lab.insert()
    await lab.driver.aclose()
    async with lab.driver:
        assert (await lab.executor.get_many([job_id]))[0] is not None


def test_it_is_found_by_url() -> None:
    driver = connect("memory://")
    assert isinstance(driver, MemoryDriver)
    assert driver.executor() is driver.executor()
    assert isinstance(connect("MEMORY://"), MemoryDriver)
    for url in ("memory://name", "memory:///path"):
        with pytest.raises(ConfigurationError, match=r"^url: .*memory"):
            connect(url)


def test_it_claims_everything(lab: Lab) -> None:
    capabilities = lab.driver.capabilities
    off = [name for name in capabilities.__struct_fields__ if not getattr(capabilities, name)]
    assert off == ["late_find_bound"]


async def test_time_is_the_clocks(lab: Lab) -> None:
    await lab.clock.advance(99)
    assert await lab.executor.now() == lab.clock.now()
    job_id = await lab.insert()
    (row,) = await lab.executor.get_many([job_id])
    assert row is not None
    assert row.created_at == lab.clock.now()


async def test_every_operation_reaches_the_store(lab: Lab) -> None:
    executor, session = lab.executor, uuid4()
    await executor.session_open(session, "w", 30)
    assert [info.id for info in await executor.session_list()] == [session]
    job_id = await lab.insert()
    outcomes, fetched = await executor.exchange([], request(session, 1))
    assert outcomes == []
    assert fetched is not None
    (row,) = fetched.jobs
    assert row.claim is not None
    assert [held.id for held in await executor.held(session, 1, 9)] == [job_id]
    assert (await executor.mark_many([Mark(row.claim, started=True)]))[0].status == "DONE"
    assert (await executor.change_many([Change(job_id, "cancel")]))[0].status == "REQUESTED"
    assert (await executor.session_beat(session, 30)).cancels == (row.claim,)
    assert (await executor.queue_stats())[0].running == 1
    done, nothing = await executor.exchange([Finish(row.claim, "complete")], None)
    assert (done[0].status, nothing) == ("DONE", None)
    again = await executor.finish_many([Finish(row.claim, "complete")])
    assert again[0].status == "ALREADY"
    assert (await executor.list_jobs(ListFilter(), None, 9)).jobs[0].state is JobState.COMPLETED
    assert await executor.count(ListFilter(states=frozenset({JobState.COMPLETED}))) == 1
    await executor.queue_pause("default")
    (queue,) = await executor.queue_list()
    assert (queue.name, queue.paused) == ("default", True)
    await executor.queue_resume("default")
    assert not (await executor.queue_list())[0].paused
    put = await executor.record_put("r", b"1", 0, b"t")
    assert put.done
    record = await executor.record_get("r")
    assert record is not None
    assert await executor.record_list("") == [record]
    before = lab.clock.now() + timedelta(seconds=1)
    await lab.clock.advance(1)
    assert await executor.expire(session, 9) == []
    assert await executor.prune(PruneRequest(completed=before)) == 1
    await executor.session_close(session)
    assert await executor.session_list() == []


async def test_exchange_sees_what_its_finishes_freed(lab: Lab) -> None:
    session = uuid4()
    await lab.executor.session_open(session, "w", 30)
    for _ in range(2):
        await lab.insert(group="g", group_limit=1)
    for number in (1, 2):
        held = await lab.executor.held(session, None, 9)
        finishes = [Finish(row.claim, "complete") for row in held if row.claim]
        outcomes, fetched = await lab.executor.exchange(finishes, request(session, number))
        assert fetched is not None
        assert (len(outcomes), len(fetched.jobs)) == (number - 1, 1)


def test_the_synchronous_executor_works_on_the_same_store(lab: Lab) -> None:
    executor = lab.driver.sync_executor()
    job = lab.job()
    assert executor.insert_many([job])[0].status == "INSERTED"
    assert executor.count(ListFilter()) == 1
    assert [row.id for row in executor.list_jobs(ListFilter(), None, 9).jobs] == [job.id]
    executor.queue_pause("default")
    assert executor.queue_list()[0].paused
    executor.queue_resume("default")
    assert not executor.queue_list()[0].paused
    assert executor.change_many([Change(job.id, "cancel")])[0].status == "CHANGED"
    (row,) = asyncio.run(lab.executor.get_many([job.id]))
    assert row is not None
    assert row.state is JobState.CANCELLED
    assert executor.get_many([job.id]) == [row]


# -------------------------------------------------------------------- threads and loops


def test_a_heartbeater_beats_from_a_thread_but_not_under_a_given_clock(lab: Lab) -> None:
    assert lab.driver.heartbeater() is None
    driver = MemoryDriver()
    heartbeater = driver.heartbeater()
    assert heartbeater is not None
    session = uuid4()
    asyncio.run(driver.executor().session_open(session, "w", 30))
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(heartbeater.beat, session, 40.0).result().held
        assert not thread.submit(heartbeater.beat, uuid4(), 40.0).result().held
        thread.submit(heartbeater.close).result()
    assert driver.store.session_list()[0].lease == 40


def test_eight_threads_with_loops_of_their_own_share_out_the_jobs() -> None:
    driver = MemoryDriver()
    ids = JobIds(driver.clock)
    total = 2000
    claimed: list[UUID] = []

    async def work(executor_session: UUID) -> list[UUID]:
        executor = driver.executor()
        await executor.session_open(executor_session, "w", 30)
        mine: list[UUID] = []
        finishes: list[Finish] = []
        for number in range(1, total):
            _, fetched = await executor.exchange(finishes, request(executor_session, number, 7))
            assert fetched is not None
            mine += [row.id for row in fetched.jobs]
            finishes = [Finish(row.claim, "complete") for row in fetched.jobs if row.claim]
            if not finishes:
                break
        return mine

    jobs = [NewJob(id=ids(), kind="k", args=b"{}") for _ in range(total)]
    driver.sync_executor().insert_many(jobs)
    with ThreadPoolExecutor(8) as threads:
        for mine in threads.map(lambda _: asyncio.run(work(uuid4())), range(8)):
            claimed += mine
    assert sorted(claimed) == [job.id for job in jobs]
    assert driver.store.queue_stats(driver.clock.now()) == []


# -------------------------------------------------------------------- listeners


async def heard(wakes: AsyncIterator[Wake], count: int) -> list[Wake]:
    return [await anext(wakes) for _ in range(count)]


async def test_what_wakes(lab: Lab) -> None:
    listener = lab.driver.listener()
    wakes = listener.wakes()
    session = uuid4()
    await lab.executor.session_open(session, "w", 30)
    first = await lab.insert(group="g", group_limit=1)
    later = await lab.insert(run_at=After(60))
    await lab.executor.insert_many(
        [
            lab.job(queue="mail", run_at=After(9)),
            lab.job(queue="mail", run_at=After(3)),
            lab.job(queue="low", group="g", group_limit=1),
        ]
    )
    assert await heard(wakes, 4) == [
        Wake("jobs", "default", 0),
        Wake("jobs", "default", 60),
        Wake("jobs", "mail", 3),
        Wake("jobs", "low", 0),
    ]
    (row,) = (await lab.executor.fetch(request(session, 1))).jobs
    assert row.id == first
    assert row.claim is not None
    await lab.executor.change_many([Change(first, "cancel")])
    await lab.executor.change_many([Change(later, "retry")])
    await lab.executor.change_many([Change(later, "reschedule", After(30))])
    await lab.executor.finish_many([Finish(row.claim, "complete")])
    await lab.executor.queue_pause("mail")
    await lab.executor.queue_pause("mail")
    await lab.executor.queue_resume("mail")
    assert await heard(wakes, 6) == [
        Wake("cancel", job_ids=(first,)),
        Wake("jobs", "default", 0),
        Wake("jobs", "default", 30),
        Wake("jobs", "low", 0),
        Wake("queue", "mail"),
        Wake("queue", "mail"),
    ]
    await listener.aclose()


async def test_what_returns_to_waiting_wakes(lab: Lab) -> None:
    session = uuid4()
    await lab.executor.session_open(session, "w", 30)
    for _ in range(2):
        await lab.insert()
    first, second = (await lab.executor.fetch(request(session, 1))).jobs
    listener = lab.driver.listener()
    assert first.claim is not None
    await lab.executor.finish_many([Finish(first.claim, "retry", After(5))])
    await lab.executor.session_close(session)
    assert await heard(listener.wakes(), 2) == [
        Wake("jobs", "default", 5),
        Wake("jobs", "default", 0),
    ]
    assert second.claim is not None
    await listener.aclose()


async def test_nothing_to_do_wakes_nobody(lab: Lab) -> None:
    session = uuid4()
    await lab.executor.session_open(session, "w", 30)
    await lab.insert()
    (row,) = (await lab.executor.fetch(request(session, 1))).jobs
    listener = lab.driver.listener()
    assert row.claim is not None
    await lab.executor.finish_many([Finish(row.claim, "complete")])
    await lab.executor.session_beat(session, 30)
    await listener.aclose()
    assert [wake async for wake in listener.wakes()] == []


async def test_a_waiting_reader_is_woken_from_another_thread(lab: Lab) -> None:
    listener = lab.driver.listener()
    reader = asyncio.ensure_future(anext(listener.wakes()))
    await lab.clock.settle()
    assert not reader.done()
    executor = lab.driver.sync_executor()
    await asyncio.to_thread(executor.insert_many, [lab.job(queue="mail")])
    assert await reader == Wake("jobs", "mail", 0)
    await listener.aclose()


async def test_each_listener_hears_everything(lab: Lab) -> None:
    listeners = [lab.driver.listener() for _ in range(3)]
    await lab.insert()
    for listener in listeners:
        assert await anext(listener.wakes()) == Wake("jobs", "default", 0)
        await listener.aclose()


async def test_a_reader_far_behind_hears_of_a_gap(lab: Lab) -> None:
    listener = lab.driver.listener()
    for _ in range(1001):
        await lab.insert()
    await lab.insert(queue="mail")
    assert await heard(listener.wakes(), 2) == [Wake("gap"), Wake("jobs", "mail", 0)]
    await listener.aclose()


async def test_closing_the_driver_ends_its_listeners(lab: Lab) -> None:
    listener = lab.driver.listener()

    async def read() -> list[Wake]:
        return [wake async for wake in listener.wakes()]

    reader = asyncio.create_task(read())
    await lab.clock.settle()
    await lab.insert()
    await lab.driver.aclose()
    assert await reader == [Wake("jobs", "default", 0)]
    await lab.insert()
    await listener.aclose()


async def test_a_cancelled_reader_loses_nothing(lab: Lab) -> None:
    listener = lab.driver.listener()
    reader = asyncio.ensure_future(anext(listener.wakes()))
    await lab.clock.settle()
    reader.cancel()
    await lab.clock.settle()
    await lab.insert()
    assert await anext(listener.wakes()) == Wake("jobs", "default", 0)
    await listener.aclose()


async def test_a_reader_whose_loop_is_gone_harms_nobody(lab: Lab) -> None:
    listener = lab.driver.listener()

    def read_a_little() -> None:
        loop = asyncio.new_event_loop()
        reading = loop.create_task(listener.__anext__())
        loop.run_until_complete(asyncio.sleep(0, None))
        reading.cancel()
        listener_waits.set()
        loop.run_until_complete(asyncio.gather(reading, return_exceptions=True))
        loop.close()

    listener_waits = threading.Event()
    await asyncio.to_thread(read_a_little)
    await lab.insert()
    assert await anext(listener.wakes()) == Wake("jobs", "default", 0)
    await listener.aclose()
