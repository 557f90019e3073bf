"""The real clock, and the sleep that every clock has."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from goncordia import clock as clock_module
from goncordia.clock import Clock, SystemClock


class Planned:
    """A timer that is called when the test says so."""

    def __init__(self, seconds: float, callback: Callable[[], object]) -> None:
        self.seconds = seconds
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class PlannedClock(Clock):
    """The least that a clock must have."""

    def __init__(self) -> None:
        self.timers: list[Planned] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    def call_later(self, seconds: float, callback: Callable[[], object], /) -> Planned:
        self.timers.append(Planned(seconds, callback))
        return self.timers[-1]


def test_now_is_the_wall_time_in_utc() -> None:
    before = datetime.now(UTC)
    now = SystemClock().now()
    assert now.tzinfo is UTC
    assert before <= now <= before + timedelta(minutes=1)


def test_monotonic_runs_through_a_suspend_where_the_system_can() -> None:
    clock = SystemClock()
    if hasattr(time, "CLOCK_BOOTTIME"):
        assert clock.monotonic() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=60)
    assert clock.monotonic() <= clock.monotonic()


def test_monotonic_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "_BOOTTIME", None)
    assert SystemClock().monotonic() == pytest.approx(time.monotonic(), abs=60)


async def test_call_later_calls_on_the_running_loop() -> None:
    clock, called = SystemClock(), asyncio.Event()
    clock.call_later(0, lambda: pytest.fail("it was cancelled")).cancel()
    timer = clock.call_later(0, called.set)
    await called.wait()
    timer.cancel()


async def test_sleep_ends_when_its_timer_is_called() -> None:
    clock = PlannedClock()
    task = asyncio.create_task(clock.sleep(5))
    await asyncio.sleep(0)
    (timer,) = clock.timers
    assert timer.seconds == 5
    timer.callback()
    await task
    timer.callback()


async def test_a_cancelled_sleep_cancels_its_timer() -> None:
    clock = PlannedClock()
    task = asyncio.create_task(clock.sleep(5))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (timer,) = clock.timers
    assert timer.cancelled
    timer.callback()
