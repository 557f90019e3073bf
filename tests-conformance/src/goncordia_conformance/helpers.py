"""The helpers of :mod:`goncordia.gontest` on a driver: none of them is the memory driver's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import pytest

from goncordia import Client, Job, Registry, RetryAfter, SyncClient, SyncJob
from goncordia.driver import AnyDriver
from goncordia.gontest import (
    InlineClient,
    SyncInlineClient,
    SyncTracker,
    Tracker,
    WorkerHelper,
    worker_pool,
)

__all__ = ["HelperTests", "Make", "Pay"]

Make: TypeAlias = Callable[[], AnyDriver]
"""Makes a driver on a store of the test's own, which need not be migrated."""


@dataclass
class Pay:
    """Args of a job that fails at its first attempt, and then enqueues another."""

    kind: ClassVar[str] = "pay"
    order: int


@dataclass
class _Print:
    kind: ClassVar[str] = "print"
    order: int


_registry: Registry[Any] = Registry()


@_registry.worker(Pay)
async def _pay(job: Job[Pay]) -> int:
    if job.attempt == 1:
        raise RetryAfter(3600, "the bank is closed")
    await job.client.enqueue(_Print(job.args.order), queue="paper")
    return job.attempt


@_registry.worker(_Print)
def _print_order(job: SyncJob[_Print]) -> int:
    return job.args.order


class HelperTests:
    """For a driver's own tests: subclass it where there is a fixture ``make``."""

    @pytest.mark.asyncio
    async def test_attempts_one_by_one(self, make: Make) -> None:
        """A ``WorkerHelper`` runs one attempt after the other."""
        async with make() as driver:
            await driver.migrate()
            helper = WorkerHelper(_registry, driver)
            result = await helper.work(Pay(5))
            assert (result.state, result.info.attempt) == ("retryable", 1)
            result = await helper.attempt(result.info)
            assert (result.state, result.output) == ("completed", 2)

    @pytest.mark.asyncio
    async def test_inline(self, make: Make) -> None:
        """Jobs run at once, and those that they enqueue; a ``Tracker`` finds them."""
        async with make() as driver:
            await driver.migrate()
            client = InlineClient(driver, _registry)
            assert await client.wait(await client.enqueue(Pay(7)), timeout=0) == 2
            (printed,) = await Tracker(client).require_enqueued(_Print, 1, queue="paper")
            assert (printed.info.state, printed.info.output) == ("completed", 7)
            with pytest.raises(AssertionError, match=r"print in 'paper', completed: .*order=7"):
                await Tracker(client).require_enqueued(_Print, 2)

    def test_inline_and_synchronous(self, make: Make) -> None:
        """The same from synchronous code."""
        with make() as driver:
            driver.migrate_sync()
            client = SyncInlineClient(driver, _registry)
            assert client.wait(client.enqueue(Pay(7)), timeout=0) == 2
            SyncTracker(SyncClient(driver)).require_enqueued(_Print, 1, queue="paper")

    @pytest.mark.asyncio
    async def test_a_pool(self, make: Make) -> None:
        """A pool for tests works what is there."""
        async with make() as driver:
            await driver.migrate()
            client = Client(driver)
            handle = await client.enqueue(_Print(3))
            async with worker_pool(driver, _registry) as pool:
                await pool.drain()
            assert await client.wait(handle, timeout=0) == 3
