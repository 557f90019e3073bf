"""The signal between the tasks of one loop."""

from __future__ import annotations

import asyncio

from goncordia.engine.signal import Signal
from goncordia.gontest import MockClock


async def waiters(signal: Signal, number: int) -> list[asyncio.Task[bool]]:
    tasks = [asyncio.create_task(signal.wait()) for _ in range(number)]
    await asyncio.sleep(0)
    return tasks


async def woken(tasks: list[asyncio.Task[bool]]) -> list[bool]:
    for _ in range(3):
        await asyncio.sleep(0)
    return [task.done() for task in tasks]


async def test_one_is_woken_by_each_set_in_order() -> None:
    signal = Signal(MockClock())
    tasks = await waiters(signal, 3)
    signal.set()
    assert await woken(tasks) == [True, False, False]
    signal.set()
    signal.set()
    assert await woken(tasks) == [True, True, True]


async def test_what_nobody_waits_for_is_kept_once() -> None:
    signal = Signal(MockClock())
    signal.set()
    signal.set()
    assert await signal.wait() is True
    tasks = await waiters(signal, 1)
    assert await woken(tasks) == [False]
    signal.set()
    assert await woken(tasks) == [True]


async def test_set_all_wakes_all_and_keeps_nothing_then() -> None:
    signal = Signal(MockClock())
    tasks = await waiters(signal, 3)
    signal.set_all()
    assert await woken(tasks) == [True, True, True]
    late = await waiters(signal, 1)
    assert await woken(late) == [False]
    signal.set_all()
    assert await woken(late) == [True]


async def test_set_all_without_waiters_is_kept() -> None:
    signal = Signal(MockClock())
    signal.set_all()
    assert await signal.wait() is True


async def test_the_time_is_over_first() -> None:
    clock = MockClock()
    signal = Signal(clock)
    task = asyncio.create_task(signal.wait(5))
    await clock.advance(4)
    assert not task.done()
    await clock.advance(1)
    assert task.result() is False
    # It waits no more, so it does not take a wake from others.
    other = await waiters(signal, 1)
    signal.set()
    assert await woken(other) == [True]


async def test_a_set_in_the_moment_of_giving_up_is_not_lost() -> None:
    clock = MockClock()
    signal = Signal(clock)
    clock.call_later(5, signal.set)  # planned before the waiter's own end of time
    tasks = [asyncio.create_task(signal.wait(5))]
    await clock.advance(5)
    assert tasks[0].result() is True
    clock.call_later(4, lambda: None)
    late = asyncio.create_task(signal.wait(5))
    await clock.advance(1)
    clock.call_later(4, signal.set)  # planned after it
    await clock.advance(4)
    assert late.result() is False
    assert await signal.wait() is True


async def test_a_cancelled_waiter_hands_its_wake_on() -> None:
    signal = Signal(MockClock())
    tasks = await waiters(signal, 2)
    signal.set()
    tasks[0].cancel()  # woken already, but it did not get to run
    assert await woken(tasks) == [True, True]
    assert tasks[0].cancelled()
    assert tasks[1].result() is True


async def test_a_cancelled_waiter_that_was_not_woken_takes_nothing() -> None:
    signal = Signal(MockClock())
    tasks = await waiters(signal, 2)
    tasks[0].cancel()
    assert await woken(tasks) == [True, False]
    signal.set()
    assert await woken(tasks) == [True, True]
