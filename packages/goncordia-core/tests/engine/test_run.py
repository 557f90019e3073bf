"""The way of a job from its row to its handler and back."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import msgspec
import pytest

from goncordia import Job, JobState, current_job
from goncordia.engine.events import JobFinished, JobStarted

from .stand import Gate, Other, Stand, Work

noted: ContextVar[str] = ContextVar("noted", default="nothing")


async def test_a_job_is_run_once_and_completed(stand: Stand) -> None:
    seen: list[Job[Work]] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        seen.append(job)

    handle = await stand.enqueue(Work(7), tags=["a"], meta={"trace": "x"}, priority=3)
    async with stand.working(worker_id="me") as pool:
        assert pool.running == 0
    (job,) = seen
    assert (job.id, job.kind, job.args, job.queue) == (handle.id, "work", Work(7), "default")
    assert (job.attempt, job.priority, job.tags, job.meta) == (1, 3, ("a",), {"trace": "x"})
    assert (job.worker_id, job.max_attempts, job.cancelled) == ("me", 25, False)
    row = await stand.row(handle)
    assert (row.state, row.attempt, row.claim) == (JobState.COMPLETED, 1, None)
    assert (row.worker_id, row.errors, row.output) == ("me", (), None)
    assert row.finished_at == stand.clock.now()
    (started,), (finished,) = stand.seen(JobStarted), stand.seen(JobFinished)
    assert started.row.id == finished.row.id == handle.id
    assert (finished.to, finished.seconds, finished.error) == ("complete", 0.0, None)


async def test_every_job_is_run_exactly_once(stand: Stand) -> None:
    seen: list[int] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await asyncio.sleep(0)
        seen.append(job.args.n)

    handles = [await stand.enqueue(Work(n)) for n in range(200)]
    async with stand.working(concurrency=7):
        await stand.advance(1)
    assert sorted(seen) == list(range(200))
    assert {await stand.state(handle) for handle in handles} == {"completed"}


async def test_jobs_start_in_order(stand: Stand) -> None:
    seen: list[int] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        seen.append(job.args.n)

    for n, priority in enumerate([0, 5, 0, 5]):
        await stand.enqueue(Work(n), priority=priority)
    async with stand.working(concurrency=1):
        await stand.advance(1)
    assert seen == [1, 3, 0, 2]


@pytest.mark.parametrize(
    ("result", "stored"),
    [
        (None, None),
        (0, b"0"),
        ({"a": [1, None]}, b'{"a":[1,null]}'),
        (Other(3), b'{"n":3}'),
        ("x" * 65534, b'"' + b"x" * 65534 + b'"'),
    ],
)
async def test_what_a_handler_returns_is_stored(
    stand: Stand, result: object, stored: bytes | None
) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> object:
        return result

    handle = await stand.enqueue()
    async with stand.working():
        pass
    row = await stand.row(handle)
    assert (row.state, row.output) == (JobState.COMPLETED, stored)


@pytest.mark.parametrize("result", ["x" * 65535, object(), float("nan")])
async def test_what_cannot_be_stored_fails_the_attempt(stand: Stand, result: object) -> None:
    @stand.registry.worker(Work, max_attempts=1)
    async def work(job: Job[Work]) -> object:
        return result

    handle = await stand.enqueue()
    async with stand.working():
        pass
    row = await stand.row(handle)
    assert (row.state, row.output) == (JobState.DISCARDED, None)
    (error,) = row.errors
    assert error.type == "goncordia.errors.PayloadError"
    assert "output" in error.message


async def test_concurrency_bounds_what_runs(stand: Stand) -> None:
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    for n in range(20):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=3) as pool:
        await stand.advance(5)
        assert (gate.waiting, pool.running) == (3, 3)
        gate.open()
        await stand.advance(5)
    assert (gate.most, gate.came) == (3, 20)


async def test_context_does_not_leak_from_job_to_job(stand: Stand) -> None:
    found: list[str] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        found.append(noted.get())
        noted.set(f"job {job.args.n}")

    for n in range(20):
        await stand.enqueue(Work(n))
    noted.set("the pool's")
    async with stand.working(concurrency=2):
        await stand.advance(1)
    # Each job begins with what was there when the pool was started.
    assert found == ["the pool's"] * 20
    assert noted.get() == "the pool's"


async def test_current_job_is_the_one_that_runs_here(stand: Stand) -> None:
    found: list[tuple[int, Any]] = []
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()  # so that several run at once

        async def inner() -> None:
            found.append((job.args.n, current_job() is job))

        await asyncio.gather(inner(), asyncio.create_task(inner()))

    for n in range(3):
        await stand.enqueue(Work(n))
    async with stand.working():
        assert gate.waiting == 3
        gate.open()
    assert sorted(found) == [(n, True) for n in range(3) for _ in range(2)]
    assert current_job() is None


async def test_a_job_reaches_the_client_and_enqueues(stand: Stand) -> None:
    seen: list[int] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> str:
        return str((await job.client.enqueue(Other(job.args.n + 1))).id)

    @stand.registry.worker(Other)
    async def other(job: Job[Other]) -> None:
        seen.append(job.args.n)

    handle = await stand.enqueue(Work(1))
    async with stand.working():
        await stand.advance(1)
    assert seen == [2]
    output = (await stand.row(handle)).output
    assert output is not None
    assert isinstance(msgspec.json.decode(output), str)


async def test_observers_are_told_how_long_the_handler_ran(stand: Stand) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await stand.clock.sleep(job.args.n)

    await stand.enqueue(Work(7), delay=50)
    await stand.enqueue(Work(3), delay=52)
    async with stand.working():
        await stand.advance(70)
    finished = stand.seen(JobFinished)
    assert [round(event.seconds, 3) for event in finished] == [3, 7]


async def test_jobs_due_later_wait(stand: Stand) -> None:
    seen: list[float] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        seen.append(stand.clock.monotonic())

    await stand.enqueue(delay=90)
    async with stand.working():
        await stand.advance(89.9)
        assert seen == []
        await stand.advance(0.2)
        assert len(seen) == 1


async def test_a_task_function_is_its_own_job(stand: Stand) -> None:
    @stand.registry.task(kind="add")
    async def add(left: int, right: int = 10) -> int:
        return left + right

    handle = await stand.client.enqueue(add.args(1, right=2))
    async with stand.working():
        pass
    assert await stand.client.wait(handle, timeout=0) == 3
