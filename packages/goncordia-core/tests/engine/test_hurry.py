"""A fetch that is sent where the wake is heard, by a driver that can do that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import CORO_CLOSED, getcoroutinestate
from typing import Any

import pytest

from goncordia import WorkerPool
from goncordia.driver import FetchRequest, Finish, JobState, Wake
from goncordia.driver.begun import Begun

from .stand import Stand

DUE = Wake("jobs", "default", 0.0)


def hasten(stand: Stand, can: Callable[[], bool] = lambda: True) -> list[FetchRequest]:
    """Let the driver begin, while it can; the requests that were begun."""
    executor = stand.driver.executor()
    begun: list[FetchRequest] = []

    def begin(finishes: Sequence[Finish], request: FetchRequest) -> Begun[Any] | None:
        assert not finishes
        if not can():
            return None
        begun.append(request)
        return Begun(executor.exchange(finishes, request))

    vars(executor).update(begins=True, begin_exchange=begin)
    return begun


def fetches(stand: Stand) -> int:
    return sum(request is not None for _, request in stand.wire.given("exchange"))


async def states(stand: Stand, *ids: Any) -> list[JobState]:
    rows = await stand.memory.executor().get_many(ids)
    return [row.state for row in rows if row is not None]


def woken(stand: Stand, pool: WorkerPool, wake: Wake = DUE) -> None:
    stand.engine(pool)._woken(wake)


async def test_it_is_sent_before_anything_else_happens() -> None:
    stand = Stand(wakes=False)
    begun, gate = hasten(stand), stand.gated()
    async with stand.working(poll_interval=1000) as pool:
        await stand.advance(1)
        await stand.enqueue()
        before = fetches(stand)
        woken(stand, pool)
        assert (fetches(stand), len(begun)) == (before + 1, 1)
        assert stand.engine(pool).lanes.in_flight == {(begun[0].session, begun[0].fetch_no)}
        await stand.advance(0)
        assert (gate.came, fetches(stand)) == (1, before + 1)
        gate.open()


@pytest.mark.parametrize("batch", [2, 100])
async def test_wakes_that_come_together_begin_one(batch: int) -> None:
    """Nothing is fetched into the same room, nor is a fetch forgotten for another."""
    stand = Stand(wakes=False, max_batch=batch)
    begun, gate = hasten(stand), stand.gated()
    async with stand.working(poll_interval=1000, concurrency=4, max_pending=0) as pool:
        await stand.advance(1)
        for _ in range(5):
            await stand.enqueue()
        for _ in range(3):
            woken(stand, pool)
        assert [request.limit for request in begun] == [min(batch, 4)]
        await stand.advance(0)
        assert len(stand.engine(pool).claims) == 4
        gate.open()


@pytest.mark.parametrize(
    "wake", [Wake("jobs", "default", 5.0), Wake("jobs", "another", 0.0), Wake("gap")]
)
async def test_only_for_jobs_that_are_due(wake: Wake) -> None:
    stand = Stand(wakes=False)
    begun, _ = hasten(stand), stand.gated()
    async with stand.working(poll_interval=1000) as pool:
        await stand.advance(1)
        woken(stand, pool, wake)
        assert begun == []


async def test_where_nothing_can_be_begun_a_lane_sends_it() -> None:
    stand = Stand(wakes=False)
    begun, gate = hasten(stand, lambda: False), stand.gated()
    async with stand.working(poll_interval=1000) as pool:
        await stand.advance(1)
        await stand.enqueue()
        woken(stand, pool)
        await stand.advance(0)
        assert (gate.came, begun) == (1, [])
        gate.open()


@pytest.mark.parametrize("after", [True, False])
async def test_it_fails(after: bool) -> None:
    """Whether it was applied or not, the job runs once."""
    stand = Stand(wakes=False)
    begun, gate = hasten(stand), stand.gated()
    gate.open()
    async with stand.working(poll_interval=5) as pool:
        await stand.advance(1)
        job = await stand.enqueue()
        stand.wire.fail("exchange", after=after)
        woken(stand, pool)
        assert len(begun) == 1
        await stand.advance(120)
        assert await states(stand, job.id) == [JobState.COMPLETED]
        assert gate.ends == ["returned 0"]


async def test_the_pool_ends_before_a_lane_has_taken_it() -> None:
    stand = Stand(wakes=False)
    begun, _ = hasten(stand), stand.gated()
    async with stand.working(poll_interval=1000) as pool:
        await stand.advance(1)
        hold = stand.wire.hold("exchange")
        woken(stand, pool)
        assert len(begun) == 1
        engine = stand.engine(pool)
        flight = engine.lanes._begun
        assert flight is not None
        assert flight.answer is not None
        await engine._end()
        assert getcoroutinestate(flight.answer._coroutine) == CORO_CLOSED
        assert (engine.lanes.in_flight, engine.lanes._reserved) == (set(), 0)
        hold.let_go()


async def test_a_pool_that_stops_begins_nothing() -> None:
    stand = Stand(wakes=False)
    begun, gate = hasten(stand), stand.gated()
    async with stand.working(poll_interval=1000) as pool:
        await stand.advance(1)
        await stand.enqueue()
        woken(stand, pool)
        engine = stand.engine(pool)
        gate.open()
    assert engine.lanes.in_flight == set()
    engine._woken(DUE)
    assert len(begun) == 1
