"""The session: opened, kept, lapsed, lost, and opened anew."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest

from goncordia import Job, JobState, SyncJob
from goncordia.driver import Beat
from goncordia.engine.events import JobFinished, JobOverdue, SessionLost, SessionOpened

from .stand import Stand, Work
from .wire import away


async def test_the_session_is_kept_by_beats(stand: Stand) -> None:
    stand.gated()
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


async def test_pools_with_one_seed_have_sessions_of_their_own(stand: Stand) -> None:
    gate = stand.gated()
    async with (
        stand.working(rng=random.Random(1), concurrency=1) as one,
        stand.working(rng=random.Random(1), concurrency=1) as two,
    ):
        assert stand.session(one) != stand.session(two)
        handles = [await stand.enqueue(Work(n)) for n in range(2)]
        await stand.advance(2)
        assert gate.waiting == 2
        gate.open()
        await stand.advance(60)
        assert [await stand.state(handle) for handle in handles] == ["completed"] * 2
        stand.end_sessions()
        await stand.advance(60)
        assert stand.session(one) != stand.session(two)


async def test_lost_interrupts_what_runs_and_sends_nothing_for_it(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    gate = stand.gated()
    handles = [await stand.enqueue(Work(n)) for n in range(3)]
    async with stand.working(concurrency=2, max_pending=1) as pool:
        old = stand.session(pool)
        assert [await stand.state(handle) for handle in handles] == ["running"] * 3
        stand.end_sessions()
        stand.wire.forget()
        await stand.advance(5)  # the beat is answered: lost
        assert sorted(gate.ends) == ["interrupted 0", "interrupted 1"]
        assert gate.came == 2  # what was fetched and had not started is dropped
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
    gate = stand.gated()
    async with stand.working() as pool:
        stand.end_sessions()
        await stand.advance(5)
        gate.open()
        handle = await stand.enqueue()
        await stand.advance(1)
        row = await stand.row(handle)
        assert row.state is JobState.COMPLETED
        requests = [args[1] for args in stand.wire.given("exchange") if args[1]]
        assert requests[-1].session == stand.session(pool)


async def test_between_two_sessions_nothing_is_fetched_or_started(stand: Stand) -> None:
    gate = stand.gated()
    async with stand.working() as pool:
        slow = stand.wire.hold("session_open")
        stand.end_sessions()
        await stand.advance(5)
        assert slow.reached == 1
        stand.wire.forget()
        await stand.enqueue()
        await stand.advance(10)
        session = stand.engine(pool).session
        assert (session.is_open, session.good(), gate.came) == (False, False, 0)
        assert stand.wire.count("exchange", "held", "expire", "session_beat") == 0
        slow.let_go()
        await stand.advance(0)
        assert gate.waiting == 1
        gate.open()


async def test_the_new_session_looks_at_once() -> None:
    """Not with the next poll or the next beat."""
    stand = Stand(wakes=False)
    gate = stand.gated()
    async with stand.working(poll_interval=1000):
        await stand.advance(4.5)
        await stand.enqueue()
        stand.end_sessions()
        await stand.advance(0.4)
        assert gate.came == 0
        await stand.advance(0.1)  # the beat is told
        assert gate.waiting == 1
        gate.open()


async def test_a_fetch_is_told_too(stand: Stand) -> None:
    stand.gated()
    async with stand.working(heartbeat_interval=14) as pool:
        old = stand.session(pool)
        await stand.advance(1)
        stand.end_sessions()
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
        stand.end_sessions()
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
        stand.end_sessions()
        await stand.advance(8)
        assert [event.cause for event in stand.seen(JobOverdue)] == ["lost"]
        assert pool.running == 1  # it keeps its slot
        may_end.set()
        await stand.until(lambda: stand.seen(JobFinished))
        assert await stand.state(handle) == "running"
        assert pool.running == 0


async def test_results_on_their_way_are_still_answered(stand: Stand) -> None:
    gate = stand.gated()
    handle = await stand.enqueue()
    async with stand.working() as pool:
        hold = stand.wire.hold("exchange", only=lambda args: bool(args[0]))
        gate.open()
        await stand.advance(0)
        assert hold.reached == 1
        stand.end_sessions()
        await stand.advance(5)
        assert [event.runs for event in stand.seen(SessionLost)] == [0]
        hold.let_go()
        await stand.advance(1)
        # The claim was not taken by anybody yet, so its result still counts.
        assert await stand.state(handle) == "completed"
        assert len(stand.engine(pool).claims) == 0


async def test_results_that_wait_to_be_sent_are_over(stand: Stand) -> None:
    gate = stand.gated()
    handles = [await stand.enqueue(Work(n)) for n in range(3)]
    async with stand.working(lanes=1) as pool:
        old = stand.session(pool)
        hold = stand.wire.hold("exchange")
        other = await stand.enqueue(Work(9), queue="other")
        stand.engine(pool).lanes.look()
        await stand.advance(0)
        gate.open()
        await stand.advance(0)
        assert (hold.reached, stand.engine(pool).claims.unsent) == (1, 3)
        stand.end_sessions()
        await stand.advance(5)
        assert stand.seen(SessionLost) == [SessionLost(old, 0)]
        hold.let_go()
        await stand.advance(1)
        assert [await stand.state(handle) for handle in handles] == ["completed"] * 3
        assert await stand.state(other) == "available"


async def test_a_late_lost_of_an_old_session_is_ignored(stand: Stand) -> None:
    gate = stand.gated()
    async with stand.working() as pool:
        first = stand.session(pool)
        await stand.advance(4.5)
        stand.end_sessions()
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
        assert (stand.session(pool), gate.waiting, gate.ends) == (second, 1, [])
    assert [event.session for event in stand.seen(SessionLost)] == [first]


async def test_a_late_good_answer_about_an_old_session_renews_nothing(stand: Stand) -> None:
    stand.gated()
    async with stand.working(lease=30) as pool:
        session = stand.engine(pool).session
        first, until = session.id, session.good_until
        stand.end_sessions()
        await stand.advance(6)
        until = session.good_until
        session.renewed(first, 1000.0)
        await session.beaten(first, 1000.0, Beat(held=True))
        assert session.good_until == until


async def test_jobs_of_a_late_fetch_of_an_old_session_are_not_run(stand: Stand) -> None:
    gate = stand.gated()
    late = stand.wire.hold("exchange", after=True, only=lambda args: args[1] is not None)
    handle = await stand.enqueue()
    async with stand.working(lanes=1) as pool:
        assert (late.reached, await stand.state(handle)) == (1, "running")
        first = stand.session(pool)
        stand.end_sessions()
        await stand.advance(5)
        assert stand.session(pool) != first
        late.let_go()
        await stand.advance(5)
        assert gate.came == 0
        assert len(stand.engine(pool).claims) == 0


async def test_an_id_is_asked_for_once(stand: Stand) -> None:
    """Whether the first open took effect is not known; asked again, it could end a live session."""
    stand.gated()
    stand.wire.fail("session_open", away(), after=True, times=3)
    async with stand.working() as pool:
        await stand.advance(5)
        ids = [args[0] for args in stand.wire.given("session_open")]
        assert len(ids) == len(set(ids)) == 4
        assert stand.session(pool) == ids[-1]
