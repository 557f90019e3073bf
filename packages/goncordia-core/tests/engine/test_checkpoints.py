"""Checkpoints: stored when they return, found by the next attempt."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest

from goncordia import Job, JobState, PayloadError, Snooze, StaleClaimError, SyncJob
from goncordia.engine.events import JobFinished
from goncordia.errors import UnsupportedError

from .stand import Gate, Stand, Work


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


@pytest.mark.parametrize("how", ["fails", "snoozes", "shut down"])
async def test_a_lost_copy_of_an_older_checkpoint_does_not_win(stand: Stand, how: str) -> None:
    """It was given up and sent again, and comes through after the one that followed."""
    gate = Gate()

    @stand.registry.worker(Work, retry_policy=lambda _: 1000)
    async def work(job: Job[Work]) -> None:
        await job.checkpoint(1)
        await job.checkpoint(2)
        await gate.pass_through()
        raise Snooze(1000) if how == "snoozes" else ValueError

    zombie = stand.wire.hold("mark_many")
    handle = await stand.enqueue()
    async with stand.working(lease=30, shutdown_timeout=0):
        await stand.advance(20)
        assert (gate.waiting, (await stand.row(handle)).checkpoint) == (1, b"2")
        zombie.let_go()
        await stand.advance(0)
        assert (await stand.row(handle)).checkpoint == b"1"
        if how != "shut down":
            gate.open()
            await stand.advance(0)
    row = await stand.row(handle)
    assert (row.claim, row.checkpoint) == (None, b"2")


async def test_a_checkpoint_is_not_sent_twice_without_need(stand: Stand) -> None:
    @stand.registry.worker(Work, retry_policy=lambda _: 1000)
    async def work(job: Job[Work]) -> None:
        await job.checkpoint("x" * 1000)
        raise ValueError

    await stand.enqueue()
    async with stand.working():
        await stand.advance(0)
        (finish,) = [each for finishes, _ in stand.wire.given("exchange") for each in finishes]
        assert (finish.to, finish.checkpoint) == ("retry", None)


async def test_checkpoints_of_many_jobs_share_requests(stand: Stand) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        for n in range(5):
            await job.checkpoint(n)

    for n in range(50):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=50):
        await stand.advance(1)
    assert len(stand.marks()) == 250
    assert stand.wire.count("mark_many") <= 15
