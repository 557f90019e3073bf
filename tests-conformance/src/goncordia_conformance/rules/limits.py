"""Limits over several pools: no token is given twice, and no slot goes with the pool that held it.

Only what never depends on a machine's speed is asked for: how many starts there were at most tokens
for, and that everything is done in the end.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from itertools import accumulate
from typing import Any, Literal
from uuid import UUID

import pytest

from goncordia import Client, Job, QueuePolicy, RateLimit
from goncordia.driver import Finish, JobState
from goncordia.engine.events import Event, JobGivenBack
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, claim_of, still_busy, until
from goncordia_conformance.marks import needs, rule
from goncordia_conformance.processes import Worker, start_workers
from goncordia_conformance.workload import Work, pool

__all__ = ["LimitTests"]

TICK = 0.05
POOLS = 3
DAY = timedelta(days=1)
"""Of rates whose tokens do not come again while a test runs."""

CALM = 20.0
"""A lease so long that no call counts as lost on a busy machine."""

LEASE = 3.0
"""Of pools that are killed."""


def key_of(job: Job[Any]) -> str:
    """The key of a limit by key."""
    key: str = job.meta["key"]
    return key


async def _completed(lab: Lab, jobs: int) -> None:
    """Wait until so many jobs are completed."""

    async def all_are() -> bool:
        return await lab.count(JobState.COMPLETED) >= jobs

    await until(all_are)


async def _enqueue(client: Client[Any], numbers: range, **options: Any) -> list[UUID]:
    done = await client.enqueue_many([Work(n) for n in numbers], atomic=False, **options)
    return [handle.id for handle in done.handles]


class LimitTests(Conformance, rule="whole"):
    """What several pools may do together."""

    async def _pools(
        self, lab: Lab, handler: Callable[[Job[Work]], Any], stack: AsyncExitStack, **settings: Any
    ) -> None:
        for _ in range(POOLS):
            driver = await lab.another_driver()
            await stack.enter_async_context(pool(driver, handler, lease=CALM, **settings))

    @pytest.mark.parametrize("algorithm", ["gcra", "fixed_window"])
    @rule("whole", "records")
    async def test_pools_share_a_rate(
        self, live_lab: Lab, algorithm: Literal["gcra", "fixed_window"]
    ) -> None:
        rate = RateLimit(20, per=DAY, scope="global", algorithm=algorithm)
        starts: list[UUID] = []

        async def note(job: Job[Work]) -> None:
            starts.append(job.id)

        async def many() -> bool:
            return len(starts) >= 10

        await _enqueue(Client(live_lab.driver), range(60))
        began = await live_lab.now()
        async with AsyncExitStack() as stack:
            policies = {"default": QueuePolicy(rate=rate)}
            await self._pools(live_lab, note, stack, queue_policies=policies)
            await until(many)
            await asyncio.sleep(0.5)  # for as many looks as it takes to find more tokens
        midnights = ((await live_lab.now()).date() - began.date()).days
        most = 20 * (1 + midnights) if algorithm == "fixed_window" else 20
        assert len(starts) <= most, "a token was given twice"
        assert len(set(starts)) == len(starts)

    @rule("whole", "records", "states")
    async def test_pools_share_a_rate_by_key(self, live_lab: Lab) -> None:
        rate = RateLimit(1, per=DAY, scope="global", key=key_of)
        starts: Counter[str] = Counter()
        given_back: list[Event] = []

        async def note(job: Job[Work]) -> None:
            starts[key_of(job)] += 1

        def observe(event: Event) -> None:
            if isinstance(event, JobGivenBack):
                given_back.append(event)

        client = Client(live_lab.driver)
        ids: list[UUID] = []
        for key in "abcde":
            ids += await _enqueue(client, range(4), meta={"key": key})
        began = await live_lab.now()
        async with AsyncExitStack() as stack:
            policies = {"default": QueuePolicy(rate=rate)}
            settings = {"queue_policies": policies, "observer": observe}
            await self._pools(live_lab, note, stack, **settings)
            while await live_lab.count(JobState.AVAILABLE, JobState.RUNNING):
                assert len(given_back) < 200, "what was given back comes again and again"
                await asyncio.sleep(TICK)
        ended = await live_lab.now()
        assert starts == dict.fromkeys("abcde", 1)
        rows = await live_lab.executor.get_many(ids)
        waiting = [row for row in rows if row is not None and row.state is JobState.SCHEDULED]
        assert len(waiting) == 15
        minute = timedelta(minutes=1)
        for job in waiting:
            assert job.attempt == 0, "waiting for a token used an attempt"
            assert began + DAY - minute <= job.run_at <= ended + DAY + minute

    @rule("whole", 4, "records")
    async def test_a_rate_outlives_a_killed_pool(self, live_lab: Lab) -> None:
        limit, per = 20, 1.0
        options = {"lease": LEASE, "limit": limit, "per": per}
        began = time.monotonic()
        async with start_workers(live_lab.make_driver, 1, "limited", **options) as (first,):
            await first.until("ready")
            await _enqueue(Client(live_lab.driver), range(60))
            await first.until("run", 5)
            await first.kill()
            async with start_workers(live_lab.make_driver, 1, "limited", **options) as (second,):
                await _completed(live_lab, 60)
                await second.stop()
        starts = sorted(at for worker in (first, second) for _, at in worker.words("run"))
        for number, at in enumerate(starts, start=1):
            assert number <= limit + (at - began) * limit / per + 1, "there were no such tokens"

    @needs("groups")
    @rule("whole", 7)
    async def test_a_hot_key_keeps_no_other_waiting(self, lab: Lab) -> None:
        """A thousand keys, of which one has the first hundreds of jobs."""
        keys = [*["hot"] * 300, *(f"key {n}" for n in range(999))]
        jobs = [lab.job(group=key, group_limit=1) for key in keys]
        size = min(lab.capabilities.max_batch, 500)
        for start in range(0, len(jobs), size):
            await lab.insert(*jobs[start : start + size])
        await lab.let_appear()
        session, ran = await lab.session(), Counter[str]()
        fetches = 0
        finishes: list[Finish] = []
        while len(ran) < 1000:
            result = await session.ask(100)
            fetches += 1
            assert result.jobs or result.more, "some wait though nothing of their key runs"
            assert fetches <= 200, "the others wait for the hot one"
            ran.update(str(row.group) for row in result.jobs)
            finishes += [Finish(claim_of(row), "complete") for row in result.jobs]
            outcomes = await lab.executor.finish_many(finishes)
            finishes = still_busy(finishes, outcomes)
        assert ran["hot"] <= fetches, "its limit is one"

    @needs("groups")
    @rule("whole", 4, 7)
    async def test_slots_of_a_key_come_back_from_killed_pools(self, live_lab: Lab) -> None:
        client = Client(live_lab.driver)
        group: dict[str, Any] = {"concurrency_key": "k", "concurrency_limit": 2}
        async with start_workers(live_lab.make_driver, 3, "slots", lease=LEASE) as workers:

            async def both_hang() -> bool:
                return sum(len(worker.words("hangs")) for worker in workers) == 2

            for worker in workers:
                await worker.until("ready")
            await _enqueue(client, range(-2, 0), **group)
            await until(both_hang)
            await _enqueue(client, range(20), **group)
            await asyncio.sleep(0.3)
            assert not any(worker.words("run") for worker in workers), "there is no third slot"
            for worker in workers:
                if worker.words("hangs"):
                    await worker.kill()
            await _completed(live_lab, 22)
            for worker in workers:
                if not worker.killed:
                    await worker.stop()
        assert _most_at_once(workers) <= 2


def _most_at_once(workers: list[Worker]) -> int:
    """How many ran at once, of those that were so short that their sessions were surely there."""
    steps: list[tuple[float, int]] = []
    for worker in workers:
        ends: dict[Any, Any] = dict(worker.words("ran"))
        for job_id, began in worker.words("run"):
            ended = ends.get(job_id)
            if ended is not None and ended - began < LEASE / 2:
                steps += [(began, 1), (ended, -1)]
    return max(accumulate(step for _, step in sorted(steps)))
