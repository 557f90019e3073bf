"""Rule 2 under load: eight claimers, a thousand jobs, each job exactly once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from functools import partial
from uuid import UUID

from goncordia.driver import AnyDriver, Finish, JobState
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import (
    Lab,
    MakeDriver,
    Session,
    claim_of,
    in_threads,
    outcome_of,
    still_busy,
)
from goncordia_conformance.marks import rule
from goncordia_conformance.processes import start_workers

__all__ = ["ConcurrencyTests"]

CLAIMERS = 8
JOBS = 1000
BATCH = 7
PATIENCE = 90.0


async def _claim_all(driver: AnyDriver) -> list[UUID]:
    """Claim and complete until there is nothing left; what was claimed."""
    executor = driver.executor()
    session = await Session(executor, "exchange", 60, "claimer").open()
    claimed: list[UUID] = []
    finishes: list[Finish] = []
    while True:
        outcomes, result = await executor.exchange(finishes, session.request(BATCH))
        assert result is not None
        claimed += [row.id for row in result.jobs]
        finishes = still_busy(finishes, outcomes)
        finishes += [Finish(claim_of(row), "complete") for row in result.jobs]
        if not finishes and not result.more:
            break
    await session.close()
    return claimed


class ConcurrencyTests(Conformance, rule=2):
    """In tasks, in threads, and in processes."""

    async def test_in_tasks_of_one_driver(self, live_lab: Lab) -> None:
        await self._claimed_once(live_lab, [live_lab.driver] * CLAIMERS)

    async def test_in_tasks_of_many_drivers(self, live_lab: Lab) -> None:
        drivers = [await live_lab.another_driver() for _ in range(CLAIMERS)]
        await self._claimed_once(live_lab, drivers)

    async def _claimed_once(self, lab: Lab, drivers: list[AnyDriver]) -> None:
        jobs = await _insert(lab)
        async with asyncio.timeout(PATIENCE):
            claimed = await asyncio.gather(*(_claim_all(driver) for driver in drivers))
        await _each_once(lab, jobs, (job_id for some in claimed for job_id in some))

    async def test_in_threads(self, live_lab: Lab) -> None:
        jobs = await _insert(live_lab)
        claimed = await in_threads([partial(_in_own_loop, live_lab.make_driver)] * CLAIMERS)
        await _each_once(live_lab, jobs, (job_id for some in claimed for job_id in some))

    async def test_in_processes(self, live_lab: Lab) -> None:
        jobs = await _insert(live_lab)
        async with start_workers(live_lab.make_driver, CLAIMERS, "claim", batch=BATCH) as workers:
            for worker in workers:
                await worker.ended()
        claimed = [UUID(job_id) for worker in workers for (job_id,) in worker.words("claimed")]
        await _each_once(live_lab, jobs, claimed)

    @rule(13)
    async def test_ten_processes_migrate_at_once(self, make_driver: MakeDriver) -> None:
        async with start_workers(make_driver, 10, "migrate") as workers:
            for worker in workers:
                await worker.ended()
        done = [done for worker in workers for (done,) in worker.words("migrated")]
        assert len(done) == 10
        driver = make_driver()
        try:
            assert any(done) or not driver.migration_script()
            await driver.ready()
            assert await driver.migrate() == []
        finally:
            await driver.aclose()

    @rule(2, 3)
    async def test_a_finish_and_a_rescue_race(self, live_lab: Lab) -> None:
        other = (await live_lab.another_driver()).executor()
        for _ in range(30):
            claim = claim_of(await live_lab.running())
            outcomes = await asyncio.gather(
                outcome_of(live_lab.executor, Finish(claim, "complete")),
                outcome_of(other, Finish(claim, "discard", rescue=True)),
            )
            assert sorted(o.status for o in outcomes) == ["ALREADY", "DONE"]
            (state,) = {outcome.state for outcome in outcomes}
            assert await live_lab.state(claim.job_id) == state

    @rule(2, "states")
    async def test_a_fetch_and_a_cancel_race(self, live_lab: Lab) -> None:
        other = (await live_lab.another_driver()).executor()
        session = await live_lab.session(executor=other)
        for _ in range(30):
            job_id = await live_lab.add()
            changed, rows = await asyncio.gather(
                live_lab.change(job_id, "cancel"), session.fetch(1)
            )
            row = await live_lab.row(job_id)
            if rows:
                assert (changed.status, row.cancel_requested) == ("REQUESTED", True)
                await live_lab.finish(rows[0], "retry")
            else:
                assert changed.status == "CHANGED"
            assert await live_lab.state(job_id) == JobState.CANCELLED


async def _insert(lab: Lab) -> list[UUID]:
    size = min(lab.capabilities.max_batch, 500)
    jobs = [lab.job() for _ in range(JOBS)]
    for start in range(0, JOBS, size):
        await lab.insert(*jobs[start : start + size])
    return [job.id for job in jobs]


async def _each_once(lab: Lab, jobs: list[UUID], claimed: Iterable[UUID]) -> None:
    times = Counter(claimed)
    assert set(times) == set(jobs), "some were never claimed"
    assert set(times.values()) == {1}, "some were claimed twice"
    assert await lab.count(JobState.COMPLETED) == len(jobs)
    rows = await lab.executor.get_many(jobs[:: len(jobs) // 100])
    assert {row and row.attempt for row in rows} == {1}


def _in_own_loop(make_driver: MakeDriver) -> list[UUID]:
    async def run() -> list[UUID]:
        driver = make_driver()
        try:
            await driver.ready()
            return await _claim_all(driver)
        finally:
            await driver.aclose()

    return asyncio.run(run())
