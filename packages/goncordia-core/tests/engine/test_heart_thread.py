"""The heartbeat in its thread, in real time: threads and a blocked loop are the point."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from goncordia import Job, SyncJob, WorkerPool
from goncordia.driver import Beat
from goncordia.engine.events import JobFinished, LoopBlocked, SessionLost
from goncordia.memory.executor import MemoryHeartbeater

from .stand import Gate, Stand, Work


class Heartbeater:
    """Beats the store, and notes it."""

    def __init__(self, hospital: Hospital, inner: MemoryHeartbeater) -> None:
        self._hospital = hospital
        self._inner = inner

    def beat(self, session: UUID, lease: float, /) -> Beat:
        hospital = self._hospital
        hospital.beats.append((time.monotonic(), threading.current_thread().name))
        hospital.inside.set()
        assert hospital.may_beat.wait(10)
        if hospital.fail > 0:
            hospital.fail -= 1
            raise OSError("no connection")
        return self._inner.beat(session, lease)

    def close(self) -> None:
        self._hospital.closed += 1


class Hospital(Stand):
    """A stand in real time, that watches the heart."""

    def __init__(self) -> None:
        super().__init__(real=True)
        self.beats: list[tuple[float, str]] = []
        self.made = 0
        self.closed = 0
        self.fail = 0
        self.inside = threading.Event()
        self.may_beat = threading.Event()
        self.may_beat.set()
        vars(self.driver)["heartbeater"] = self._make

    def _make(self) -> Heartbeater:
        self.made += 1
        inner = self.memory.heartbeater()
        assert inner is not None
        return Heartbeater(self, inner)

    @asynccontextmanager
    async def alive(self, **settings: Any) -> AsyncIterator[WorkerPool]:
        async with self.pool(**settings) as pool:
            yield pool

    def hearts(self) -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name == "goncordia-heart"]


@pytest.fixture
def hospital() -> Hospital:
    return Hospital()


async def test_a_thread_beats_and_ends_with_the_pool(hospital: Hospital) -> None:
    hospital.registry.add_worker(Work, nothing)
    before = hospital.hearts()
    async with hospital.alive(lease=1, heartbeat_interval=0.02):
        await hospital.until(lambda: len(hospital.beats) >= 5)
        assert len(hospital.hearts()) == len(before) + 1
        assert hospital.wire.count("session_beat") == 0  # not from the loop
    assert {name for _, name in hospital.beats} == {"goncordia-heart"}
    assert hospital.hearts() == before
    assert hospital.closed == hospital.made
    beats = len(hospital.beats)
    await asyncio.sleep(0.1)
    assert len(hospital.beats) == beats


async def nothing(job: Job[Work]) -> None:
    """A worker."""


async def test_a_given_clock_beats_on_the_loop() -> None:
    stand = Stand()
    stand.registry.add_worker(Work, nothing)
    async with stand.working():
        await stand.advance(10)
        assert stand.wire.count("session_beat") == 2


async def test_a_pool_s_own_clock_beats_on_the_loop(hospital: Hospital) -> None:
    """The thread would wait in real time for a clock that stands still."""
    hospital.registry.add_worker(Work, nothing)
    async with hospital.working(clock=hospital.clock):
        await hospital.advance(10)
        assert (hospital.wire.count("session_beat"), hospital.beats) == (2, [])


async def test_a_handler_that_blocks_the_loop_does_not_cost_the_session(
    hospital: Hospital,
) -> None:
    during: list[tuple[float, str]] = []

    @hospital.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        before = len(hospital.beats)
        block(1.2)
        during.extend(hospital.beats[before:])

    async with hospital.alive(lease=0.5, heartbeat_interval=0.1) as pool:
        session = hospital.session(pool)
        handle = await hospital.enqueue()
        await hospital.until(lambda: hospital.seen(JobFinished))
        await hospital.until(lambda: not hospital.engine(pool).claims)
        assert (hospital.session(pool), hospital.seen(SessionLost)) == (session, [])
        assert await hospital.state(handle) == "completed"
    assert len(during) >= 4  # of twelve, on a machine that has other things to do


def block(seconds: float) -> None:
    time.sleep(seconds)


async def test_it_names_the_handler_and_the_line(
    hospital: Hospital, caplog: pytest.LogCaptureFixture
) -> None:
    @hospital.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await asyncio.sleep(0)
        block(1.8)

    async with hospital.alive():
        handle = await hospital.enqueue()
        await hospital.until(lambda: hospital.seen(LoopBlocked))
    (event,) = hospital.seen(LoopBlocked)  # once for each time
    assert (event.job_id, event.kind) == (handle.id, "work")
    assert event.where.endswith(" in block")
    assert "test_heart_thread.py:" in event.where
    assert event.seconds >= 1
    assert f"by job {handle.id} (work) at " in caplog.text


async def test_it_names_the_line_where_no_job_blocks(hospital: Hospital) -> None:
    hospital.registry.add_worker(Work, nothing)
    async with hospital.alive():
        await asyncio.sleep(0.05)
        block(1.8)
        await hospital.until(lambda: hospital.seen(LoopBlocked))
    (event,) = hospital.seen(LoopBlocked)
    assert (event.job_id, event.kind) == (None, None)
    assert event.where.endswith(" in block")


async def test_past_the_stall_limit_it_beats_no_more_until_the_loop_turns(
    hospital: Hospital, caplog: pytest.LogCaptureFixture
) -> None:
    hospital.registry.add_worker(Work, nothing)
    async with hospital.alive(lease=60, heartbeat_interval=0.05, stall_limit=0.7):
        await hospital.until(lambda: len(hospital.beats) > 2)
        block(2.2)
        during = len(hospital.beats)
        last = hospital.beats[-1][0]
        assert time.monotonic() - last > 0.8  # it fell silent long ago
        await hospital.until(lambda: len(hospital.beats) > during + 2)
    assert "no more beats, others may take the jobs" in caplog.text


async def test_a_thread_worker_does_not_block_the_loop(hospital: Hospital) -> None:
    @hospital.registry.worker(Work)
    def work(job: SyncJob[Work]) -> None:
        time.sleep(1.3)

    async with hospital.alive():
        await hospital.enqueue()
        await hospital.until(lambda: hospital.seen(JobFinished))
    assert hospital.seen(LoopBlocked) == []


async def test_a_cancel_reaches_its_handler_long_before_the_next_beat(hospital: Hospital) -> None:
    gate = Gate()

    @hospital.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    async with hospital.alive(lease=600, heartbeat_interval=100):
        handle = await hospital.enqueue()
        await hospital.until(lambda: gate.waiting)
        await hospital.client.cancel(handle)
        await hospital.until(lambda: not gate.waiting)
        await hospital.until(lambda: hospital.seen(JobFinished))
    assert await hospital.state(handle) == "cancelled"


async def test_a_cancel_that_comes_during_a_beat_is_not_forgotten(hospital: Hospital) -> None:
    """That beat may have been answered before the cancel; another one must follow."""
    gate = Gate()

    @hospital.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    async with hospital.alive(lease=600, heartbeat_interval=100) as pool:
        await hospital.enqueue()
        await hospital.until(lambda: gate.waiting)
        heart = hospital.engine(pool)._heart_thread
        assert heart is not None
        hospital.may_beat.clear()
        heart.beat_now()
        await hospital.until(hospital.inside.is_set)
        heart.beat_now()
        hospital.may_beat.set()
        await hospital.until(lambda: len(hospital.beats) == 2)
        gate.open()


async def test_a_beat_that_fails_is_made_again_soon_by_a_new_heartbeater(
    hospital: Hospital,
) -> None:
    hospital.registry.add_worker(Work, nothing)
    async with hospital.alive(lease=60, heartbeat_interval=20) as pool:
        session = hospital.session(pool)
        hospital.fail = 3
        heart = hospital.engine(pool)._heart_thread
        assert heart is not None
        heart.beat_now()
        # Within the patience of a test, not twenty seconds for each.
        await hospital.until(lambda: len(hospital.beats) >= 4)
        assert hospital.made >= 4
        assert hospital.session(pool) == session
    assert hospital.closed == hospital.made


async def test_a_session_that_was_lost_is_told_by_the_thread(hospital: Hospital) -> None:
    gate = Gate()

    @hospital.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    # No poll: it is the beat that says so.
    async with hospital.alive(lease=60, heartbeat_interval=0.1, poll_interval=1000) as pool:
        await hospital.enqueue()
        await hospital.until(lambda: gate.waiting)
        old = hospital.session(pool)
        sessions = hospital.memory.store.sessions
        for session in list(sessions.open.values()):
            sessions.end(session)
        await hospital.until(lambda: hospital.seen(SessionLost))
        assert hospital.seen(SessionLost) == [SessionLost(old, 1)]
        await hospital.until(lambda: not gate.waiting)
        await hospital.until(lambda: hospital.session(pool) != old)


async def test_the_lease_is_renewed_by_the_thread_alone(hospital: Hospital) -> None:
    """What was waiting for a slot may start in the first turn after a long block."""
    hospital.registry.add_worker(Work, nothing)
    async with hospital.alive(lease=1.5, heartbeat_interval=0.1) as pool:
        await hospital.until(lambda: len(hospital.beats) > 1)
        block(2.0)
        session = hospital.engine(pool).session
        assert session.good()


async def test_it_ends_though_the_executor_of_the_loop_is_full(hospital: Hospital) -> None:
    """Handlers that were interrupted leave their calls behind in it."""
    hospital.registry.add_worker(Work, nothing)
    loop, end = asyncio.get_running_loop(), threading.Event()
    with ThreadPoolExecutor(1) as executor:
        loop.set_default_executor(executor)
        left_behind = loop.run_in_executor(None, end.wait)
        try:
            async with asyncio.timeout(30), hospital.alive(lease=1, heartbeat_interval=0.02):
                await hospital.until(lambda: hospital.beats)
            assert hospital.closed == hospital.made
        finally:
            end.set()
        assert await left_behind
