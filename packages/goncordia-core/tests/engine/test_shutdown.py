"""Stopping a pool: in order, in an outage, twice, and with handlers that do not want to."""

from __future__ import annotations

import asyncio

from goncordia import Job, JobState, Snooze
from goncordia.engine.events import JobFinished, JobGivenBack

from .stand import Stand, Work


async def test_running_handlers_are_waited_for(stand: Stand) -> None:
    gate = stand.gated()
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
    gate = stand.gated()
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
    gate = stand.gated()
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
    gate = stand.gated()
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
    gate = stand.gated()
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
    gate = stand.gated()
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
