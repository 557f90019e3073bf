"""What users' code does that one does not expect."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from goncordia import Discard, Job, JobState, RetryAfter, Snooze, SyncJob
from goncordia.engine.events import JobFinished

from .stand import Gate, Stand, Work
from .wire import away


class OwnBaseError(BaseException):
    """No Exception at all."""


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), OwnBaseError("x")])
async def test_one_job_does_not_end_the_worker(stand: Stand, error: BaseException) -> None:
    @stand.registry.worker(Work, max_attempts=2, retry_policy=lambda _: 1)
    async def work(job: Job[Work]) -> None:
        if job.args.n == 1:
            raise error

    bad, good = await stand.enqueue(Work(1)), await stand.enqueue(Work(2))
    async with stand.working() as pool:
        await stand.advance(5)
        assert pool.running == 0
    row = await stand.row(bad)
    assert (row.state, row.attempt) == (JobState.DISCARDED, 2)
    assert [each.type.split(".")[-1] for each in row.errors] == [type(error).__name__] * 2
    assert await stand.state(good) == "completed"


async def test_an_exit_after_the_session_was_lost_sends_nothing(stand: Stand) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise SystemExit(3)

    handle = await stand.enqueue()
    async with stand.working(rescue_interval=1000):
        stand.end_sessions()
        await stand.advance(6)
        row = await stand.row(handle)
        assert (row.state, row.attempt, row.errors) == (JobState.RUNNING, 1, ())
        assert [event.to for event in stand.seen(JobFinished)] == [None]


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


class CancellingError(Exception):
    def __str__(self) -> str:
        raise asyncio.CancelledError


@pytest.mark.parametrize("where", ["observer", "error handler", "policy", "text"])
async def test_a_cancellation_out_of_what_is_not_awaited_costs_no_slot(
    stand: Stand, where: str
) -> None:
    def cancel(*_: object) -> float:
        raise asyncio.CancelledError

    @stand.registry.worker(Work, retry_policy=cancel if where == "policy" else lambda _: 1000)
    async def work(job: Job[Work]) -> None:
        raise CancellingError if where == "text" else ValueError

    settings: dict[str, Any] = {}
    if where == "observer":
        settings["observer"] = cancel
    if where == "error handler":
        settings["error_handler"] = cancel
    handle = await stand.enqueue()
    async with stand.working(**settings) as pool:
        await stand.advance(0)
        assert (pool.running, len(stand.engine(pool).claims)) == (0, 0)
    row = await stand.row(handle)
    assert (row.attempt, len(row.errors)) == (1, 1)


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
    stand: Stand, thread: bool, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pytest keeps the records of a test, and with them the error and its frames.
    monkeypatch.setattr(logging.getLogger("goncordia.jobs"), "disabled", True)
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
        # The frames of a thread are gone a moment after the engine has heard of its end.
        await stand.until(lambda: [each() for each in alive] == [None])


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
