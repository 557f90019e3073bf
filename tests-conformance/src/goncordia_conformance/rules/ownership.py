"""Rule 12: a driver closes what it opened, and nothing that was passed in."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest

from goncordia.driver import AnyDriver, ListFilter
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, MakeDriver
from goncordia_conformance.marks import not_proved

__all__ = ["Borrowed", "OwnershipTests"]

Borrowed: TypeAlias = tuple[AnyDriver, Callable[[], Awaitable[bool]]]
"""A driver that was given its connection or pool, and what tells whether that works as before."""


class OwnershipTests(Conformance, rule=12):
    """Opening, closing, and what is left behind."""

    @pytest.fixture
    def borrowed(self) -> Borrowed:
        """For the driver's author, where connections can be passed in: see :data:`Borrowed`."""
        not_proved("what was passed in stays open", "no fixture borrowed")

    async def test_closing_twice_is_harmless(self, lab: Lab) -> None:
        driver = await lab.another_driver()
        await driver.aclose()
        await driver.aclose()

    async def test_closing_what_was_never_opened_is_harmless(self, make_driver: MakeDriver) -> None:
        await make_driver().aclose()

    async def test_it_can_be_opened_again(self, lab: Lab) -> None:
        job_id = await lab.add()
        await lab.driver.aclose()
        await lab.driver.ready()
        (row,) = await lab.driver.executor().get_many([job_id])
        assert row is not None
        assert row.id == job_id

    async def test_as_a_context(self, lab: Lab) -> None:
        job_id = await lab.add()
        async with lab.unopened_driver() as driver:
            (row,) = await driver.executor().get_many([job_id])
            assert row is not None

    async def test_closing_one_leaves_the_others(self, lab: Lab) -> None:
        other = await lab.another_driver()
        await other.executor().count(ListFilter())
        await other.aclose()
        await lab.add()

    async def test_nothing_is_left_behind(self, lab: Lab) -> None:
        def threads() -> set[threading.Thread]:
            return {thread for thread in threading.enumerate() if thread.is_alive()}

        threads_before, tasks_before = threads(), asyncio.all_tasks()
        driver = lab.unopened_driver()
        await driver.ready()
        executor = driver.executor()
        await executor.insert_many([lab.job()])
        await executor.count(ListFilter())
        await driver.aclose()
        assert asyncio.all_tasks() <= tasks_before
        for _ in range(500):  # a thread that was told to end may take a moment
            if threads() <= threads_before:
                break
            await asyncio.sleep(0.01)
        assert threads() <= threads_before
        del driver, executor
        gc.collect()  # what was not closed warns when it is collected

    async def test_what_was_passed_in_stays_open(self, borrowed: Borrowed) -> None:
        driver, works = borrowed
        await driver.migrate()
        await driver.ready()
        await driver.executor().count(ListFilter())
        await driver.aclose()
        assert await works()
