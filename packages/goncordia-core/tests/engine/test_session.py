"""The session: opened, kept, lapsed, lost, and opened anew."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from goncordia import Job, JobState, NoRetry, SyncJob
from goncordia.driver import Beat
from goncordia.engine.events import JobFinished, JobOverdue, SessionLost, SessionOpened

from .stand import Gate, Other, Stand, Work
from .wire import away


def gated(stand: Stand) -> tuple[Gate, list[str]]:
    gate, ends = Gate(), list[str]()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> str:
        try:
            await gate.pass_through()
        except asyncio.CancelledError:
            ends.append(f"interrupted {job.args.n}")
            raise
        ends.append(f"returned {job.args.n}")
        return f"by attempt {job.attempt}"

    return gate, ends


def end_sessions(stand: Stand) -> None:
    """As others do who take the pool for dead."""
    sessions = stand.memory.store.sessions
    for session in list(sessions.open.values()):
        sessions.end(session)


async def test_the_session_is_kept_by_beats(stand: Stand) -> None:
    gated(stand)
    async with stand.working(lease=30, heartbeat_interval=5) as pool:
        session = stand.session(pool)
        stand.wire.forget()
        await stand.advance(300)
        assert stand.wire.count("session_beat") == 60
        assert stand.session(pool) == session
        (info,) = stand.memory.store.session_list()
        assert (info.id, info.worker_id, info.lease, info.open) == (session, "pool-0", 30, True)
    assert stand.memory.store.session_list() == []
    assert len(stand.seen(SessionOpened)) == 1


async def test_lost_interrupts_what_runs_and_sends_nothing_for_it(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    _gate, ends = gated(stand)
    handles = [await stand.enqueue(Work(n)) for n in range(3)]
    async with stand.working(concurrency=2, max_pending=1) as pool:
        old = stand.session(pool)
        assert [await stand.state(handle) for handle in handles] == ["running"] * 3
        end_sessions(stand)
        stand.wire.forget()
        await stand.advance(5)  # the beat is answered: lost
        assert sorted(ends) == ["interrupted 0", "interrupted 1"]
        assert [event.to for event in stand.seen(JobFinished)] == [None, None]
        assert stand.seen(SessionLost) == [SessionLost(old, 2)]
        assert stand.session(pool) != old
        sent = [each for args in stand.wire.given("exchange") for each in args[0]]
        assert sent == []
        # Nobody but a rescuer takes the jobs back.
        assert [await stand.state(handle) for handle in handles] == ["running"] * 3
    assert f"session {old} of pool-0 was lost, 2 runs interrupted" in caplog.text
    assert len(stand.seen(SessionOpened)) == 2


async def test_it_goes_on_under_the_new_id(stand: Stand) -> None:
    gate, _ends = gated(stand)
    async with stand.working() as pool:
        end_sessions(stand)
        await stand.advance(5)
        gate.open()
        handle = await stand.enqueue()
        await stand.advance(1)
        row = await stand.row(handle)
        assert row.state is JobState.COMPLETED
        requests = [args[1] for args in stand.wire.given("exchange") if args[1]]
        assert requests[-1].session == stand.session(pool)


async def test_a_fetch_is_told_too(stand: Stand) -> None:
    gated(stand)
    async with stand.working(heartbeat_interval=14) as pool:
        old = stand.session(pool)
        await stand.advance(1)
        end_sessions(stand)
        await stand.advance(1.1)  # the next poll, long before the next beat
        assert [event.session for event in stand.seen(SessionLost)] == [old]
        assert stand.session(pool) != old


async def test_a_handler_that_returns_after_lost_completes_nothing(stand: Stand) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> str:
        try:
            await stand.clock.sleep(1000)
        except asyncio.CancelledError:
            return "all the same"
        return "never"

    handle = await stand.enqueue()
    async with stand.working():
        end_sessions(stand)
        await stand.advance(6)
        row = await stand.row(handle)
        assert (row.state, row.output) == (JobState.RUNNING, None)


async def test_a_thread_that_outlives_its_session_completes_nothing(stand: Stand) -> None:
    inside, may_end = threading.Event(), threading.Event()

    @stand.registry.worker(Work)
    def work(job: SyncJob[Work]) -> str:
        inside.set()
        may_end.wait(20)
        return f"cancelled: {job.cancelled}"

    handle = await stand.enqueue()
    async with stand.working(concurrency=1) as pool:
        await stand.until(inside.is_set)
        end_sessions(stand)
        await stand.advance(8)
        assert [event.cause for event in stand.seen(JobOverdue)] == ["lost"]
        assert pool.running == 1  # it keeps its slot
        may_end.set()
        await stand.until(lambda: stand.seen(JobFinished))
        assert await stand.state(handle) == "running"
        assert pool.running == 0


async def test_results_on_their_way_are_still_answered(stand: Stand) -> None:
    gate, _ends = gated(stand)
    handle = await stand.enqueue()
    async with stand.working() as pool:
        hold = stand.wire.hold("exchange", only=lambda args: bool(args[0]))
        gate.open()
        await stand.advance(0)
        assert hold.reached == 1
        end_sessions(stand)
        await stand.advance(5)
        assert len(stand.seen(SessionLost)) == 1
        hold.let_go()
        await stand.advance(1)
        # The claim was not taken by anybody yet, so its result still counts.
        assert await stand.state(handle) == "completed"
        assert len(stand.engine(pool).claims) == 0


async def test_a_late_lost_of_an_old_session_is_ignored(stand: Stand) -> None:
    gate, ends = gated(stand)
    async with stand.working() as pool:
        first = stand.session(pool)
        await stand.advance(4.5)
        end_sessions(stand)
        late = stand.wire.hold("session_beat", after=True)
        await stand.advance(1.5)  # the beat is sent, and a fetch is told first
        second = stand.session(pool)
        assert (late.reached, second == first) == (1, False)
        await stand.enqueue(Work(1))
        await stand.advance(1)
        assert gate.waiting == 1
        late.let_go()  # it says that the first one is lost, which is long known
        await stand.advance(1)
        await stand.engine(pool).session.lost(first)
        await stand.advance(1)
        assert (stand.session(pool), gate.waiting, ends) == (second, 1, [])
    assert [event.session for event in stand.seen(SessionLost)] == [first]


async def test_a_late_good_answer_about_an_old_session_renews_nothing(stand: Stand) -> None:
    gated(stand)
    async with stand.working(lease=30) as pool:
        session = stand.engine(pool).session
        first, until = session.id, session.good_until
        end_sessions(stand)
        await stand.advance(6)
        until = session.good_until
        session.renewed(first, 1000.0)
        await session.beaten(first, 1000.0, Beat(held=True))
        assert session.good_until == until


async def test_jobs_of_a_late_fetch_of_an_old_session_are_not_run(stand: Stand) -> None:
    gate, _ends = gated(stand)
    late = stand.wire.hold("exchange", after=True, only=lambda args: args[1] is not None)
    handle = await stand.enqueue()
    async with stand.working(lanes=1) as pool:
        assert (late.reached, await stand.state(handle)) == (1, "running")
        first = stand.session(pool)
        end_sessions(stand)
        await stand.advance(5)
        assert stand.session(pool) != first
        late.let_go()
        await stand.advance(5)
        assert gate.came == 0
        assert len(stand.engine(pool).claims) == 0


async def test_an_id_is_asked_for_once(stand: Stand) -> None:
    """Whether the first open took effect is not known; asked again, it could end a live session."""
    gated(stand)
    stand.wire.fail("session_open", away(), after=True, times=3)
    async with stand.working() as pool:
        await stand.advance(5)
        ids = [args[0] for args in stand.wire.given("session_open")]
        assert len(ids) == len(set(ids)) == 4
        assert stand.session(pool) == ids[-1]


# ---------------------------------------------------------------- the lease by our own clock


async def test_nothing_starts_after_the_lease_until_a_beat_is_answered(stand: Stand) -> None:
    gate, _ends = gated(stand)
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
    gate, _ends = gated(stand)
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


async def test_a_claim_that_lapsed_and_was_lost_never_starts(stand: Stand) -> None:
    gate, _ends = gated(stand)
    await stand.enqueue(Work(1))
    second = await stand.enqueue(Work(2))
    async with stand.working(concurrency=1, max_pending=1, lease=30, rescue_interval=1000):
        stand.wire.fail("session_beat", times=1000)
        await stand.advance(31)
        gate.open()
        await stand.advance(1)
        end_sessions(stand)
        stand.wire.heal()
        await stand.advance(3)
        assert gate.came == 1
        assert await stand.state(second) == "running"  # until a rescuer sees it


async def test_the_lease_counts_from_the_sending_of_the_beat(stand: Stand) -> None:
    gated(stand)
    async with stand.working(lease=30, heartbeat_interval=5) as pool:
        slow = stand.wire.hold("session_beat", after=True)
        await stand.advance(5)
        assert slow.reached == 1
        await stand.advance(4)
        slow.let_go()
        await stand.advance(0)
        assert stand.engine(pool).session.good_until == 5 + 30


async def test_handlers_go_on_when_the_lease_lapses(stand: Stand) -> None:
    gate, ends = gated(stand)
    handle = await stand.enqueue(Work(1))
    async with stand.working(lease=30):
        with stand.wire.outage():
            await stand.advance(100)
            assert (gate.waiting, ends) == (1, [])
        await stand.advance(3)
        gate.open()
        await stand.advance(0)
    row = await stand.row(handle)
    assert (row.state, row.attempt, row.output) == (JobState.COMPLETED, 1, b'"by attempt 1"')


async def test_interrupt_on_lapse_ends_them_at_the_end_of_the_lease(stand: Stand) -> None:
    gate, ends = gated(stand)
    handle = await stand.enqueue(Work(1))
    async with stand.working(lease=30, interrupt_on_lapse=True, retry_policy=lambda _: 1):
        with stand.wire.outage():
            await stand.advance(29.5)
            assert ends == []
            await stand.advance(1)
            assert ends == ["interrupted 1"]
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
    gated(stand)
    async with stand.working() as pool:
        assert "_watch_lapse" not in repr(stand.engine(pool)._background)


async def test_an_outage_longer_than_the_lease_loses_nothing(stand: Stand) -> None:
    gate, ends = gated(stand)
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
    assert len(ends) == 5


async def test_a_closed_session_releases_what_it_might_hold(stand: Stand) -> None:
    """A claim that the pool does not know of goes back with the session."""
    gated(stand)
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
    gate, _ends = gated(stand)
    gate.open()
    await stand.enqueue()
    async with stand.working():
        await stand.advance(60)
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
