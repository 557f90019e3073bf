"""The client beside a worker pool: outputs that are waited for, and ``complete_tx``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from goncordia import (
    Client,
    JobFailedError,
    JobState,
    Registry,
    StaleClaimError,
    WorkerPool,
)
from goncordia.driver import NewJob
from goncordia.errors import PayloadError
from goncordia.gontest import MockClock
from goncordia.ids import JobIds
from goncordia.job import Job, SyncJob
from goncordia.memory import MemoryDriver, MemoryTx

from .kit import Mail, Report

Outcome = dict[str, Any]


@asynccontextmanager
async def working(
    driver: MemoryDriver, registry: Registry[object], clock: MockClock
) -> AsyncIterator[None]:
    """A pool that has worked off its queues."""
    async with WorkerPool(driver, registry, queues=["default", "reports"]) as pool:
        drained = asyncio.create_task(pool.drain())
        while not drained.done():
            await clock.advance(0.1)
            await asyncio.sleep(0)
        await drained
        yield


async def test_what_a_worker_returns_is_what_wait_gives(
    client: Client[MemoryTx], driver: MemoryDriver, clock: MockClock
) -> None:
    registry = Registry()

    @registry.worker(Report)
    async def report(job: Job[Report]) -> int:
        return len(job.args.day)

    @registry.worker(Mail, max_attempts=1)
    async def mail(job: Job[Mail]) -> None:
        raise KeyError(job.args.to)

    good = await client.enqueue(Report("monday"))
    bad = await client.enqueue(Mail("ann"))
    async with working(driver, registry, clock):
        assert await client.wait(good, timeout=0) == 6
        with pytest.raises(JobFailedError, match="KeyError: 'ann'"):
            await client.wait(bad, timeout=0)


async def test_complete_tx_commits_with_the_transaction(
    client: Client[MemoryTx], driver: MemoryDriver, clock: MockClock
) -> None:
    registry = Registry()
    seen: list[JobState] = []

    @registry.worker(Mail)
    async def mail(job: Job[Mail]) -> None:
        async with driver.transaction() as tx:
            await client.enqueue_tx(tx, Report("mon"), delay=3600)
            await client.complete_tx(tx, job, {"sent": job.args.to})
            seen.append((await client.get(job)).state)

    handle = await client.enqueue(Mail("ann"))
    async with working(driver, registry, clock):
        assert await client.wait(handle, timeout=0) == {"sent": "ann"}
    assert seen == [JobState.RUNNING]
    assert await client.count(kind=Report) == 1


async def test_complete_tx_of_a_run_that_lost_its_job(
    client: Client[MemoryTx], driver: MemoryDriver, clock: MockClock
) -> None:
    registry = Registry()
    kept: list[Job[Mail]] = []

    @registry.worker(Mail)
    async def mail(job: Job[Mail]) -> None:
        kept.append(job)

    await client.enqueue(Mail("ann"))
    async with working(driver, registry, clock):
        with pytest.raises(StaleClaimError):
            async with driver.transaction() as tx:
                await client.enqueue_tx(tx, Report("mon"))
                await client.complete_tx(tx, kept[0])
    assert await client.count(kind=Report) == 0


async def test_complete_tx_in_a_thread(
    client: Client[MemoryTx], driver: MemoryDriver, clock: MockClock
) -> None:
    registry = Registry()

    @registry.worker(Mail)
    def mail(job: SyncJob[Mail]) -> None:
        with driver.sync_transaction() as tx:
            job.client.enqueue_tx(tx, Report("mon"), delay=3600)
            job.client.complete_tx(tx, job, [1])

    handle = await client.enqueue(Mail("ann"))
    async with working(driver, registry, clock):
        assert await client.wait(handle, timeout=0) == [1]
    assert await client.count(kind=Report) == 1


async def test_args_of_another_codec_are_not_read(
    client: Client[MemoryTx], driver: MemoryDriver, clock: MockClock
) -> None:
    sealed = NewJob(id=JobIds(clock)(), kind="mail", args=b"\x00", content="aes")
    await driver.executor().insert_many([sealed])
    info = await client.get(sealed.id)
    assert (info.content, info.raw_args) == ("aes", b"\x00")
    for read in (lambda: info.args, lambda: info.args_as(Mail)):
        with pytest.raises(PayloadError, match="the args are stored as 'aes'") as caught:
            read()
        assert (caught.value.kind, caught.value.job_id) == ("mail", sealed.id)
