"""The test helpers on PostgreSQL, with either library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from goncordia import Client, Job, Registry, RetryAfter, SyncClient, SyncJob
from goncordia.gontest import (
    InlineClient,
    SyncInlineClient,
    SyncTracker,
    Tracker,
    WorkerHelper,
    worker_pool,
)


@dataclass
class Pay:
    kind: ClassVar[str] = "pay"
    order: int


@dataclass
class Print:
    kind: ClassVar[str] = "print"
    order: int


registry = Registry()


@registry.worker(Pay)
async def pay(job: Job[Pay]) -> int:
    if job.attempt == 1:
        raise RetryAfter(0, "the bank is closed")
    await job.client.enqueue(Print(job.args.order), queue="paper")
    return job.attempt


@registry.worker(Print)
def print_order(job: SyncJob[Print]) -> int:
    return job.args.order


async def test_attempts_one_by_one(driver: Any) -> None:
    helper = WorkerHelper(registry, driver)
    result = await helper.work(Pay(5))
    assert (result.state, result.info.attempt) == ("retryable", 1)
    result = await helper.attempt(result.info)
    assert (result.state, result.output) == ("completed", 2)


async def test_inline_and_tracker(driver: Any) -> None:
    client = InlineClient(driver, registry)
    assert await client.wait(await client.enqueue(Pay(7)), timeout=0) == 2
    (printed,) = await Tracker(client).require_enqueued(Print, 1, queue="paper")
    assert (printed.info.state, printed.info.output) == ("completed", 7)
    with pytest.raises(AssertionError, match=r"print in 'paper', completed: Print\(order=7\)"):
        await Tracker(client).require_enqueued(Print, 2)


def test_inline_and_synchronous(make: Any) -> None:
    with make() as driver:
        driver.migrate_sync()
        client = SyncInlineClient(driver, registry)
        assert client.wait(client.enqueue(Pay(7)), timeout=0) == 2
        SyncTracker(SyncClient(driver)).require_enqueued(Print, 1, queue="paper")


async def test_a_pool(driver: Any) -> None:
    client = Client(driver)
    handle = await client.enqueue(Print(3))
    async with worker_pool(driver, registry) as pool:
        await pool.drain()
    assert await client.wait(handle, timeout=0) == 3
