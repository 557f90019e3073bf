"""Plain functions in threads: what can be done with them and what cannot."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import pytest

from goncordia import Cancel, Job, JobState, Registry, Snooze, SyncJob, current_job
from goncordia.engine.deadlines import TICK
from goncordia.engine.events import JobFinished, JobOverdue
from goncordia.engine.threads import Threads

from .stand import Stand, Work

noted: ContextVar[str] = ContextVar("noted", default="nothing")


async def test_a_plain_function_runs_in_a_thread_and_completes(stand: Stand) -> None:
    seen: list[tuple[Any, ...]] = []

    @stand.registry.worker(Work)
    def work(job: SyncJob[Work]) -> int:
        seen.append((threading.current_thread(), current_job() is job, job.args, job.attempt))
        return job.args.n * 2

    handle = await stand.enqueue(Work(21))
    async with stand.working():
        await stand.until(lambda: stand.seen(JobFinished))
    ((thread, is_current, args, attempt),) = seen
    assert thread is not threading.main_thread()
    assert thread.daemon  # a handler that hangs does not keep the process alive
    assert (is_current, args, attempt) == (True, Work(21), 1)
    assert (await stand.row(handle)).output == b"42"


async def test_threads_run_beside_each_other_up_to_the_concurrency(stand: Stand) -> None:
    together = threading.Barrier(3)

    @stand.registry.worker(Work)
    def work(job: SyncJob[Work]) -> str:
        together.wait(10)  # passes only when three are here at once
        return threading.current_thread().name

    handles = [await stand.enqueue(Work(n)) for n in range(9)]
    async with stand.working(concurrency=3):
        await stand.until(lambda: len(stand.seen(JobFinished)) == 9)
    names = {(await stand.row(handle)).output for handle in handles}
    assert len(names) == 3


async def test_the_context_goes_along_and_does_not_come_back(stand: Stand) -> None:
    found: list[str] = []

    async def outer(job: Job[Any, Any], call_next: Any) -> object:
        noted.set(f"for {job.args.n}")
        result: object = await call_next(job)
        found.append(noted.get())
        return result

    @stand.registry.worker(Work, middleware=[outer])
    def work(job: SyncJob[Work]) -> None:
        found.append(noted.get())
        noted.set("the thread's")

    for n in range(4):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=1):
        await stand.until(lambda: len(stand.seen(JobFinished)) == 4)
    assert found == [f"for {n}" for n in range(4) for _ in range(2)]


async def test_a_thread_reaches_the_app_and_a_blocking_client(stand: Stand) -> None:
    found: list[object] = []

    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[str]:
        yield "the app"

    stand.registry = Registry(lifespan=lifespan)

    @stand.registry.worker(Work)
    def work(job: SyncJob[Work, str]) -> str:
        found.append(job.app)
        enqueued = job.client.enqueue(Work(job.args.n + 1), queue="next")
        found.append(job.client is job.client)
        return str(enqueued.id)

    await stand.enqueue(Work(1))
    async with stand.working():
        await stand.until(lambda: stand.seen(JobFinished))
    assert found == ["the app", True]
    assert sorted(job.queue for job in (await stand.client.list()).jobs) == ["default", "next"]


async def test_a_thread_s_error_is_a_failure(stand: Stand) -> None:
    @stand.registry.worker(Work, max_attempts=1)
    def work(job: SyncJob[Work]) -> None:
        raise ValueError("from a thread")

    handle = await stand.enqueue()
    async with stand.working():
        await stand.until(lambda: stand.seen(JobFinished))
    row = await stand.row(handle)
    (error,) = row.errors
    assert (row.state, error.message) == (JobState.DISCARDED, "from a thread")
    assert "in work" in error.traceback


@pytest.mark.parametrize("error", [StopIteration("x"), SystemExit(3), GeneratorExit()])
async def test_what_would_end_a_loop_is_a_failure_too(stand: Stand, error: BaseException) -> None:
    """A thread may raise what asyncio takes for its own; the process goes on."""

    @stand.registry.worker(Work, max_attempts=1)
    def work(job: SyncJob[Work]) -> None:
        if isinstance(error, SystemExit):
            sys.exit(3)
        raise error

    handle = await stand.enqueue()
    async with stand.working():
        await stand.until(lambda: stand.seen(JobFinished))
        assert stand.engine(stand.pools[0]).dispatcher.stopping is False
    row = await stand.row(handle)
    assert row.state is JobState.DISCARDED
    assert type(error).__name__ in row.errors[0].message


class Thread:
    """A handler in a thread that is held there."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.may_end = threading.Event()

    def hold(self) -> None:
        self.inside.set()
        assert self.may_end.wait(10)


