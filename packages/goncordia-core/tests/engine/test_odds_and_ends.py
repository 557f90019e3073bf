"""What users' code, drivers and event loops do that one does not expect."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from goncordia import Discard, Job, JobState, RetryAfter, Snooze, SyncJob
from goncordia.driver import JobRow
from goncordia.engine.events import JobFinished

from .stand import Gate, Stand, Work
from .wire import away


class OwnSnooze(Snooze):
    """It does not call the base's ``__init__``."""

    def __init__(self) -> None: ...


class OwnRetry(RetryAfter):
    def __init__(self) -> None:
        vars(self)["delay"] = "soon"


class Named(Discard):
    """A proper subclass is what its base is."""


@pytest.mark.parametrize(
    ("error", "state"),
    [(OwnSnooze(), "retryable"), (OwnRetry(), "retryable"), (Named("gone"), "discarded")],
)
async def test_directives_of_the_user_s_own_making(
    stand: Stand, error: Exception, state: str
) -> None:
    @stand.registry.worker(Work, retry_policy=lambda _: 100)
    async def work(job: Job[Work]) -> None:
        raise error

    handle = await stand.enqueue()
    async with stand.working() as pool:
        await stand.advance(5)
        assert (pool.running, len(stand.engine(pool).claims)) == (0, 0)
    row = await stand.row(handle)
    assert (row.state.value, row.attempt, len(row.errors)) == (state, 1, 1)


