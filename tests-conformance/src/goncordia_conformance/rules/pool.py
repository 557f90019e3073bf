"""From end to end: clients and worker pools over the driver, in real time."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from goncordia import Client, Discard, Job, JobFailedError, JobHandle, Snooze, UniqueOpts
from goncordia.driver import JobState, ListFilter
from goncordia_conformance.base import Conformance
from goncordia_conformance.faults import Faults, FaultyDriver
from goncordia_conformance.lab import Lab
from goncordia_conformance.marks import needs, not_proved, rule
from goncordia_conformance.processes import Worker, fed_until, start_workers
from goncordia_conformance.rules.transactions import RolledBackError, Transaction
from goncordia_conformance.workload import Work, pool

__all__ = ["PoolTests"]

PATIENCE = 60.0
TICK = 0.05


class Book:
    """Counts the runs of each job."""

    def __init__(self, then: Callable[[Job[Work]], Awaitable[object]] | None = None) -> None:
        self.runs: Counter[UUID] = Counter()
        self.started = asyncio.Event()
        self._then = then

    async def __call__(self, job: Job[Work]) -> object:
        """The handler."""
        self.runs[job.id] += 1
        self.started.set()
        return None if self._then is None else await self._then(job)


async def _enqueue(client: Client[Any], count: int, **options: Any) -> list[UUID]:
    done = await client.enqueue_many([Work(n) for n in range(count)], atomic=False, **options)
    return [handle.id for handle in done.handles]


class PoolTests(Conformance, rule="whole"):
    """What a user sees of the driver."""

    @pytest.fixture
    def transaction(self) -> Transaction:
        """For the driver's author: see ``TransactionTests``."""
        not_proved("native_tx", "no fixture transaction")

    async def test_pool_works_every_job_once(self, live_lab: Lab) -> None:
        client, book = Client(live_lab.driver), Book()
        jobs = await _enqueue(client, 300)
        async with asyncio.timeout(PATIENCE), pool(live_lab.driver, book) as working:
            await working.drain()
        assert book.runs == Counter(jobs)
        assert await live_lab.count(JobState.COMPLETED) == 300

    async def test_pool_takes_new_jobs(self, live_lab: Lab) -> None:
        client = Client(live_lab.driver)

        async def double(job: Job[Work]) -> int:
            return job.args.number * 2

        async with asyncio.timeout(PATIENCE), pool(live_lab.driver, double):
            handles = [await client.enqueue(Work(n)) for n in range(5)]
            assert [await client.wait(handle, output=int) for handle in handles] == [0, 2, 4, 6, 8]

    async def test_pools_share_the_work(self, live_lab: Lab) -> None:
        client, book = Client(live_lab.driver), Book()
        jobs = await _enqueue(client, 300)
        other = await live_lab.another_driver()
        async with (
            asyncio.timeout(PATIENCE),
            pool(live_lab.driver, book) as one,
            pool(other, book) as two,
        ):
            await asyncio.gather(one.drain(), two.drain())
        assert book.runs == Counter(jobs)

    async def test_pool_retries_and_discards(self, live_lab: Lab) -> None:
        client = Client(live_lab.driver)

        async def fail(job: Job[Work]) -> str:
            if job.args.number == 1 and job.attempt == 2:
                return "second time lucky"
            raise ValueError(f"attempt {job.attempt}")

        async with asyncio.timeout(PATIENCE), pool(live_lab.driver, fail):
            lucky, unlucky = await client.enqueue(Work(1)), await client.enqueue(Work(2))
            assert await client.wait(lucky, output=str) == "second time lucky"
            with pytest.raises(JobFailedError):
                await client.wait(unlucky)
        rows = await live_lab.rows(lucky.id, unlucky.id)
        assert [(row.state, row.attempt) for row in rows] == [
            (JobState.COMPLETED, 2),
            (JobState.DISCARDED, 3),
        ]
        assert [error.message for error in rows[1].errors] == [f"attempt {n}" for n in (1, 2, 3)]

    async def test_pool_obeys_directives(self, live_lab: Lab) -> None:
        client = Client(live_lab.driver)
        snoozed: set[UUID] = set()

        async def snooze_once(job: Job[Work]) -> None:
            if job.args.number == 2:
                raise Discard("not wanted")
            if job.id not in snoozed:
                snoozed.add(job.id)
                raise Snooze(0.05)

        async with asyncio.timeout(PATIENCE), pool(live_lab.driver, snooze_once) as working:
            jobs = [await client.enqueue(Work(n)) for n in (1, 2)]
            await working.drain(within=5)
        rows = await live_lab.rows(*[job.id for job in jobs])
        assert [(row.state, row.attempt) for row in rows] == [
            (JobState.COMPLETED, 1),
            (JobState.DISCARDED, 1),
        ]

    async def test_pool_cancels_what_runs(self, live_lab: Lab) -> None:
        client = Client(live_lab.driver)

        async def long(_: Job[Work]) -> None:
            await asyncio.sleep(PATIENCE)

        book = Book(long)
        async with asyncio.timeout(PATIENCE), pool(live_lab.driver, book):
            handle = await client.enqueue(Work())
            await book.started.wait()
            await client.cancel(handle)
            with pytest.raises(JobFailedError):
                await client.wait(handle)
        assert await live_lab.state(handle.id) == JobState.CANCELLED

    async def test_pool_gives_back_what_it_must_interrupt(self, live_lab: Lab) -> None:
        client = Client(live_lab.driver)

        async def long(_: Job[Work]) -> None:
            await asyncio.sleep(PATIENCE)

        book = Book(long)
        await _enqueue(client, 20)
        async with asyncio.timeout(PATIENCE):
            async with pool(live_lab.driver, book, shutdown_timeout=0.1):
                await book.started.wait()
        rows = (await live_lab.executor.list_jobs(ListFilter(), None, 50)).jobs
        assert {(row.state, row.attempt) for row in rows} == {(JobState.AVAILABLE, 0)}
        assert await live_lab.executor.session_list() == []

    async def test_pool_leaves_paused_queues(self, live_lab: Lab) -> None:
        client, book = Client(live_lab.driver), Book()
        await client.queue_pause("a")
        (paused,) = await _enqueue(client, 1, queue="a")
        async with asyncio.timeout(PATIENCE), pool(live_lab.driver, book, queues=["a", "b"]):
            await client.wait(await client.enqueue(Work(), queue="b"))
            assert await live_lab.state(paused) == JobState.AVAILABLE
            await client.queue_resume("a")
            await client.wait(JobHandle(paused, Work, Work.kind))
        assert book.runs[paused] == 1

    @needs("groups")
    @rule("whole", 7)
    async def test_pools_run_a_pipeline_one_by_one(self, live_lab: Lab) -> None:
        # In which order is not said: a fetch may pass over what another one is just looking at.
        client = Client(live_lab.driver)
        running: set[UUID] = set()
        at_once: set[int] = set()

        async def note(job: Job[Work]) -> None:
            running.add(job.id)
            at_once.add(len(running))
            await asyncio.sleep(0.001)
            running.discard(job.id)

        book = Book(note)
        jobs = await _enqueue(client, 30, pipeline_id="p")
        other = await live_lab.another_driver()
        async with (
            asyncio.timeout(PATIENCE),
            pool(live_lab.driver, book) as one,
            pool(other, book) as two,
        ):
            await asyncio.gather(one.drain(), two.drain())
        assert book.runs == Counter(jobs)
        assert at_once == {1}, "two jobs of a pipeline at once"

    @needs("unique_jobs")
    @rule("whole", 6)
    async def test_client_enqueues_a_unique_job_once(self, live_lab: Lab) -> None:
        client, book = Client(live_lab.driver), Book()
        unique = UniqueOpts(by_args=True)
        handles = [await client.enqueue(Work(7), unique=unique) for _ in range(3)]
        assert [handle.duplicate for handle in handles] == [False, True, True]
        assert len({handle.id for handle in handles}) == 1
        async with asyncio.timeout(PATIENCE), pool(live_lab.driver, book) as working:
            await working.drain()
        assert book.runs == {handles[0].id: 1}

    @needs("marks")
    async def test_checkpoints_survive_an_attempt(self, live_lab: Lab) -> None:
        client = Client(live_lab.driver)

        async def resume(job: Job[Work]) -> object:
            if job.attempt == 1:
                await job.checkpoint({"page": 3})
                raise ValueError("broken off")
            return job.last_checkpoint

        async with asyncio.timeout(PATIENCE), pool(live_lab.driver, resume):
            handle = await client.enqueue(Work())
            assert await client.wait(handle) == {"page": 3}

    @needs("native_tx")
    @rule("whole", 14)
    async def test_jobs_come_with_the_callers_commit(
        self, live_lab: Lab, transaction: Transaction
    ) -> None:
        client, book = Client(live_lab.driver), Book()
        async with asyncio.timeout(PATIENCE), pool(live_lab.driver, book):
            with pytest.raises(RolledBackError):
                async with transaction(live_lab.driver) as tx:
                    await client.enqueue_tx(tx, Work(1))
                    raise RolledBackError
            async with transaction(live_lab.driver) as tx:
                handle = await client.enqueue_tx(tx, Work(2))
                await asyncio.sleep(0.2)
                assert not book.runs
            await client.wait(handle)
        assert book.runs == {handle.id: 1}

    @needs("native_tx", "tx_finish")
    @rule("whole", 14)
    async def test_a_job_finishes_in_its_own_transaction(
        self, live_lab: Lab, transaction: Transaction
    ) -> None:
        client, driver = Client(live_lab.driver), live_lab.driver

        async def finish(job: Job[Work]) -> None:
            async with transaction(driver) as tx:
                await job.complete_tx(tx, {"attempt": job.attempt})
                if job.attempt == 1:
                    raise ValueError("the first time, it is rolled back")

        async with asyncio.timeout(PATIENCE), pool(driver, finish):
            handle = await client.enqueue(Work())
            assert await client.wait(handle) == {"attempt": 2}
        assert (await live_lab.row(handle.id)).attempt == 2

    @rule("whole", 9)
    async def test_pool_survives_faults(self, live_lab: Lab) -> None:
        async def short(_: Job[Work]) -> None:
            await asyncio.sleep(0.002)

        faults = Faults(random.Random(1), rate=0.1)
        client, book = Client(live_lab.driver), Book(short)
        jobs: list[UUID] = []
        # Long enough for no session to be lost: so nothing is run twice, whatever is answered.
        faulty = FaultyDriver(live_lab.driver, faults)
        async with asyncio.timeout(PATIENCE), pool(faulty, book, lease=8.0, concurrency=3):
            while faults.failed < 10:
                jobs += await _enqueue(client, 50)
                await _until_completed(live_lab, len(jobs))
        assert book.runs == Counter(jobs)

    @rule("whole", 2, 3, 4)
    async def test_killed_pools_lose_nothing(self, live_lab: Lab) -> None:
        client = Client(live_lab.driver)
        async with start_workers(live_lab.make_driver, 3, "pool", lease=3.0) as workers:
            for worker in workers:
                await worker.until("ready")
            jobs: list[UUID] = []

            async def feed() -> None:
                jobs.extend(await _enqueue(client, 100))

            await fed_until(workers, "ran", 10, feed)
            await feed()
            for worker in workers[:2]:
                await worker.kill()
            await _until_completed(live_lab, len(jobs))
            await workers[2].stop()
        _balances(jobs, workers)
        assert await client.count() == len(jobs)


async def _until_completed(lab: Lab, jobs: int) -> None:
    for _ in range(round(PATIENCE / TICK)):
        if await lab.count(JobState.COMPLETED) == jobs:
            return
        await asyncio.sleep(TICK)
    raise AssertionError("jobs are left that nobody completes")


def _balances(jobs: list[UUID], workers: list[Worker]) -> None:
    """Each job was run to its end, and again only where its run was killed."""
    lost = Counter(
        job_id for worker in workers if worker.killed for (job_id,) in worker.words("run")
    )
    kept = Counter(
        job_id for worker in workers if not worker.killed for (job_id,) in worker.words("run")
    )
    assert set(lost) | set(kept) == {str(job_id) for job_id in jobs}, "a job was never run"
    assert set(kept.values()) <= {1}, "a pool that lived ran a job twice"
    assert set(lost.values()) <= {1}, "both killed pools ran the same job"
