"""Leadership and what it is for: one leads, and what leaders do is done once also when two try."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from goncordia import Client, CronScheduler, Discard, Job, PeriodicJob, Retention, every
from goncordia.driver import JobState
from goncordia.engine.calls import Calls
from goncordia.engine.leadership import Leadership
from goncordia.errors import DriverUnavailableError
from goncordia_conformance.base import Conformance
from goncordia_conformance.faults import Faults, FaultyDriver
from goncordia_conformance.lab import Lab, until
from goncordia_conformance.marks import rule
from goncordia_conformance.processes import Worker, start_workers
from goncordia_conformance.workload import Work, pool

__all__ = ["LeadershipTests"]

PATIENCE = 60.0
LEASE = 1.0

CALM = 20.0
"""A lease so long that no claim is lost on a busy machine."""

OF_FROZEN = 2.0
"""A lease in which nobody loses the lead who was not made to stand still."""

INTERVAL = timedelta(seconds=0.1)
KEPT_SHORTLY = Retention(completed=0.2, discarded=3600, interval=0.05)


class Unanswered(Faults):
    """Every second insert and every third put takes effect, and its answer is lost."""

    def __init__(self) -> None:
        super().__init__()
        self._number: Counter[str] = Counter()

    async def around(self, name: str, operation: Callable[[], Awaitable[Any]]) -> Any:
        result = await operation()
        self._number[name] += 1
        if self._number[name] % {"insert_many": 2, "record_put": 3}.get(name, 2**31) == 0:
            raise DriverUnavailableError(f"{name}: the answer was lost", outcome="unknown")
        return result


def entry() -> PeriodicJob:
    """What the schedulers of a test have in common."""
    return PeriodicJob(every(INTERVAL), Work(), id="tick", catch_up="all")


class LeadershipTests(Conformance, rule="whole"):
    """What is done by one of many."""

    @rule("whole", "records")
    async def test_one_of_many_leads(self, lab: Lab) -> None:
        candidates = [await self._candidate(lab) for _ in range(8)]
        for term in (1, 2, 3):
            answers = await asyncio.gather(*(each.lead() for each in candidates))
            assert sum(answers) == 1, "several lead, or nobody does"
            leader = candidates[answers.index(True)]
            assert leader.term == term
            # Who took over a moment ago leads on; the others leave it alone.
            again = await asyncio.gather(*(each.lead() for each in candidates))
            assert again == answers
            candidates.remove(leader)  # it is heard of no more
            assert not any(await asyncio.gather(*(each.lead() for each in candidates)))
            await lab.advance(LEASE)

    async def _candidate(self, lab: Lab) -> Leadership:
        driver = await lab.another_driver()
        calls = Calls(driver.clock, random.Random(), bound=PATIENCE)
        return Leadership(driver.executor(), calls, driver.clock, "office", lease=LEASE)

    @rule("whole", 9, "records")
    async def test_what_is_due_runs_once_though_answers_are_lost(self, live_lab: Lab) -> None:
        runs: Counter[str] = Counter()

        async def note(job: Job[Work]) -> None:
            runs[job.meta["cron.at"]] += 1

        async def enough() -> bool:
            return len(runs) >= 20

        one, two = (
            CronScheduler(FaultyDriver(driver, Unanswered()), [entry()], lease=LEASE)
            for driver in (live_lab.driver, await live_lab.another_driver())
        )
        async with pool(live_lab.driver, note, lease=CALM) as working:
            async with one, two:
                await until(enough)
            await working.drain()
        assert set(runs.values()) == {1}, "an occurrence ran twice"
        _has_no_gap(runs)

    @pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be frozen here")
    @rule("whole", 9, "records")
    async def test_a_leader_that_was_frozen_fires_nothing_again(self, live_lab: Lab) -> None:
        options = {"lease": OF_FROZEN, "interval": INTERVAL.total_seconds()}

        async def more(jobs: int) -> None:
            before = await live_lab.count()

            async def enough() -> bool:
                return await live_lab.count() >= before + jobs

            await until(enough)

        async with start_workers(live_lab.make_driver, 2, "schedule", **options) as workers:
            leader, other = await _leader_first(workers)
            await more(5)
            await leader.sign()
            await leader.until("stands")
            leader.process.send_signal(signal.SIGSTOP)
            await _says(other, "leads")
            await more(5)
            followed = len(leader.words("follows"))
            await leader.sign()
            leader.process.send_signal(signal.SIGCONT)
            await leader.until("follows", followed + 1)
            await more(5)
            await other.kill()
            await _says(leader, "leads")
            await more(5)
            await leader.stop()
        jobs = [job async for job in Client(live_lab.driver).list_all()]
        times = Counter(job.meta["cron.at"] for job in jobs)
        assert set(times.values()) == {1}, "an occurrence was enqueued twice"
        _has_no_gap(times)

    @rule("whole", "listing")
    async def test_one_pool_deletes_old_jobs_and_another_follows(self, live_lab: Lab) -> None:
        client = Client(live_lab.driver)

        async def work(job: Job[Work]) -> None:
            if job.args.number == 0:
                raise Discard("to be kept")

        unfinished = (JobState.AVAILABLE, JobState.RUNNING)

        async def the_completed_are_gone() -> bool:
            return not await live_lab.count(JobState.COMPLETED, *unfinished)

        async def the_discarded_is_there() -> bool:
            return await live_lab.state(kept.id) == JobState.DISCARDED

        async def somebody_leads() -> bool:
            return await live_lab.executor.record_get("leader/prune") is not None

        settings: dict[str, Any] = {"retention": KEPT_SHORTLY}
        async with pool(await live_lab.another_driver(), work, **settings) as leader:
            kept = await client.enqueue(Work(0))
            await until(somebody_leads)
            async with pool(await live_lab.another_driver(), work, **settings):
                await client.enqueue_many([Work(n) for n in range(1, 20)], atomic=False)
                await until(the_completed_are_gone)
                await until(the_discarded_is_there)
                await leader.stop()
                await client.enqueue_many([Work(n) for n in range(1, 20)], atomic=False)
                await until(the_completed_are_gone)
        assert await live_lab.state(kept.id) == JobState.DISCARDED


async def _leader_first(workers: list[Worker]) -> tuple[Worker, Worker]:
    one, two = workers

    async def leads() -> bool:
        return one.has_said("leads", 1) or two.has_said("leads", 1)

    await until(leads)
    return (one, two) if one.words("leads") else (two, one)


async def _says(worker: Worker, word: str) -> None:
    """Wait until this is what a scheduler says of itself."""

    async def holds() -> bool:
        return worker.said[-1:] == [[word]]

    await until(holds)


def _has_no_gap(times: Counter[str]) -> None:
    """Nothing that was due between the first and the last is missing."""
    when = sorted(datetime.fromisoformat(text) for text in times)
    assert when == [when[0] + n * INTERVAL for n in range(len(when))], "an occurrence is missing"
