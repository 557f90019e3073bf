"""Draining: waiting until there is nothing left to wait for."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from goncordia import ConfigurationError, DriverUnavailableError, GoncordiaError, Job, Registry
from goncordia.driver import BaseExecutor, FetchRequest, JobRow, QueueFetch
from goncordia.ids import new_session_id
from goncordia.memory import MemoryDriver

from .kit import Kit, Other, Work


async def claimed_by_another(kit: Kit, queue: str = "default") -> JobRow:
    """The next job is running in a pool that is not ours."""
    executor, session = kit.driver.executor(), new_session_id()
    await executor.session_open(session, "another", 30)
    request = FetchRequest(session, 1, 1, (QueueFetch(queue, 1),), "another")
    (row,) = (await executor.fetch(request)).jobs
    return row


async def test_an_empty_queue_is_drained(kit: Kit) -> None:
    async with kit.pool() as pool:
        assert await kit.over(pool.drain(), 0)


async def test_it_waits_for_all_that_is_due(kit: Kit) -> None:
    for n in range(200):
        await kit.client.enqueue(Work(n))
    async with kit.pool() as pool:
        await kit.finish(pool.drain())
        assert sorted(kit.done) == list(range(200))
        assert set(await kit.states()) == {"completed"}


async def test_it_waits_for_what_runs(kit: Kit) -> None:
    kit.gate.clear()
    await kit.client.enqueue(Work(1))
    async with kit.pool() as pool:
        draining = asyncio.create_task(pool.drain())
        await kit.clock.advance(60)
        assert not draining.done()
        kit.gate.set()
        await kit.clock.advance(0)
        assert draining.done()


async def test_the_pool_goes_on_afterwards(kit: Kit) -> None:
    async with kit.pool() as pool:
        await kit.finish(pool.drain())
        await kit.client.enqueue(Work(1))
        await kit.finish(pool.drain())
        assert kit.done == [1]


async def test_jobs_due_later_do_not_count(kit: Kit) -> None:
    await kit.client.enqueue(Work(1), delay=60)
    async with kit.pool() as pool:
        assert await kit.over(pool.drain(), 0)
    assert kit.done == []


async def test_within_counts_those_due_soon(kit: Kit) -> None:
    await kit.client.enqueue(Work(1), delay=60)
    await kit.client.enqueue(Work(2), delay=200)
    async with kit.pool() as pool:
        draining = asyncio.create_task(pool.drain(within=timedelta(seconds=90)))
        await kit.clock.advance(59)
        assert not draining.done()
        await kit.clock.advance(2)
        assert draining.done()
        assert kit.done == [1]
        assert await kit.over(pool.drain(within=90), 0)


async def test_within_counts_retries(kit: Kit) -> None:
    kit.fail_first = True
    await kit.client.enqueue(Work(1))
    async with kit.pool() as pool:
        assert await kit.over(pool.drain(), 1)
        assert (kit.done, await kit.states()) == ([], ["retryable"])
        assert await kit.over(pool.drain(within=10), 6)
        assert kit.done == [1]


async def test_jobs_that_enqueue_jobs_are_followed(kit: Kit) -> None:
    registry: Registry[Any] = Registry()
    seen: list[int] = []

    @registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        seen.append(job.args.n)
        if job.args.n:
            await job.client.enqueue(Work(job.args.n - 1))

    await kit.client.enqueue(Work(50))
    async with kit.pool(registry=registry) as pool:
        await kit.finish(pool.drain(), within=60)
    assert seen == list(range(50, -1, -1))


# ---------------------------------------------------------------- what counts


async def test_another_pool_s_running_job_counts(kit: Kit) -> None:
    await kit.client.enqueue(Work(1))
    await claimed_by_another(kit)
    async with kit.pool() as pool:
        draining = asyncio.create_task(pool.drain())
        await kit.clock.advance(28)
        assert not draining.done()
        # It never beats again: its job is rescued, retried after five seconds, and not waited for.
        await kit.clock.advance(30)
        assert draining.done()


async def test_another_pool_s_running_job_counts_until_it_ends(kit: Kit) -> None:
    kit.gate.clear()
    await kit.client.enqueue(Work(1))
    async with kit.pool() as first:
        await kit.clock.advance(1)
        assert first.running == 1
        async with kit.pool() as second:
            draining = asyncio.create_task(second.drain())
            await kit.clock.advance(60)
            assert not draining.done()
            kit.gate.set()
            await kit.clock.advance(2)
            assert draining.done()


async def test_unknown_kinds_do_not_count(kit: Kit) -> None:
    await kit.client.enqueue(Other(1))
    await kit.client.enqueue(Work(1))
    async with kit.pool() as pool:
        assert await kit.over(pool.drain(within=60), 2)
    assert kit.done == [1]


async def test_other_queues_do_not_count(kit: Kit) -> None:
    await kit.client.enqueue(Work(1), queue="others")
    async with kit.pool() as pool:
        assert await kit.over(pool.drain(within=60), 0)


@pytest.mark.parametrize("delay", [0, 3])
async def test_jobs_of_newer_code_do_not_count(kit: Kit, delay: float) -> None:
    """They are given back every five seconds, for as long as there is no newer pool."""
    for n in range(5):
        await kit.client.enqueue(Work(n), payload_version=2, delay=delay + n)
    await kit.client.enqueue(Work(9), delay=4)
    async with kit.pool() as pool:
        assert await kit.over(pool.drain(within=60), 10)
    assert kit.done == [9]


@pytest.mark.parametrize("within", [0, 100])
async def test_what_waits_in_a_paused_queue_does_not_count(kit: Kit, within: float) -> None:
    """Nobody would run it, however long one waits."""
    await kit.client.queue_pause("paused")
    for n in range(30):
        await kit.client.enqueue(Work(n), queue="paused")
    await kit.client.enqueue(Work(50), queue="paused", delay=50)
    await kit.client.enqueue(Work(99))
    async with kit.pool(queues=["paused", "default"]) as pool:
        assert await kit.over(pool.drain(within=within), 2)
        assert kit.done == [99]
        await kit.client.queue_resume("paused")
        await kit.finish(pool.drain(), within=10)
        assert len(kit.done) == 31


async def test_what_runs_of_a_paused_queue_counts(kit: Kit) -> None:
    kit.gate.clear()
    await kit.client.enqueue(Work(1))
    async with kit.pool() as pool:
        await kit.clock.advance(1)
        await kit.client.queue_pause("default")
        draining = asyncio.create_task(pool.drain())
        await kit.clock.advance(10)
        assert not draining.done()
        kit.gate.set()
        await kit.clock.advance(1)
        assert draining.done()


async def test_a_group_is_drained_one_after_the_other(kit: Kit) -> None:
    for n in range(20):
        await kit.client.enqueue(Work(n), pipeline_id="p")
    async with kit.pool() as pool:
        await kit.finish(pool.drain(), within=10)
    assert kit.done == list(range(20))


# ---------------------------------------------------------------- what goes wrong


class Flaky(MemoryDriver):
    """Lists fail while it is away."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit.clock)
        self.away = False

    def executor(self) -> BaseExecutor:
        inner, outer = super().executor(), self

        class Proxy:
            def __getattr__(self, name: str) -> Any:
                if outer.away:
                    raise DriverUnavailableError("away")
                return getattr(inner, name)

        proxy: Any = Proxy()
        executor: BaseExecutor = proxy
        return executor


