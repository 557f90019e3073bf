"""Stopping a pool: in order, in an outage, twice, and with handlers that do not want to."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from goncordia import Job, JobState, Snooze, SyncJob
from goncordia.engine.events import JobFinished, JobGivenBack, JobOverdue

from .stand import Gate, Other, Stand, Work


def gated(stand: Stand) -> Gate:
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> str:
        await gate.pass_through()
        return "done"

    return gate


async def test_running_handlers_are_waited_for(stand: Stand) -> None:
    gate = gated(stand)
    handle = await stand.enqueue()
    pool = stand.pool(shutdown_timeout=30)
    await pool.start()
    await stand.advance(0)
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(29)
    assert not stopping.done()
    gate.open()
    await stand.advance(0)
    assert stopping.done()
    row = await stand.row(handle)
    assert (row.state, row.output, row.attempt) == (JobState.COMPLETED, b'"done"', 1)
    assert stand.memory.store.session_list() == []


async def test_the_pool_beats_while_it_waits(stand: Stand) -> None:
    gate = gated(stand)
    await stand.enqueue()
    pool = stand.pool(shutdown_timeout=300, lease=10, heartbeat_interval=2)
    await pool.start()
    await stand.advance(0)
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(0)
    stand.wire.forget()
    await stand.advance(100)
    assert stand.wire.count("session_beat") >= 49
    (session,) = stand.memory.store.session_list()
    assert session.open
    gate.open()
    await stand.finish(stopping)


async def test_after_the_time_out_they_are_interrupted_and_their_attempt_is_not_used(
    stand: Stand,
) -> None:
    gate = gated(stand)
    handles = [await stand.enqueue(Work(n)) for n in range(3)]
    pool = stand.pool(shutdown_timeout=30)
    await pool.start()
    await stand.advance(0)
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(29.9)
    assert gate.waiting == 3
    await stand.advance(0.2)
    assert stopping.done()
    assert gate.waiting == 0
    for handle in handles:
        row = await stand.row(handle)
        assert (row.state, row.attempt, row.errors) == (JobState.AVAILABLE, 0, ())
    assert [event.to for event in stand.seen(JobFinished)] == ["release"] * 3


async def test_what_has_not_started_goes_back_at_once(stand: Stand) -> None:
    gate = gated(stand)
    handles = [await stand.enqueue(Work(n)) for n in range(6)]
    pool = stand.pool(concurrency=2, max_pending=4)
    await pool.start()
    await stand.advance(0)
    assert [await stand.state(handle) for handle in handles] == ["running"] * 6
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(0)
    assert not stopping.done()
    rows = [await stand.row(handle) for handle in handles]
    assert [row.state.value for row in rows] == ["running"] * 2 + ["available"] * 4
    assert [row.attempt for row in rows] == [1, 1, 0, 0, 0, 0]
    assert [event.reason for event in stand.seen(JobGivenBack)] == ["shutdown"] * 4
    gate.open()
    await stand.finish(stopping)
    assert gate.came == 2


async def test_nothing_new_is_fetched(stand: Stand) -> None:
    gate = gated(stand)
    await stand.enqueue()
    pool = stand.pool()
    await pool.start()
    await stand.advance(0)
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(0)
    later = await stand.enqueue(Work(2))
    await stand.advance(10)
    assert await stand.state(later) == "available"
    gate.open()
    await stand.finish(stopping)
    assert await stand.state(later) == "available"


async def test_a_fetch_that_is_answered_during_the_stop_is_given_back(stand: Stand) -> None:
    gate = gated(stand)
    held = stand.wire.hold("exchange", after=True, only=lambda args: args[1] is not None)
    handle = await stand.enqueue()
    pool = stand.pool()
    await pool.start()
    await stand.advance(0)
    assert (held.reached, await stand.state(handle)) == (1, "running")
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(0)
    held.let_go()
    await stand.finish(stopping)
    row = await stand.row(handle)
    assert (row.state, row.attempt, gate.came) == (JobState.AVAILABLE, 0, 0)


async def test_a_handler_may_end_in_its_own_way_when_it_is_interrupted(stand: Stand) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> str:
        try:
            await stand.clock.sleep(1000)
        except asyncio.CancelledError:
            if job.args.n:
                raise Snooze(60) from None
            return "saved"
        return "never"

    saved, snoozed = await stand.enqueue(Work(0)), await stand.enqueue(Work(1))
    async with stand.working(shutdown_timeout=1):
        pass
    assert (await stand.row(saved)).output == b'"saved"'
    assert (await stand.row(snoozed)).state is JobState.SCHEDULED


async def test_an_error_while_it_is_interrupted_uses_no_attempt(stand: Stand) -> None:
    @stand.registry.worker(Work, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        try:
            await stand.clock.sleep(1000)
        finally:
            raise OSError("the connection is closed already")

    handle = await stand.enqueue()
    async with stand.working(shutdown_timeout=0):
        pass
    row = await stand.row(handle)
    assert (row.state, row.attempt, row.errors) == (JobState.AVAILABLE, 0, ())


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
    gate = gated(stand)
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
    gate = gated(stand)
    handle = await stand.enqueue()
    pool = stand.pool()
    await pool.start()
    await stand.advance(0)
    stand.wire.down = True
    gate.open()
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(300)
    assert not stopping.done()
    stand.wire.heal()
    await stand.advance(5)
    assert stopping.done()
    row = await stand.row(handle)
    assert (row.state, row.output, row.attempt) == (JobState.COMPLETED, b'"done"', 1)


async def test_an_idle_pool_stops_in_an_outage(stand: Stand) -> None:
    gated(stand)
    pool = stand.pool()
    await pool.start()
    await stand.advance(5)
    stand.wire.down = True
    await stand.finish(pool.stop(), within=30)


async def test_claims_that_wait_for_the_lease_go_back_without_waiting_for_the_time_out(
    stand: Stand,
) -> None:
    """They have a slot and have not started: a stop need not give them time to end."""
    gate = gated(stand)
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


async def test_a_cancelled_stop_leaves_nothing_behind(stand: Stand) -> None:
    """Who cancels the stop wants to go now; a pool that nobody stops must not live on."""
    gate = gated(stand)
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
    gated(stand).open()
    await stand.enqueue()
    async with stand.working(interrupt_on_lapse=True):
        await stand.advance(20)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_pool_that_was_stopped_starts_again(stand: Stand) -> None:
    gate = gated(stand)
    gate.open()
    pool = stand.pool()
    for n in range(3):
        handle = await stand.enqueue(Work(n))
        await pool.start()
        await stand.advance(0)
        await stand.stop(pool)
        assert await stand.state(handle) == "completed"
    assert gate.came == 3


def test_system_exit_in_a_handler_ends_the_loop_and_fails_the_attempt() -> None:
    """As in any task of asyncio. The pool is stopped on the way out, and the attempt is kept."""
    stand = Stand(real=True)

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        raise SystemExit(7)

    async def main() -> None:
        await stand.enqueue()
        async with stand.pool():
            await asyncio.Event().wait()

    with pytest.raises(SystemExit) as caught:
        asyncio.run(main())
    assert caught.value.code == 7
    (job,) = stand.memory.store.jobs.values()
    assert (job.attempt, job.claim, job.state) == (1, None, None)
    assert [error.type for error in job.errors] == ["SystemExit"]
