"""The lease by our own clock: what may start, and what goes on when it is over."""

from __future__ import annotations

import asyncio
import logging

import pytest

from goncordia import Job, JobState, NoRetry

from .stand import Gate, Other, Stand, Work
from .wire import away


async def test_nothing_starts_after_the_lease_until_a_beat_is_answered(stand: Stand) -> None:
    gate = stand.gated()
    first, second = await stand.enqueue(Work(1)), await stand.enqueue(Work(2))
    async with stand.working(concurrency=1, max_pending=1, lease=30) as pool:
        assert [await stand.state(job) for job in (first, second)] == ["running", "running"]
        stand.wire.fail("session_beat", times=1000)  # results go through, beats do not
        await stand.advance(29)
        gate.open()
        await stand.advance(0)
        assert gate.came == 2  # a moment before the end of the lease
        gate.close()
        await stand.advance(1.1)
        third = await stand.enqueue(Work(3))
        await stand.advance(2)
        assert (gate.came, await stand.state(third)) == (2, "available")
        stand.wire.heal()
        await stand.advance(1)
        assert (gate.waiting, await stand.state(third)) == (1, "running")
        gate.open()
        await stand.advance(0)
        assert pool.running == 0


async def test_a_claim_that_lapsed_waits_and_starts_after_a_beat(stand: Stand) -> None:
    gate = stand.gated()
    await stand.enqueue(Work(1))
    await stand.enqueue(Work(2))
    async with stand.working(concurrency=1, max_pending=1, lease=30):
        stand.wire.fail("session_beat", times=1000)
        await stand.advance(31)
        assert gate.came == 1
        gate.open()  # now the second has a slot, but the lease is over
        await stand.advance(1)
        assert gate.came == 1
        stand.wire.heal()
        await stand.advance(1)
        assert gate.came == 2


async def test_without_marks_a_last_attempt_waits_for_the_lease_too() -> None:
    stand = Stand(marks=False)
    gate = stand.gated(max_attempts=1)
    async with stand.working(lease=30, lanes=1):
        stand.wire.fail("session_beat", times=1000)
        await stand.advance(20.5)
        slow = stand.wire.hold("exchange", after=True, only=lambda args: args[1] is not None)
        handle = await stand.enqueue()
        await stand.advance(0)
        # The answer comes in time, but the lease is over when the job would start.
        assert slow.reached == 1
        session = stand.engine(stand.pools[0]).session
        session.good_until = stand.clock.monotonic() - 1
        slow.let_go()
        await stand.advance(1)
        assert (await stand.state(handle), gate.came) == ("running", 0)
        stand.wire.heal()
        await stand.advance(5)
        assert gate.came == 1
        gate.open()


async def test_a_claim_that_lapsed_and_was_lost_never_starts(stand: Stand) -> None:
    gate = stand.gated()
    await stand.enqueue(Work(1))
    second = await stand.enqueue(Work(2))
    async with stand.working(concurrency=1, max_pending=1, lease=30, rescue_interval=1000):
        stand.wire.fail("session_beat", times=1000)
        await stand.advance(31)
        gate.open()
        await stand.advance(1)
        stand.end_sessions()
        stand.wire.heal()
        await stand.advance(3)
        assert gate.came == 1
        assert await stand.state(second) == "running"  # until a rescuer sees it


async def test_the_lease_counts_from_the_sending_of_the_beat(stand: Stand) -> None:
    stand.gated()
    async with stand.working(lease=30, heartbeat_interval=5) as pool:
        slow = stand.wire.hold("session_beat", after=True)
        await stand.advance(5)
        assert slow.reached == 1
        await stand.advance(4)
        slow.let_go()
        await stand.advance(0)
        assert stand.engine(pool).session.good_until == 5 + 30


async def test_handlers_go_on_when_the_lease_lapses(stand: Stand) -> None:
    gate = stand.gated()
    handle = await stand.enqueue(Work(1))
    async with stand.working(lease=30):
        with stand.wire.outage():
            await stand.advance(100)
            assert (gate.waiting, gate.ends) == (1, [])
        await stand.advance(3)
        gate.open()
        await stand.advance(0)
    row = await stand.row(handle)
    assert (row.state, row.attempt, row.output) == (JobState.COMPLETED, 1, b'"done"')


async def test_interrupt_on_lapse_ends_them_at_the_end_of_the_lease(stand: Stand) -> None:
    gate = stand.gated()
    handle = await stand.enqueue(Work(1))
    async with stand.working(lease=30, interrupt_on_lapse=True, retry_policy=lambda _: 1):
        with stand.wire.outage():
            await stand.advance(29.5)
            assert gate.ends == []
            await stand.advance(1)
            assert gate.ends == ["interrupted 1"]
            await stand.advance(60)
        gate.open()
        await stand.advance(10)
    row = await stand.row(handle)
    assert (row.state, row.attempt) == (JobState.COMPLETED, 2)
    assert [error.type for error in row.errors] == ["goncordia.errors.LeaseLapsedError"]


async def test_interrupt_on_lapse_leaves_alone_what_has_not_started(stand: Stand) -> None:
    """A claim with a slot waits for the lease: it is not a run, and no attempt failed."""
    gate = Gate()

    @stand.registry.worker(Other)
    async def other(job: Job[Other]) -> None:
        await asyncio.sleep(0)

    @stand.registry.worker(Work, max_attempts=1, retry_policy=NoRetry())
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    await stand.enqueue(Work(1), priority=1)
    second = await stand.enqueue(Work(2), max_attempts=5)
    async with stand.working(
        lease=30, concurrency=1, max_pending=1, interrupt_on_lapse=True, rescue_interval=1000
    ):
        assert await stand.state(second) == "running"
        with stand.wire.outage():
            await stand.advance(60)  # the first is interrupted, the second takes its slot
        gate.open()
        await stand.advance(10)
    row = await stand.row(second)
    assert (row.state, row.attempt, row.errors) == (JobState.COMPLETED, 1, ())


async def test_without_it_a_lapse_is_not_looked_at(stand: Stand) -> None:
    stand.gated()
    async with stand.working() as pool:
        assert "_watch_lapse" not in repr(stand.engine(pool)._background)


async def test_an_outage_longer_than_the_lease_loses_nothing(stand: Stand) -> None:
    gate = stand.gated()
    handles = [await stand.enqueue(Work(n)) for n in range(5)]
    async with stand.working(lease=30) as pool:
        session = stand.session(pool)
        with stand.wire.outage():
            await stand.advance(20)
            gate.open()
            await stand.advance(1000)
        await stand.advance(5)
        assert [await stand.state(handle) for handle in handles] == ["completed"] * 5
        assert stand.session(pool) == session
    assert len(gate.ends) == 5


async def test_a_closed_session_releases_what_it_might_hold(stand: Stand) -> None:
    """A claim that the pool does not know of goes back with the session."""
    stand.gated()
    async with stand.working():
        held = stand.wire.hold("held")
        stand.wire.fail("exchange", away(), after=True, only=lambda args: args[1] is not None)
        handle = await stand.enqueue()
        await stand.advance(0.5)
        assert (held.reached, await stand.state(handle)) == (1, "running")
    row = await stand.row(handle)
    assert (row.state, row.attempt) == (JobState.AVAILABLE, 0)


async def test_logging_is_quiet_when_all_is_well(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    gate = stand.gated()
    gate.open()
    await stand.enqueue()
    async with stand.working():
        await stand.advance(60)
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
