"""Processes that are killed by ``kill -9``, and a ledger that must balance afterwards."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from uuid import UUID

import pytest

from goncordia.driver import Finish, JobState
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, Session, claim_of
from goncordia_conformance.marks import rule
from goncordia_conformance.processes import Worker, fed_until, start_workers

__all__ = ["CrashTests"]

LEASE = 3.0
BATCH = 100
PATIENCE = 60.0
TICK = 0.1


class CrashTests(Conformance, rule="whole"):
    """Every job is accounted for; only what was lost is repeated."""

    @rule("whole", 2, 3, 4)
    async def test_killed_workers_lose_nothing(self, live_lab: Lab) -> None:
        jobs: list[UUID] = []

        async def feed() -> None:
            jobs.extend(await live_lab.insert(*(live_lab.job() for _ in range(BATCH))))

        options = {"lease": LEASE, "batch": 5}
        async with (
            start_workers(live_lab.make_driver, 3, "work", **options) as workers,
            _rescuer(live_lab),
        ):
            for worker in workers:
                await worker.until("session")
            await fed_until(workers, "finished", 10, feed)
            await feed()
            for worker in workers[:2]:
                await worker.kill()
            async with start_workers(live_lab.make_driver, 1, "work", **options) as fresh:
                await _until_done(live_lab, len(jobs))
                for worker in (*workers[2:], *fresh):
                    await worker.stop()
            await _balances(live_lab, jobs, [*workers, *fresh])

    @rule("whole", 14)
    async def test_a_killed_insert_leaves_whole_batches(self, live_lab: Lab) -> None:
        size = min(live_lab.capabilities.atomic_insert, live_lab.capabilities.max_batch, 500)
        if size == 1:
            pytest.skip("not claimed: atomic_insert = 1")
        batches = [[live_lab.new_id() for _ in range(size)] for _ in range(100)]
        told = [[str(job_id) for job_id in batch] for batch in batches]
        async with start_workers(live_lab.make_driver, 1, "insert", batches=told) as (worker,):
            await worker.until("inserted", 5)
            await worker.kill()
        acknowledged = {number for (number,) in worker.words("inserted")}
        begun = {number for (number,) in worker.words("inserting")}
        for number, batch in enumerate(batches):
            rows = await live_lab.executor.get_many(batch)
            there = sum(row is not None for row in rows)
            if number in acknowledged:
                assert there == size, "an acknowledged batch is lost"
            elif number in begun:
                assert there in {0, size}, "a batch is there in part"
            else:
                assert there == 0


@asynccontextmanager
async def _rescuer(lab: Lab) -> AsyncGenerator[None, None]:
    """A session that beats, and takes back what others have lost."""
    driver = await lab.another_driver()
    session = await lab.session(lease=LEASE, executor=driver.executor())
    rescuing = asyncio.create_task(_rescue(session))
    try:
        yield
    finally:
        rescuing.cancel()
        with suppress(asyncio.CancelledError):
            await rescuing
        await session.close()


async def _rescue(session: Session) -> None:
    while True:
        await asyncio.sleep(LEASE / 8)
        await session.beat()
        rows = await session.expire()
        ends = [Finish(claim_of(row), "retry", rescue=True) for row in rows]
        await session.executor.finish_many(ends)


async def _until_done(lab: Lab, jobs: int) -> None:
    for _ in range(round(PATIENCE / TICK)):
        if await lab.count(JobState.COMPLETED) == jobs:
            return
        await asyncio.sleep(TICK)
    raise AssertionError("jobs are left that nobody finishes")


async def _balances(lab: Lab, jobs: list[UUID], workers: list[Worker]) -> None:
    """Each job was completed, and run again only where the run before it was lost."""
    lost: set[str] = set()
    runs: dict[str, list[str]] = defaultdict(list)
    done: dict[str, int] = defaultdict(int)
    for worker in workers:
        sessions = {session for (session,) in worker.words("session")}
        if worker.killed or worker.words("lost"):
            lost |= sessions
        for job_id, session in worker.words("claimed"):
            runs[job_id].append(session)
        for job_id, status in worker.words("finished"):
            done[job_id] += status == "DONE"
    rows = await lab.rows(*jobs)
    assert {row.state for row in rows} == {JobState.COMPLETED}
    for row in rows:
        key = str(row.id)
        assert done[key] <= 1, "two runs of a job were acknowledged as its completion"
        # A worker may be killed between a claim and its note of it, but not the other way round.
        assert row.attempt >= 1, "completed without a run"
        assert len(runs[key]) <= row.attempt
        kept = [session for session in runs[key] if session not in lost]
        assert len(kept) <= 1, "a job was run again though its first run was not lost"
    assert sum(row.attempt for row in rows) <= len(jobs) + 10 * len(workers), (
        "more repeats than claims"
    )
