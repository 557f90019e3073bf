"""A coroutine that one begins and another awaits."""

from __future__ import annotations

import asyncio

import pytest

from goncordia.driver.begun import Begun


async def test_its_first_step_is_made_at_once_and_the_others_when_it_is_awaited() -> None:
    steps: list[int] = []

    async def work() -> str:
        for step in range(3):
            steps.append(step)
            await asyncio.sleep(0)
        return "done"

    begun = Begun(work())
    assert steps == [0]
    await asyncio.sleep(0)
    assert steps == [0]
    assert await begun == "done"
    assert steps == [0, 1, 2]


@pytest.mark.parametrize("is_early", [True, False])
async def test_what_it_waits_for(is_early: bool) -> None:
    waits_for: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def work() -> str:
        return await waits_for

    begun = Begun(work())
    if is_early:
        waits_for.set_result("early")
        assert await begun == "early"
    else:
        asyncio.get_running_loop().call_soon(waits_for.set_result, "late")
        assert await begun == "late"


async def test_it_ends_in_its_first_step() -> None:
    async def work() -> str:
        return "done"

    assert await Begun(work()) == "done"


@pytest.mark.parametrize("steps", [0, 1, 2])
async def test_it_fails(steps: int) -> None:
    async def work() -> None:
        for _ in range(steps):
            await asyncio.sleep(0)
        raise ZeroDivisionError

    begun = Begun(work())
    with pytest.raises(ZeroDivisionError):
        await begun


async def test_it_is_cancelled_where_it_waits() -> None:
    ends: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    begun = Begun(work())

    async def wait() -> None:
        await begun

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ends == ["cancelled"]


async def test_it_goes_on_after_a_cancellation_that_it_catches() -> None:
    async def work() -> str:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "done"

    begun = Begun(work())

    async def wait() -> str:
        return await begun

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "done"


async def test_nobody_awaits_it() -> None:
    ends: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ends.append("closed")

    begun = Begun(work())
    begun.close()
    assert ends == ["closed"]
