"""Middleware, observers and error handlers: in order, and harmless when they fail."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from goncordia import CallNext, FixedRetry, Job, JobState, Registry, Snooze, SyncJob
from goncordia.engine.events import Event, JobFinished, JobStarted, SessionOpened

from .stand import Other, Stand, Work


def noting(log: list[str], name: str) -> Any:
    async def middleware(job: Job[Any, Any], call_next: CallNext) -> object:
        log.append(f"{name} in")
        try:
            return await call_next(job)
        finally:
            log.append(f"{name} out")

    return middleware


async def test_the_pool_s_is_outermost_then_the_registry_s_then_the_worker_s() -> None:
    log: list[str] = []
    stand = Stand()
    inner: Registry[Any] = Registry(middleware=[noting(log, "included")])
    stand.registry = Registry(middleware=[noting(log, "registry")])
    stand.registry.include(inner)

    @inner.worker(Work, middleware=[noting(log, "worker 1"), noting(log, "worker 2")])
    async def work(job: Job[Work]) -> None:
        log.append("work")

    await stand.enqueue()
    async with stand.working(middleware=[noting(log, "pool 1"), noting(log, "pool 2")]):
        pass
    names = ["pool 1", "pool 2", "registry", "included", "worker 1", "worker 2"]
    assert log == [
        *[f"{name} in" for name in names],
        "work",
        *[f"{name} out" for name in reversed(names)],
    ]


async def test_it_surrounds_threads_as_well(stand: Stand) -> None:
    log: list[str] = []

    @stand.registry.worker(Work)
    def work(job: SyncJob[Work]) -> str:
        log.append("work")
        return "result"

    handle = await stand.enqueue()
    async with stand.working(middleware=[noting(log, "pool")]):
        await stand.until(lambda: stand.seen(JobFinished))
    assert log == ["pool in", "work", "pool out"]
    assert (await stand.row(handle)).output == b'"result"'


async def test_it_may_change_the_result_and_end_the_job_itself(stand: Stand) -> None:
    async def twice(job: Job[Any, Any], call_next: CallNext) -> object:
        if job.args.n == 1:
            return "not even called"
        return [await call_next(job), await call_next(job)]

    calls: list[int] = []

    @stand.registry.worker(Work, middleware=[twice])
    async def work(job: Job[Work]) -> int:
        calls.append(job.args.n)
        return len(calls)

    first, second = await stand.enqueue(Work(1)), await stand.enqueue(Work(2))
    async with stand.working():
        pass
    assert (await stand.row(first)).output == b'"not even called"'
    assert (await stand.row(second)).output == b"[1,2]"
    assert calls == [2, 2]


async def test_its_exceptions_count_as_the_worker_s(stand: Stand) -> None:
    async def closed(job: Job[Any, Any], call_next: CallNext) -> object:
        if job.kind == "work":
            raise Snooze(60)
        raise LookupError("closed")

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None: ...

    @stand.registry.worker(Other, max_attempts=1)
    async def other(job: Job[Other]) -> None: ...

    snoozed, failed = await stand.enqueue(), await stand.enqueue(Other())
    async with stand.working(middleware=[closed]):
        pass
    assert (await stand.row(snoozed)).state is JobState.SCHEDULED
    row = await stand.row(failed)
    assert (row.state, row.errors[0].message) == (JobState.DISCARDED, "closed")


async def test_it_is_inside_the_time_out_and_is_interrupted(stand: Stand) -> None:
    log: list[str] = []

    async def slow(job: Job[Any, Any], call_next: CallNext) -> object:
        try:
            await stand.clock.sleep(100)
        except asyncio.CancelledError:
            log.append("interrupted")
            raise
        return await call_next(job)

    @stand.registry.worker(Work, timeout=5, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        log.append("work")

    handle = await stand.enqueue()
    async with stand.working(middleware=[slow]):
        await stand.advance(10)
    assert (log, await stand.state(handle)) == (["interrupted"], "discarded")


# ---------------------------------------------------------------- observers


async def test_observers_are_all_told_in_order(stand: Stand) -> None:
    first: list[Event] = []
    second: list[Event] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None: ...

    await stand.enqueue()
    async with stand.working(observer=[first.append, second.append]):
        pass
    assert [type(event) for event in first] == [SessionOpened, JobStarted, JobFinished]
    assert first == second == stand.events


async def test_an_observer_that_fails_harms_nobody(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Event] = []

    def broken(event: Event) -> None:
        raise RuntimeError("no metrics today")

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None: ...

    handle = await stand.enqueue()
    async with stand.working(observer=[broken, told.append]):
        pass
    assert await stand.state(handle) == "completed"
    assert len(told) == 3
    assert "an observer failed at JobStarted" in caplog.text
    assert "no metrics today" in caplog.text


# ---------------------------------------------------------------- error handlers


async def test_the_error_handler_is_told_of_each_failed_attempt(stand: Stand) -> None:
    told: list[tuple[int, str]] = []

    @stand.registry.worker(Work, max_attempts=3, retry_policy=FixedRetry(1))
    async def work(job: Job[Work]) -> None:
        raise ValueError(f"no {job.attempt}")

    @stand.registry.worker(Other)
    async def other(job: Job[Other]) -> None:
        if job.args.n:
            raise Snooze(100)

    await stand.enqueue()
    await stand.enqueue(Other(0))
    await stand.enqueue(Other(1))
    async with stand.working(
        error_handler=lambda job, error: told.append((job.attempt, str(error)))
    ):
        await stand.advance(10)
    assert told == [(1, "no 1"), (2, "no 2"), (3, "no 3")]


async def test_an_error_handler_that_fails_harms_nobody(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(job: Job[Any, Any], error: BaseException) -> None:
        raise RuntimeError("cannot tell")

    @stand.registry.worker(Work, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        raise ValueError("the real one")

    handle = await stand.enqueue()
    with caplog.at_level(logging.ERROR):
        async with stand.working(error_handler=broken):
            pass
    row = await stand.row(handle)
    assert (row.state, row.errors[0].message) == (JobState.DISCARDED, "the real one")
    assert "the error handler failed" in caplog.text
