"""Opening happens once, whoever comes first."""

from __future__ import annotations

import asyncio

import pytest

from goncordia.driver.once import Once
from goncordia.driver.portal import Portal


async def test_those_who_come_meanwhile_wait() -> None:
    once, go, calls = Once(), asyncio.Event(), 0

    async def work() -> None:
        nonlocal calls
        calls += 1
        await go.wait()

    tasks = [asyncio.create_task(once(work)) for _ in range(5)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)
    go.set()
    await asyncio.gather(*tasks)
    await once(work)
    assert (calls, once.done) == (1, True)


async def test_a_failure_does_not_count() -> None:
    once, calls = Once(), 0

    async def work() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError("away")

    with pytest.raises(OSError, match="away"):
        await once(work)
    await once(work)
    assert calls == 2


async def test_a_cancelled_one_leaves_it_to_the_next() -> None:
    once, calls, never = Once(), 0, asyncio.Event()

    async def work() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            await never.wait()

    first = asyncio.create_task(once(work))
    await asyncio.sleep(0)
    second = asyncio.create_task(once(work))
    third = asyncio.create_task(once(work))
    await asyncio.sleep(0)
    third.cancel()
    first.cancel()
    await second
    assert calls == 2
    assert third.cancelled()


async def test_two_loops() -> None:
    once, portal, calls = Once(), Portal(), 0

    async def work() -> None:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)

    await asyncio.gather(once(work), asyncio.to_thread(portal.call, lambda: once(work)), once(work))
    portal.stop()
    assert calls == 1


async def test_undone_it_is_done_again() -> None:
    once, calls = Once(), 0

    async def work() -> None:
        nonlocal calls
        calls += 1

    await once(work)
    once.undo()
    await once(work)
    assert calls == 2