async def test_what_swallowed_its_time_out_is_told_once_more_at_the_shutdown(stand: Stand) -> None:
    told: list[float] = []

    @stand.registry.worker(Work, timeout=5, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        try:
            await stand.clock.sleep(10_000)
        except asyncio.CancelledError:
            told.append(stand.clock.monotonic())
        try:
            await stand.clock.sleep(10_000)  # it takes its time to clean up
        except asyncio.CancelledError:
            told.append(stand.clock.monotonic())
            raise

    handle = await stand.enqueue()
    async with stand.working(shutdown_timeout=20):
        await stand.advance(30)
        assert len(told) == 1
    assert [round(each) for each in told] == [5, 50]
    assert await stand.state(handle) == "discarded"  # for its time-out


async def test_a_pipeline_of_complete_tx_does_not_wait_for_polls() -> None:
    """The transaction freed the group; nobody but the confirmation tells the pool."""
    stand = Stand(wakes=False)

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        async with stand.memory.transaction() as tx:
            await job.complete_tx(tx)

    handles = [await stand.enqueue(Work(n), pipeline_id="p") for n in range(20)]
    async with stand.working(poll_interval=1000):
        for _ in range(20):
            await stand.advance(0)
        assert [await stand.state(handle) for handle in handles] == ["completed"] * 20


async def test_a_result_sent_again_frees_its_group_at_once() -> None:
    stand = Stand(wakes=False)
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    for n in range(2):
        await stand.enqueue(Work(n), pipeline_id="p")
    async with stand.working(poll_interval=1000):
        stand.wire.fail("exchange", away(), only=lambda args: bool(args[0]))
        gate.open()
        await stand.advance(5)
        assert gate.came == 2


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize("how", ["returns", "fails", "times out", "is cancelled"])
@pytest.mark.usefixtures("no_collector")
async def test_a_job_that_is_over_is_not_left_to_the_collector(
    stand: Stand, thread: bool, how: str
) -> None:
    alive: list[weakref.ref[Any]] = []
    go_on = threading.Event()

    def common(job: Any) -> None:
        alive.append(weakref.ref(job.args))
        if how == "fails":
            raise ValueError("no")

    if thread:

        @stand.registry.worker(Work, timeout=5, max_attempts=1)
        def in_thread(job: SyncJob[Work]) -> None:
            common(job)
            if how in ("times out", "is cancelled"):
                go_on.wait(10)
                raise OSError("told to stop")

    else:

        @stand.registry.worker(Work, timeout=5, max_attempts=1)
        async def on_loop(job: Job[Work]) -> None:
            common(job)
            if how in ("times out", "is cancelled"):
                await asyncio.Event().wait()

    handle = await stand.enqueue()
    async with stand.working() as pool:
        await stand.until(lambda: alive)
        if how == "times out":
            await stand.advance(6)
        if how == "is cancelled":
            await stand.client.cancel(handle)
            await stand.advance(0)
        go_on.set()
        await stand.until(lambda: not stand.engine(pool).claims)
        stand.events.clear()  # they hold the error, and with it the frames
        await stand.advance(10)
        await asyncio.sleep(0.01)
        assert [each() for each in alive] == [None]


async def test_a_thread_that_waits_for_its_checkpoint_is_let_go_at_the_end(stand: Stand) -> None:
    """The backend is away for good, and the pool gives up on the job."""
    raised: list[BaseException] = []

    @stand.registry.worker(Work)
    def work(job: SyncJob[Work]) -> None:
        try:
            job.checkpoint(1)
        except BaseException as error:
            raised.append(error)
            raise

    await stand.enqueue()
    pool = stand.pool(shutdown_timeout=1)
    stuck = stand.wire.hold("mark_many")
    await pool.start()
    await stand.until(lambda: stuck.reached)
    await stand.stop(pool)
    await stand.until(lambda: raised)


# ---------------------------------------------------------------- drivers


@pytest.mark.parametrize("name", ["exchange", "finish_many", "mark_many"])
async def test_a_wrong_number_of_answers_is_no_answer(stand: Stand, name: str) -> None:
    gate = Gate()

    @stand.registry.worker(Work, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    executor: Any = stand.driver.executor()
    method, wrong = getattr(executor, name), [3]

    async def short(*args: Any) -> Any:
        answer = await method(*args)
        if wrong[0] and args[0]:
            wrong[0] -= 1
            return ([], answer[1]) if name == "exchange" else []
        return answer

    vars(executor)[name] = short
    handle = await stand.enqueue()
    async with stand.working() as pool:
        if name == "finish_many":
            stand.wire.fail("exchange", away(), only=lambda args: bool(args[0]))
        gate.open()
        await stand.advance(60)
        assert await stand.state(handle) == "completed"
        assert not any(task.done() for task in stand.engine(pool)._lane_tasks)
        await stand.enqueue()
        await stand.advance(1)
        assert gate.came == 2


async def test_an_error_that_the_driver_did_not_translate_is_worth_repeating(stand: Stand) -> None:
    """Else a job that was completed would run again."""
    gate = Gate()

    @stand.registry.worker(Work, max_attempts=1)
    async def work(job: Job[Work]) -> str:
        await gate.pass_through()
        return "done"

    stand.wire.fail("mark_many", ConnectionResetError("by peer"), times=2)
    handle = await stand.enqueue()
    async with stand.working():
        await stand.advance(5)
        assert gate.waiting == 1
        stand.wire.fail("exchange", TimeoutError(), only=lambda args: bool(args[0]))
        stand.wire.fail("finish_many", EOFError(), times=2)
        gate.open()
        await stand.advance(5)
    row = await stand.row(handle)
    assert (row.state, row.output, gate.came) == (JobState.COMPLETED, b'"done"', 1)


async def test_what_a_driver_notes_on_its_claims_is_its_own_affair(stand: Stand) -> None:
    """It may be another note each time: the claim is the same, and its job goes on."""
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    executor: Any = stand.driver.executor()
    held, beat = executor.held, executor.session_beat

    def noted(row: JobRow) -> JobRow:
        claim = msgspec.structs.replace(row.claim, ref=b"elsewhere") if row.claim else None
        return msgspec.structs.replace(row, claim=claim)

    async def held_elsewhere(*args: Any) -> list[JobRow]:
        return [noted(row) for row in await held(*args)]

    async def beat_elsewhere(*args: Any) -> Any:
        answer = await beat(*args)
        cancels = tuple(msgspec.structs.replace(each, ref=b"beyond") for each in answer.cancels)
        return msgspec.structs.replace(answer, cancels=cancels)

    vars(executor).update(held=held_elsewhere, session_beat=beat_elsewhere)
    handle = await stand.enqueue()
    async with stand.working(lease=30):
        await stand.advance(60)
        assert (await stand.state(handle), gate.waiting) == ("running", 1)
        await stand.client.cancel(handle)
        await stand.advance(1)
        assert (await stand.state(handle), gate.waiting) == ("cancelled", 0)


# ---------------------------------------------------------------- event loops


def test_a_loop_that_ends_without_a_stop_fails_no_attempt() -> None:
    """``asyncio.run`` cancels every task at its end, the handlers too."""
    stand = Stand(real=True)
    started = []

    @stand.registry.worker(Work, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        started.append(job.id)
        await asyncio.Event().wait()

    async def main() -> None:
        for n in range(5):
            await stand.enqueue(Work(n))
        await stand.pool().start()
        await stand.until(lambda: len(started) == 5)

    asyncio.run(main())
    found = [job.row(stand.clock.now()) for job in stand.memory.store.jobs.values()]
    assert [(row.claim, row.attempt, row.errors) for row in found] == [(None, 0, ())] * 5
    assert stand.memory.store.session_list() == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks() -> None:
    """A handler that never waits is over before its task is made."""
    stand = Stand()
    seen: list[int] = []
    most: list[int] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        seen.append(job.args.n)
        most.append(stand.pools[0].running)
        if job.args.n % 10 == 0:
            await asyncio.sleep(0)

    async def main() -> None:
        factory: Any = getattr(asyncio, "eager_task_factory", None)  # absent from 3.11
        asyncio.get_running_loop().set_task_factory(factory)
        for n in range(3000):
            await stand.enqueue(Work(n))
        async with stand.working(concurrency=4, max_pending=2000):
            for _ in range(50):
                await stand.advance(0)
            assert len(stand.seen(JobFinished)) == 3000

    asyncio.run(main())
    assert sorted(seen) == list(range(3000))
    assert max(most) <= 4
