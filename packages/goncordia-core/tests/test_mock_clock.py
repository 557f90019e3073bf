"""``MockClock``: nothing moves but by ``advance``, and then in order."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from goncordia.clock import Timer
from goncordia.errors import ConfigurationError
from goncordia.gontest import MockClock

RunLoop = Callable[[Coroutine[Any, Any, Any]], Any]


def loops() -> list[Any]:
    runners: list[Any] = [pytest.param(asyncio.run, id="asyncio")]
    try:
        import uvloop
    except ImportError:
        return runners
    return [*runners, pytest.param(uvloop.run, id="uvloop")]


@pytest.fixture(params=loops())
def run(request: pytest.FixtureRequest) -> RunLoop:
    runner: RunLoop = request.param
    return runner


def test_sleepers_wake_in_order_of_time_on_any_loop(run: RunLoop) -> None:
    async def main() -> list[tuple[str, float]]:
        clock = MockClock()
        log: list[tuple[str, float]] = []

        async def sleeper(name: str, seconds: float) -> None:
            for _ in range(3):
                await clock.sleep(seconds)
                log.append((name, clock.monotonic()))

        tasks = [asyncio.create_task(sleeper(*each)) for each in [("a", 1), ("b", 1), ("c", 0.7)]]
        await clock.advance(10)
        assert all(task.done() for task in tasks)
        assert clock.monotonic() == 10
        return log

    assert run(main()) == [
        ("c", 0.7),
        ("a", 1.0),
        ("b", 1.0),
        ("c", 1.4),
        ("a", 2.0),
        ("b", 2.0),
        ("c", 2.1),
        ("a", 3.0),
        ("b", 3.0),
    ]


def test_the_loop_settles_between_timers(run: RunLoop) -> None:
    """What one timer sets off, through many turns of the loop, is done before the next."""

    async def main() -> list[str]:
        clock = MockClock()
        log: list[str] = []

        async def deep(turns: int) -> None:
            for _ in range(turns):
                await asyncio.sleep(0)
            log.append(f"done at {clock.monotonic()}")

        tasks: list[asyncio.Task[None]] = []
        clock.call_later(1, lambda: tasks.append(asyncio.create_task(deep(40))))
        clock.call_later(2, lambda: log.append("second"))
        await clock.advance(2)
        return log

    assert run(main()) == ["done at 1.0", "second"]


async def test_a_busy_task_does_not_hold_up_advance() -> None:
    clock = MockClock()

    async def busy() -> None:
        while True:  # noqa: ASYNC110 - a busy task is what is tested
            await asyncio.sleep(0)

    task = asyncio.create_task(busy())
    await clock.advance(1)
    task.cancel()
    assert clock.monotonic() == 1


async def test_time_stands_still_without_advance() -> None:
    clock = MockClock()
    task = asyncio.create_task(clock.sleep(0.001))
    await clock.settle()
    assert not task.done()
    assert clock.monotonic() == 0
    assert clock.now() == datetime(2026, 1, 1, tzinfo=UTC)
    await clock.advance(0.001)
    assert task.done()


async def test_a_timer_fires_at_its_time_and_not_before() -> None:
    clock = MockClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.advance(4.999)
    assert not task.done()
    await clock.advance(0.001)
    assert task.done()


async def test_times_add_up_exactly() -> None:
    clock = MockClock()
    task = asyncio.create_task(clock.sleep(1))
    for _ in range(10):
        await clock.advance(0.1)
    assert task.done()
    assert clock.monotonic() == 1.0
    assert clock.now() == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)


async def test_advance_takes_a_timedelta() -> None:
    clock = MockClock()
    await clock.advance(timedelta(minutes=1, microseconds=1))
    assert clock.monotonic() == 60.000001
    assert clock.now() == datetime(2026, 1, 1, 0, 1, 0, 1, tzinfo=UTC)


async def test_a_cancelled_timer_is_not_called() -> None:
    clock = MockClock()
    called: list[str] = []
    first = clock.call_later(1, lambda: called.append("first"))
    clock.call_later(1, lambda: called.append("second"))
    first.cancel()
    await clock.advance(1)
    assert called == ["second"]


async def test_a_timer_cancelled_by_one_of_the_same_time_is_not_called() -> None:
    clock = MockClock()
    called: list[str] = []
    timers: list[Timer] = []

    def cancel_second() -> None:
        timers[0].cancel()

    clock.call_later(1, cancel_second)
    timers.append(clock.call_later(1, lambda: called.append("second")))
    await clock.advance(1)
    assert called == []


async def test_a_cancelled_sleep_leaves_no_timer() -> None:
    clock = MockClock()
    task = asyncio.create_task(clock.sleep(1))
    await clock.settle()
    task.cancel()
    await clock.advance(2)
    assert task.cancelled()


async def test_timers_for_now_and_the_past_wait_for_advance_too() -> None:
    clock = MockClock()
    called: list[float] = []
    clock.call_later(0, lambda: called.append(0))
    clock.call_later(-1, lambda: called.append(-1))
    await clock.settle()
    assert called == []
    await clock.advance(0)
    assert called == [0, -1]


async def test_an_infinite_wait_never_ends() -> None:
    clock = MockClock()
    task = asyncio.create_task(clock.sleep(math.inf))
    await clock.advance(1e9)
    assert not task.done()
    task.cancel()


async def test_an_error_in_a_callback_goes_to_the_loop_as_with_real_timers() -> None:
    clock = MockClock()
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    def fail() -> None:
        raise ValueError("from a timer")

    clock.call_later(1, fail)
    await clock.advance(2)
    assert clock.monotonic() == 2
    assert [str(context["exception"]) for context in reported] == ["from a timer"]


async def test_a_callback_runs_in_the_context_that_planned_it() -> None:
    clock = MockClock()
    name: ContextVar[str] = ContextVar("name", default="none")
    seen: list[str] = []
    name.set("planner")
    clock.call_later(1, lambda: seen.append(name.get()))
    name.set("advancer")
    await clock.advance(1)
    assert seen == ["planner"]


async def test_a_timer_of_another_loop_is_called_there() -> None:
    clock = MockClock()
    planned, called = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    async def other() -> None:
        done = asyncio.Event()

        def fire() -> None:
            threads.append(threading.current_thread())
            done.set()

        clock.call_later(1, fire)
        planned.set()
        await done.wait()
        called.set()

    thread = threading.Thread(target=lambda: asyncio.run(other()))
    thread.start()
    await asyncio.to_thread(planned.wait, 10)
    await clock.advance(1)
    assert await asyncio.to_thread(called.wait, 10)
    thread.join()
    assert threads == [thread]


async def test_a_timer_of_a_closed_loop_is_dropped() -> None:
    clock = MockClock()

    async def plan() -> None:
        clock.call_later(1, lambda: pytest.fail("called on a closed loop"))

    thread = threading.Thread(target=lambda: asyncio.run(plan()))
    thread.start()
    thread.join()
    await clock.advance(2)
    assert clock.monotonic() == 2


async def test_set_steps_the_wall_time_only() -> None:
    clock = MockClock(datetime(2026, 6, 1, tzinfo=UTC))
    called: list[str] = []
    clock.call_later(10, lambda: called.append("timer"))
    await clock.advance(5)
    clock.set(datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))))
    await clock.settle()
    assert clock.now() == datetime(2030, 1, 1, 10, tzinfo=UTC)
    assert clock.now().tzinfo is UTC
    assert clock.monotonic() == 5
    assert called == []
    await clock.advance(5)
    assert clock.now() == datetime(2030, 1, 1, 10, 0, 5, tzinfo=UTC)
    assert called == ["timer"]
    clock.set(datetime(2020, 1, 1, tzinfo=UTC))
    assert clock.now() == datetime(2020, 1, 1, tzinfo=UTC)


def test_a_start_in_another_zone_becomes_utc() -> None:
    clock = MockClock(datetime(2026, 6, 1, 2, tzinfo=timezone(timedelta(hours=2))))
    assert clock.now() == datetime(2026, 6, 1, tzinfo=UTC)
    assert clock.now().tzinfo is UTC


def test_naive_times_are_refused() -> None:
    naive = datetime(2026, 6, 1)  # noqa: DTZ001 - what is tested
    with pytest.raises(ConfigurationError, match=r"^start: .*naive"):
        MockClock(naive)
    with pytest.raises(ConfigurationError, match=r"^when: .*naive"):
        MockClock().set(naive)


@pytest.mark.parametrize("seconds", [-1, -0.001, math.inf, math.nan, timedelta(seconds=-1)])
async def test_advance_refuses_what_is_no_step_forward(seconds: float | timedelta) -> None:
    clock = MockClock()
    with pytest.raises(ConfigurationError, match=r"^seconds: .* is not a number of seconds"):
        await clock.advance(seconds)
    assert clock.monotonic() == 0


async def test_the_monotonic_clock_does_not_go_back_under_two_advances_at_once() -> None:
    clock = MockClock()
    await asyncio.gather(clock.advance(5), clock.advance(3))
    assert clock.monotonic() == 5


async def test_the_shortest_sleep_takes_time() -> None:
    clock = MockClock()
    end = clock.monotonic() + 1e-12

    async def wait_for_the_end() -> None:
        while clock.monotonic() < end:
            await clock.sleep(end - clock.monotonic())

    task = asyncio.create_task(wait_for_the_end())
    await clock.advance(0.1)
    assert task.done()
