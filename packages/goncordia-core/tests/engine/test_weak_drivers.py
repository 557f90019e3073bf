"""Pools on drivers that can do little: the ten required methods, or a weak backend."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from goncordia import Client, FixedRetry, Job, JobState, Registry, UnsupportedError, WorkerPool
from goncordia.driver import JobRow
from goncordia.engine.events import JobGivenBack, JobRescued, SessionLost

from .stand import Gate, Other, Stand, Work
from .ten import TenDriver
from .wire import away


class Ten(Stand):
    """A stand on a driver with ten methods; each pool has a process, and a driver, of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = self.process()
        self.wire = self.first.wire
        driver: Any = self.first  # it has no transactions, and the tests use none
        self.client = Client(driver)

    def pool(self, **settings: Any) -> WorkerPool:
        settings.setdefault("driver", self.first)
        return super().pool(**settings)

    def process(self) -> TenDriver:
        return TenDriver(self.memory.store, self.clock)

    async def row(self, job: Any) -> JobRow:
        (row,) = await self.first.executor().get_many([job.id])
        assert row is not None
        return row


def counting(registry: Registry[Any], **options: Any) -> list[tuple[int, int]]:
    seen: list[tuple[int, int]] = []

    @registry.worker(Work, **options)
    async def work(job: Job[Work]) -> int:
        seen.append((job.args.n, job.attempt))
        return job.args.n

    return seen


async def test_jobs_are_worked_on_ten_methods() -> None:
    stand = Ten()
    seen = counting(stand.registry)
    handles = [await stand.enqueue(Work(n)) for n in range(30)]
    async with stand.working(concurrency=4):
        await stand.advance(3)
        rows = [await stand.row(handle) for handle in handles]
    assert {row.state for row in rows} == {JobState.COMPLETED}
    assert sorted(seen) == [(n, 1) for n in range(30)]
    assert await stand.first.executor().session_list() == []


async def test_nothing_is_claimed_beyond_the_free_slots() -> None:
    stand = Ten()
    seen = counting(stand.registry)
    for n in range(100):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=3, max_pending=50):
        await stand.advance(3)
        limits = [args[1].limit for args in stand.wire.given("exchange") if args[1]]
        kinds = {queue.kinds for args in stand.wire.given("exchange") for queue in args[1].queues}
    assert (max(limits), kinds, len(seen)) == (3, {None}, 100)


async def test_retries_snoozes_and_unknown_kinds() -> None:
    stand = Ten()
    calls: list[int] = []

    @stand.registry.worker(Work, retry_policy=FixedRetry(2))
    async def work(job: Job[Work]) -> None:
        calls.append(job.attempt)
        if job.attempt < 3:
            raise ValueError

    handle, unknown = await stand.enqueue(), await stand.enqueue(Other())
    async with stand.working():
        await stand.advance(12)
    assert calls == [1, 2, 3]
    assert (await stand.row(handle)).state is JobState.COMPLETED
    row = await stand.row(unknown)
    assert (row.attempt, row.state.finished) == (0, False)
    assert {event.reason for event in stand.seen(JobGivenBack)} == {"unknown kind"}


async def test_a_running_job_is_cancelled_with_the_beat() -> None:
    stand = Ten()
    gate, ends = Gate(), list[str]()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        try:
            await gate.pass_through()
        except asyncio.CancelledError:
            ends.append("interrupted")
            raise

    handle = await stand.enqueue()
    async with stand.working(heartbeat_interval=5):
        await stand.client.cancel(handle)
        await stand.advance(6)
        assert (ends, (await stand.row(handle)).state) == (["interrupted"], JobState.CANCELLED)


async def test_a_pause_is_kept() -> None:
    stand = Ten()
    seen = counting(stand.registry)
    await stand.client.queue_pause("default")
    await stand.enqueue(Work(1))
    async with stand.working(poll_interval=1):
        await stand.advance(10)
        assert seen == []
        await stand.client.queue_resume("default")
        await stand.advance(2)
        assert seen == [(1, 1)]


async def test_marks_are_unsupported() -> None:
    stand = Ten()
    raised: list[Exception] = []

    @stand.registry.worker(Work, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        try:
            await job.checkpoint(1)
        except UnsupportedError as error:
            raised.append(error)

    await stand.enqueue()
    async with stand.working():
        await stand.advance(1)
    assert len(raised) == 1


async def test_a_dead_pool_s_jobs_are_rescued() -> None:
    stand = Ten()
    gate = Gate()
    seen = counting(stand.registry, retry_policy=FixedRetry(1))
    dying: Registry[Any] = Registry()

    @dying.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    handle = await stand.enqueue(Work(1))
    dead = stand.process()
    pool = stand.pool(driver=dead, registry=dying)
    await pool.start()
    await stand.advance(1)
    assert gate.waiting == 1
    dead.wire.down = True  # it is cut off for good
    async with stand.working():
        await stand.advance(25)
        assert seen == []
        await stand.advance(60)
        assert seen == [(1, 2)]
        assert [event.to for event in stand.seen(JobRescued)] == ["retry"]
        # What was cut off comes back, is told, and completes nothing.
        dead.wire.heal()
        await stand.advance(6)
        assert len(stand.seen(SessionLost)) == 1
        row = await stand.row(handle)
        assert (row.state, row.attempt, row.output) == (JobState.COMPLETED, 2, b"1")
    await stand.stop(pool)


async def test_an_outage_of_all_ends_nobody() -> None:
    stand = Ten()
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    for n in range(6):
        await stand.enqueue(Work(n))
    processes = [stand.process() for _ in range(3)]
    pools: list[WorkerPool] = []
    for process in processes:
        pools.append(stand.pool(driver=process, concurrency=2))
        await pools[-1].start()
    await stand.advance(40)
    assert gate.waiting == 6
    for process in processes:
        process.wire.down = True
    await stand.advance(200)
    for process in processes:
        process.wire.heal()
        await stand.advance(3)  # one after the other
    await stand.advance(100)
    assert (gate.waiting, gate.came) == (6, 6)
    assert stand.seen(SessionLost) == []
    gate.open()
    for pool in pools:
        await stand.stop(pool)
    assert stand.seen(JobRescued) == []


async def test_a_beat_whose_answer_was_lost_does_not_lose_the_session() -> None:
    stand = Ten()
    counting(stand.registry)
    async with stand.working() as pool:
        session = stand.session(pool)
        for _ in range(5):
            stand.wire.fail("session_beat", away(), after=True)
            await stand.advance(7)
        assert (stand.session(pool), stand.seen(SessionLost)) == (session, [])


@pytest.mark.parametrize("seed", range(12))
async def test_a_weak_backend_loses_nothing(seed: int) -> None:
    """Short results, busy answers, freed groups that go unseen: slower, and all the same right."""
    stand = Stand(weak=seed)
    seen: list[int] = []

    @stand.registry.worker(Work, retry_policy=FixedRetry(0.1))
    async def work(job: Job[Work]) -> None:
        await stand.clock.sleep(0.01)
        if job.args.n % 7 == 0 and job.attempt == 1:
            raise ValueError
        seen.append(job.args.n)

    for n in range(60):
        options: dict[str, Any] = {"pipeline_id": f"p{n % 5}"} if n % 3 == 0 else {}
        await stand.finish(stand.enqueue(Work(n), **options))  # the backend may be busy
    async with stand.working(concurrency=5), stand.working(concurrency=5):
        for _ in range(400):
            await stand.advance(0.25)
            if len(seen) == 60:
                break
    assert sorted(seen) == list(range(60))