async def test_a_time_out_cannot_end_a_thread_it_keeps_its_slot_and_is_reported(
    stand: Stand,
) -> None:
    thread = Thread()
    cancelled: list[bool] = []

    @stand.registry.worker(Work, timeout=5, max_attempts=1)
    def work(job: SyncJob[Work]) -> str:
        cancelled.append(job.cancelled)
        thread.hold()
        cancelled.append(job.cancelled)
        return "done all the same"

    first = await stand.enqueue(Work(1))
    second = await stand.enqueue(Work(2))
    async with stand.working(concurrency=1) as pool:
        await stand.until(thread.inside.is_set)
        await stand.advance(5 + TICK)
        assert stand.seen(JobOverdue) == []
        await stand.advance(2)
        (overdue,) = stand.seen(JobOverdue)
        assert (overdue.row.id, overdue.cause) == (first.id, "timeout")
        await stand.advance(100)  # longer than the lease, which is renewed
        assert (pool.running, await stand.state(second)) == (1, "available")
        assert len(stand.seen(JobOverdue)) == 1
        thread.may_end.set()
        await stand.until(lambda: len(stand.seen(JobFinished)) == 2)
    assert cancelled[:2] == [False, True]
    row = await stand.row(first)
    assert (row.state, row.output, row.errors) == (JobState.COMPLETED, b'"done all the same"', ())


async def test_a_thread_that_fails_after_its_time_out_has_timed_out(stand: Stand) -> None:
    thread = Thread()

    @stand.registry.worker(Work, timeout=5, max_attempts=1)
    def work(job: SyncJob[Work]) -> None:
        thread.hold()
        raise OSError("the consequence")

    handle = await stand.enqueue()
    async with stand.working():
        await stand.until(thread.inside.is_set)
        await stand.advance(6)
        thread.may_end.set()
        await stand.until(lambda: stand.seen(JobFinished))
    (error,) = (await stand.row(handle)).errors
    assert error.type == "goncordia.errors.JobTimeoutError"
    assert "OSError: the consequence" in error.traceback


@pytest.mark.parametrize(("raises", "state"), [(Snooze(60), "scheduled"), (Cancel(), "cancelled")])
async def test_a_thread_that_sees_its_end_may_say_what_becomes_of_the_job(
    stand: Stand, raises: Exception, state: str
) -> None:
    thread = Thread()

    @stand.registry.worker(Work, timeout=5, max_attempts=1)
    def work(job: SyncJob[Work]) -> None:
        thread.hold()
        if job.cancelled:
            raise raises

    handle = await stand.enqueue()
    async with stand.working():
        await stand.until(thread.inside.is_set)
        await stand.advance(6)
        thread.may_end.set()
        await stand.until(lambda: stand.seen(JobFinished))
    row = await stand.row(handle)
    assert (row.state.value, row.errors) == (state, ())


async def test_a_cancelled_thread_sees_it_and_ends_cancelled(stand: Stand) -> None:
    thread = Thread()

    @stand.registry.worker(Work)
    def work(job: SyncJob[Work]) -> None:
        thread.hold()
        if job.cancelled:
            raise RuntimeError("I was told to stop")

    handle = await stand.enqueue()
    async with stand.working():
        await stand.until(thread.inside.is_set)
        await stand.client.cancel(handle)
        await stand.advance(0)
        thread.may_end.set()
        await stand.until(lambda: stand.seen(JobFinished))
    row = await stand.row(handle)
    assert (row.state, row.errors) == (JobState.CANCELLED, ())


async def test_an_async_handler_beside_a_thread_goes_on(stand: Stand) -> None:
    thread = Thread()

    @stand.registry.worker(Work)
    def work(job: SyncJob[Work]) -> None:
        thread.hold()

    turns: list[int] = []

    @stand.registry.task(kind="beside")
    async def beside() -> None:
        for n in range(3):
            await asyncio.sleep(0)
            turns.append(n)

    await stand.enqueue()
    async with stand.working():
        await stand.until(thread.inside.is_set)
        await stand.client.enqueue(beside.args())
        await stand.advance(0)
        assert turns == [0, 1, 2]
        thread.may_end.set()
        await stand.until(lambda: len(stand.seen(JobFinished)) == 2)


async def test_threads_end_when_they_are_closed() -> None:
    threads = Threads("t")
    assert await asyncio.gather(*[threads.call(lambda: 1) for _ in range(3)]) == [1, 1, 1]
    made = [thread for thread in threading.enumerate() if thread.name.startswith("t-")]
    assert len(made) == 3
    # Idle threads are used again.
    assert await threads.call(threading.current_thread) in made
    threads.close()
    for thread in made:
        thread.join(10)
        assert not thread.is_alive()
