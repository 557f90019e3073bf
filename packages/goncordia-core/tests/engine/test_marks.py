"""Marks on claims: started, before a last attempt, and checkpoints."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest

from goncordia import DriverError, Job, JobState, PayloadError, StaleClaimError, SyncJob
from goncordia.driver import Mark
from goncordia.engine.events import JobFinished, JobStarted
from goncordia.errors import UnsupportedError

from .stand import Gate, Stand, Work
from .wire import away


def gated(stand: Stand, **options: Any) -> Gate:
    gate = Gate()

    @stand.registry.worker(Work, **options)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    return gate


def marks(stand: Stand) -> list[Mark]:
    return [mark for (batch,) in stand.wire.given("mark_many") for mark in batch]


# ---------------------------------------------------------------- started


@pytest.mark.parametrize(("max_attempts", "marked"), [(1, True), (2, False)])
async def test_a_last_attempt_is_marked_before_it_starts(
    stand: Stand, max_attempts: int, marked: bool
) -> None:
    gate = gated(stand)
    slow = stand.wire.hold("mark_many")
    handle = await stand.enqueue(max_attempts=max_attempts)
    async with stand.working():
        assert slow.reached == marked
        assert gate.came == (not marked)
        slow.let_go()
        await stand.advance(0)
        assert gate.came == 1
        assert (await stand.row(handle)).started is marked
        gate.open()
        await stand.advance(0)
    assert await stand.state(handle) == "completed"


async def test_the_last_of_several_attempts_is_marked(stand: Stand) -> None:
    started: list[bool] = []

    @stand.registry.worker(Work, max_attempts=3, retry_policy=lambda _: 1)
    async def work(job: Job[Work]) -> None:
        started.append((await stand.row(job.id)).started)
        raise ValueError

    await stand.enqueue()
    async with stand.working():
        await stand.advance(10)
    assert started == [False, False, True]


async def test_a_stale_mark_means_that_the_job_is_not_run(stand: Stand) -> None:
    gate = gated(stand, max_attempts=1)
    slow = stand.wire.hold("mark_many")
    handle = await stand.enqueue()
    async with stand.working() as pool:
        hand = stand.hand()
        row = await stand.row(handle)
        assert (await hand.finish(row.claim, "release")).status == "DONE"
        (taken,) = await hand.claim()
        slow.let_go()
        await stand.advance(1)
        assert (gate.came, pool.running, len(stand.engine(pool).claims)) == (0, 0, 0)
        assert (await stand.row(handle)).claim == taken.claim
        assert stand.seen(JobStarted) == []
        assert stand.seen(JobFinished) == []


@pytest.mark.parametrize("after", [False, True])
async def test_a_mark_is_repeated_until_it_is_answered(stand: Stand, after: bool) -> None:
    gate = gated(stand, max_attempts=1)
    stand.wire.fail("mark_many", away(), after=after, times=4)
    await stand.enqueue()
    async with stand.working():
        await stand.advance(10)
        assert (gate.came, len(marks(stand))) == (1, 5)
        gate.open()


async def test_a_mark_that_is_answered_after_the_lease_starts_nothing(stand: Stand) -> None:
    gate = gated(stand, max_attempts=1)
    async with stand.working(lease=30, poll_interval=0.5):
        stand.wire.fail("session_beat", times=10_000)
        await stand.advance(24)
        slow = stand.wire.hold("mark_many", after=True)
        handle = await stand.enqueue()
        await stand.advance(1)
        assert slow.reached == 1
        await stand.advance(6)  # the lease is over
        slow.let_go()
        await stand.advance(1)
        assert ((await stand.row(handle)).started, gate.came) == (True, 0)
        stand.wire.heal()
        await stand.advance(1)
        assert gate.came == 1
        gate.open()


async def test_marks_that_come_together_go_together(stand: Stand) -> None:
    gate = gated(stand, max_attempts=1)
    for n in range(100):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=100):
        await stand.advance(1)
        assert gate.waiting == 100
        assert len(marks(stand)) == 100
        assert stand.wire.count("mark_many") <= 3
        gate.open()


async def test_marks_keep_to_the_driver_s_batches() -> None:
    stand = Stand(max_batch=7)
    gate = gated(stand, max_attempts=1)
    for n in range(30):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=100):
        await stand.advance(5)
        assert gate.waiting == 30
        assert max(len(batch) for (batch,) in stand.wire.given("mark_many")) <= 7
        gate.open()
        await stand.advance(5)
    exchanged = stand.wire.given("exchange")
    assert max(len(finishes) for finishes, _ in exchanged) <= 7
    assert max(request.limit for _, request in exchanged if request) <= 7


async def test_without_marks_nothing_is_marked() -> None:
    stand = Stand(marks=False)
    gate = gated(stand, max_attempts=1)
    gate.open()
    handle = await stand.enqueue()
    async with stand.working():
        await stand.advance(1)
    assert stand.wire.count("mark_many") == 0
    assert await stand.state(handle) == "completed"


async def test_a_refused_mark_fails_only_its_own_attempt(stand: Stand) -> None:
    gate = gated(stand, max_attempts=1)
    gate.open()
    bad, good = await stand.enqueue(Work(1)), await stand.enqueue(Work(2))
    stand.wire.fail(
        "mark_many",
        DriverError("no", outcome="not_applied"),
        times=100,
        only=lambda args: bad.id in {mark.claim.job_id for mark in args[0]},
    )
    async with stand.working():
        await stand.advance(5)
    assert (await stand.state(bad), await stand.state(good)) == ("discarded", "completed")


# ---------------------------------------------------------------- checkpoints


async def test_a_checkpoint_is_stored_when_it_returns_and_found_by_the_next_attempt(
    stand: Stand,
) -> None:
    found: list[Any] = []

    @stand.registry.worker(Work, retry_policy=lambda _: 1)
    async def work(job: Job[Work]) -> None:
        found.append(job.last_checkpoint)
        if job.attempt <= 2:
            await job.checkpoint({"at": job.attempt})
            found.append((job.last_checkpoint, (await stand.row(job.id)).checkpoint))
            raise ValueError

    handle = await stand.enqueue()
    async with stand.working():
        await stand.advance(10)
    assert found == [
        None,
        ({"at": 1}, b'{"at":1}'),
        {"at": 1},
        ({"at": 2}, b'{"at":2}'),
        {"at": 2},
    ]
    assert (await stand.row(handle)).checkpoint == b'{"at":2}'


class Progress(msgspec.Struct):
    page: int


async def test_a_checkpoint_comes_back_as_its_type(stand: Stand) -> None:
    found: list[Progress | None] = []

    @stand.registry.worker(Work, retry_policy=lambda _: 1)
    async def work(job: Job[Work]) -> None:
        found.append(job.load_checkpoint(Progress))
        if job.attempt == 1:
            await job.checkpoint(Progress(7))
            raise ValueError

    await stand.enqueue()
    async with stand.working():
        await stand.advance(10)
    assert found == [None, Progress(7)]


async def test_a_checkpoint_survives_the_pool(stand: Stand) -> None:
    gate, found = Gate(), list[Any]()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        found.append(job.last_checkpoint)
        if not found[-1]:
            await job.checkpoint("half way")
            await gate.pass_through()

    await stand.enqueue()
    async with stand.working(shutdown_timeout=0):
        assert gate.waiting == 1
    async with stand.working():
        await stand.advance(1)
    assert found == [None, "half way"]


async def test_plain_functions_store_checkpoints_too(stand: Stand) -> None:
    found: list[Any] = []

    @stand.registry.worker(Work, retry_policy=lambda _: 0)
    def work(job: SyncJob[Work]) -> None:
        assert threading.current_thread() is not threading.main_thread()
        found.append(job.last_checkpoint)
        if job.attempt == 1:
            job.checkpoint([1, 2])
            found.append(job.last_checkpoint)
            raise ValueError

    await stand.enqueue()
    async with stand.working():
        await stand.until(lambda: len(stand.seen(JobFinished)) == 2)
    assert found == [None, [1, 2], [1, 2]]


@pytest.mark.parametrize("value", ["x" * 65535, object()])
async def test_a_checkpoint_that_cannot_be_stored_raises_and_leaves_the_last(
    stand: Stand, value: object
) -> None:
    raised: list[Exception] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await job.checkpoint("good")
        try:
            await job.checkpoint(value)
        except PayloadError as error:
            raised.append(error)
        assert job.last_checkpoint == "good"

    handle = await stand.enqueue()
    async with stand.working():
        pass
    (error,) = raised
    assert "checkpoint" in str(error)
    row = await stand.row(handle)
    assert (row.state, row.checkpoint) == (JobState.COMPLETED, b'"good"')


@pytest.mark.parametrize("taken", [False, True])
async def test_a_run_that_lost_its_job_cannot_store_one(stand: Stand, taken: bool) -> None:
    gate, raised = Gate(), list[Exception]()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()
        try:
            await job.checkpoint("late")
        except StaleClaimError as error:
            raised.append(error)
            raise

    handle = await stand.enqueue()
    async with stand.working():
        hand = stand.hand()
        await hand.finish((await stand.row(handle)).claim, "discard")
        if taken:
            await stand.client.delete(handle)
        gate.open()
        await stand.advance(1)
        (error,) = raised
        assert str(handle.id) in str(error)
        if not taken:
            assert (await stand.row(handle)).checkpoint is None


async def test_without_marks_a_checkpoint_is_unsupported() -> None:
    stand, raised = Stand(marks=False), list[UnsupportedError]()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        try:
            await job.checkpoint(1)
        except UnsupportedError as error:
            raised.append(error)

    await stand.enqueue()
    async with stand.working():
        pass
    (error,) = raised
    assert (error.driver, error.capability) == ("wire", "marks")


async def test_checkpoints_of_many_jobs_share_requests(stand: Stand) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        for n in range(5):
            await job.checkpoint(n)

    for n in range(50):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=50):
        await stand.advance(1)
    assert len(marks(stand)) == 250
    assert stand.wire.count("mark_many") <= 15