async def test_an_outage_is_waited_out(kit: Kit) -> None:
    driver = Flaky(kit)
    async with kit.pool(driver=driver) as pool:
        driver.away = True
        draining = asyncio.create_task(pool.drain())
        await kit.clock.advance(120)
        assert not draining.done()
        driver.away = False
        await kit.clock.advance(3)
        assert draining.done()


async def test_the_pool_must_be_started(kit: Kit) -> None:
    pool = kit.pool()
    with pytest.raises(ConfigurationError, match=r"WorkerPool\.drain: start the pool first"):
        await pool.drain()
    async with pool:
        pass
    with pytest.raises(ConfigurationError, match=r"WorkerPool\.drain: start the pool first"):
        await pool.drain()


@pytest.mark.parametrize("within", [-1, float("nan"), "soon", None])
async def test_within_is_checked(kit: Kit, within: Any) -> None:
    async with kit.pool() as pool:
        with pytest.raises(ConfigurationError, match="within"):
            await pool.drain(within)


async def test_a_drain_ends_with_its_pool(kit: Kit) -> None:
    kit.gate.clear()
    await kit.client.enqueue(Work(1))
    pool = kit.pool(shutdown_timeout=5)
    await pool.start()
    draining = asyncio.create_task(pool.drain())
    await kit.clock.advance(2)
    await kit.finish(pool.stop())
    await kit.clock.advance(2)
    assert draining.done()
    with pytest.raises(GoncordiaError, match="stopped before it was done"):
        draining.result()


async def test_a_drain_does_not_hold_up_a_stop(kit: Kit) -> None:
    """Both wait for the same handler to end; each is told."""
    kit.gate.clear()
    await kit.client.enqueue(Work(1))
    pool = kit.pool(shutdown_timeout=100)
    await pool.start()
    await kit.clock.advance(0)
    drains = [asyncio.create_task(pool.drain()) for _ in range(3)]
    stopping = asyncio.create_task(pool.stop())
    await kit.clock.advance(0)
    kit.gate.set()
    await kit.clock.advance(0)
    assert stopping.done()
    await asyncio.wait(drains)


async def test_several_drains_at_once(kit: Kit) -> None:
    for n in range(20):
        await kit.client.enqueue(Work(n))
    async with kit.pool() as pool:
        await kit.finish(asyncio.gather(*[pool.drain() for _ in range(5)]), within=10)
    assert len(kit.done) == 20
