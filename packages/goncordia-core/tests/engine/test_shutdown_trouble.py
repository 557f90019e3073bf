"""Stopping a pool when handlers do not want to, in an outage, twice, and at the end of the loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from goncordia import Job, JobState, Registry, SyncJob
from goncordia.engine.events import JobFinished, JobGivenBack, JobOverdue
from goncordia.errors import DriverUnavailableError

from .stand import Other, Stand, Work


async def test_a_stubborn_thread_leaves_its_session_to_its_lease(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    inside, may_end = threading.Event(), threading.Event()

    @stand.registry.worker(Work)
    def work(job: SyncJob[Work]) -> None:
        inside.set()
        may_end.wait(20)

    @stand.registry.worker(Other)
    async def other(job: Job[Other]) -> None:
        await stand.clock.sleep(1000)

    handle, beside = await stand.enqueue(), await stand.enqueue(Other())
    pool = stand.pool(shutdown_timeout=3)
    await pool.start()
    await stand.until(inside.is_set)
    session = stand.session(pool)
    with caplog.at_level(logging.ERROR, "goncordia.engine"):
        await stand.stop(pool)
    assert f"job {handle.id} (work) goes on after the shutdown" in caplog.text
    assert [event.row.id for event in stand.seen(JobOverdue)] == [handle.id]
    # The other job went back; this one stays claimed, so that nobody runs it meanwhile.
    assert (await stand.state(beside), await stand.state(handle)) == ("available", "running")
    (info,) = stand.memory.store.session_list()
    assert (info.id, info.open) == (session, True)
    # Its late result reaches nobody, and another pool rescues the job when the lease is over.
    may_end.set()
    async with stand.working():
        await stand.advance(100)
        await stand.until(lambda: handle.id in {each.row.id for each in stand.seen(JobFinished)})
    row = await stand.row(handle)
    assert (row.state, row.attempt, row.worker_id) == (JobState.COMPLETED, 2, "pool-1")
    assert [error.type for error in row.errors] == ["goncordia.errors.WorkerLostError"]


async def test_a_stubborn_coroutine_as_well(stand: Stand) -> None:
    ends = asyncio.Event()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> str:
        while not ends.is_set():
            try:
                await ends.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    handle = await stand.enqueue()
    pool = stand.pool(shutdown_timeout=3)
    await pool.start()
    await stand.advance(0)
    await stand.stop(pool)
    calls = stand.wire.count()
    ends.set()
    await stand.advance(5)
    row = await stand.row(handle)
    assert (row.state, row.output) == (JobState.RUNNING, None)
    assert stand.wire.count() == calls  # a stopped pool calls nobody


async def test_stopping_twice_is_harmless_and_both_wait_for_the_end(stand: Stand) -> None:
    gate = stand.gated()
    handle = await stand.enqueue()
    pool = stand.pool()
    await pool.start()
    await stand.advance(0)
    first, second = asyncio.create_task(pool.stop()), asyncio.create_task(pool.stop())
    await stand.advance(5)
    assert not first.done()
    assert not second.done()
    gate.open()
    await stand.advance(0)
    assert first.done()
    assert second.done()
    await pool.stop()
    assert await stand.state(handle) == "completed"


async def test_a_stop_in_an_outage_waits_for_the_answer_to_the_last_result(stand: Stand) -> None:
    gate = stand.gated()
    handle = await stand.enqueue()
    pool = stand.pool(shutdown_timeout=310)
    await pool.start()
    await stand.advance(0)
    stand.wire.down = True
    gate.open()
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(299)
    assert not stopping.done()
    stand.wire.heal()
    await stand.advance(5)
    assert stopping.done()
    row = await stand.row(handle)
    assert (row.state, row.output, row.attempt) == (JobState.COMPLETED, b'"done"', 1)


@pytest.mark.parametrize("way", ["away", "silent"])
async def test_a_stop_ends_when_the_backend_is_gone_for_good(
    stand: Stand, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    gate = stand.gated()
    handles = [await stand.enqueue(Work(n)) for n in range(3)]
    pool = stand.pool(concurrency=2, max_pending=1, shutdown_timeout=30)
    await pool.start()
    await stand.advance(0)
    if way == "away":
        stand.wire.down = True
    else:
        for name in ("exchange", "finish_many", "session_beat", "expire", "held"):
            for _ in range(99):
                stand.wire.hold(name)
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(0)
    gate.open()
    with caplog.at_level(logging.WARNING, "goncordia.engine"):
        await stand.advance(29)
        assert not stopping.done()
        await stand.advance(2)
    assert stopping.done()
    with pytest.raises(DriverUnavailableError, match=r"answered to all results \(3 left\)"):
        await stopping
    told = {
        (record.__dict__["job_id"], record.levelname, record.message.partition("(")[2])
        for record in caplog.records
        if "the shutdown was over before its result" in record.message
    }
    rest = " was stored; if it is not, the job is taken back when the lease is over"
    result = "work): the shutdown was over before its result "
    assert told == {
        (str(handles[0].id), "ERROR", f"{result}(complete){rest}"),
        (str(handles[1].id), "ERROR", f"{result}(complete){rest}"),
        (str(handles[2].id), "WARNING", f"{result}(release){rest}"),
    }
    calls = stand.wire.count()
    await stand.advance(100)
    assert stand.wire.count() == calls
    # The leases bring the jobs back.
    stand.wire.heal()
    async with stand.working():
        await stand.advance(100)
    assert [await stand.state(handle) for handle in handles] == ["completed"] * 3


async def test_a_backend_that_comes_back_at_the_last_moment_gets_what_was_interrupted(
    stand: Stand,
) -> None:
    """The time for results begins anew when the handlers are over: there are 5 seconds for it."""
    stand.gated()
    handle = await stand.enqueue()
    pool = stand.pool(shutdown_timeout=30)
    await pool.start()
    await stand.advance(0)
    stand.wire.down = True
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(32)
    assert not stopping.done()
    stand.wire.heal()
    await stand.advance(2.5)  # it repeats after 2 s at most
    await stopping
    row = await stand.row(handle)
    assert (row.state, row.attempt) == (JobState.AVAILABLE, 0)
    assert stand.memory.store.session_list() == []


async def test_a_session_that_cannot_be_closed_does_not_hold_the_stop_up(stand: Stand) -> None:
    stand.gated()
    pool = stand.pool()
    await pool.start()
    await stand.advance(0)
    held = stand.wire.hold("session_close")
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(4.9)
    assert (held.reached, stopping.done()) == (1, False)
    await stand.advance(0.2)
    assert stopping.done()
    await stopping


async def test_the_lifespan_is_left_in_order_when_results_were_not_stored(stand: Stand) -> None:
    ends: list[str] = []

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        yield
        ends.append("left")

    registry: Registry[Any] = Registry(lifespan=lifespan)

    @registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await stand.clock.sleep(60)

    await stand.enqueue()
    pool = stand.pool(registry=registry, shutdown_timeout=1)
    await pool.start()
    await stand.advance(0)
    stand.wire.down = True
    with pytest.raises(DriverUnavailableError, match="the shutdown was over"):
        await stand.finish(pool.stop())
    assert ends == ["left"]


async def test_what_is_interrupted_is_told(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    stand.gated()
    handle = await stand.enqueue()
    with caplog.at_level(logging.WARNING, "goncordia.engine"):
        async with stand.working(shutdown_timeout=3):
            await stand.advance(0)
    (record,) = caplog.records
    assert (
        record.message == f"job {handle.id} (work) is interrupted: shutdown_timeout (3 s) is over"
    )
    fields = {name: record.__dict__[name] for name in ("job_id", "job_kind", "job_attempt")}
    assert fields == {"job_id": str(handle.id), "job_kind": "work", "job_attempt": 1}


async def test_an_idle_pool_stops_in_an_outage(stand: Stand) -> None:
    stand.gated()
    pool = stand.pool()
    await pool.start()
    await stand.advance(5)
    stand.wire.down = True
    await stand.finish(pool.stop(), within=30)


async def test_claims_that_wait_for_the_lease_go_back_without_waiting_for_the_time_out(
    stand: Stand,
) -> None:
    """They have a slot and have not started: a stop need not give them time to end."""
    gate = stand.gated()
    first = await stand.enqueue(Work(1))
    pool = stand.pool(concurrency=1, max_pending=1, shutdown_timeout=30, lease=30)
    second = await stand.enqueue(Work(2))
    await pool.start()
    await stand.advance(0)
    assert [await stand.state(job) for job in (first, second)] == ["running", "running"]
    stand.wire.down = True
    await stand.advance(31)
    gate.open()  # the second takes the slot, and waits for the lease
    await stand.advance(0)
    assert (gate.came, pool.running) == (1, 1)
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(0.1)
    assert pool.running == 0
    stand.wire.heal()
    await stand.advance(5)
    assert stopping.done()
    row = await stand.row(second)
    assert (row.state, row.attempt, gate.came) == (JobState.AVAILABLE, 0, 1)
    assert [(each.row.id, each.reason) for each in stand.seen(JobGivenBack)] == [
        (second.id, "shutdown")
    ]
    assert [each.row.id for each in stand.seen(JobFinished)] == [first.id]


async def test_a_cancelled_stop_leaves_nothing_behind(stand: Stand) -> None:
    """Who cancels the stop wants to go now; a pool that nobody stops must not live on."""
    gate = stand.gated()
    await stand.enqueue()
    pool = stand.pool()
    await pool.start()
    await stand.advance(0)
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(1)
    stopping.cancel()
    await stand.advance(1)
    assert stopping.cancelled()
    calls = stand.wire.count()
    await stand.advance(100)
    assert stand.wire.count() == calls
    gate.open()
    await stand.advance(1)
    assert stand.wire.count() == calls
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert others == set()


async def test_after_a_stop_no_task_is_left(stand: Stand) -> None:
    stand.gated().open()
    await stand.enqueue()
    async with stand.working(interrupt_on_lapse=True):
        await stand.advance(20)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_pool_that_was_stopped_starts_again(stand: Stand) -> None:
    gate = stand.gated()
    gate.open()
    pool = stand.pool()
    for n in range(3):
        handle = await stand.enqueue(Work(n))
        await pool.start()
        await stand.advance(0)
        await stand.stop(pool)
        assert await stand.state(handle) == "completed"
    assert gate.came == 3


def test_ctrl_c_in_a_handler_ends_the_loop_and_fails_the_attempt() -> None:
    """It hits whatever runs. The pool is stopped on the way out, and the attempt is kept."""
    stand = Stand(real=True)

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        raise KeyboardInterrupt

    async def main() -> None:
        await stand.enqueue()
        async with stand.pool():
            await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    (job,) = stand.memory.store.jobs.values()
    assert (job.attempt, job.claim, job.state) == (1, None, None)
    assert [error.type for error in job.errors] == ["KeyboardInterrupt"]
