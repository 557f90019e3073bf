"""A ledger that must balance after trouble: what the chaos tests of all backends share."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar
from uuid import UUID

import pytest

from goncordia.clock import SystemClock
from goncordia.driver import AnyDriver, JobState, ListFilter, NewJob
from goncordia.errors import DriverError
from goncordia.ids import JobIds
from goncordia_conformance.lab import MakeDriver
from goncordia_conformance.processes import Worker, start_workers
from goncordia_conformance.proxy import ChaosProxy
from goncordia_conformance.workload import Work

__all__ = [
    "BATCH",
    "SHORT",
    "STEADY",
    "Ledger",
    "Trouble",
    "all_go_on",
    "endure",
    "outlive_a_freeze",
    "outlive_workers",
    "stubbornly",
]

STEADY = 15.0
"""A lease, in seconds, that outlasts the troubles by which nobody should lose a session."""

SHORT = 2.0
"""A lease that sessions are lost by."""

PATIENCE = 90.0
TICK = 0.05
BATCH = 20

T = TypeVar("T")
Trouble: TypeAlias = Callable[[int], Awaitable[None]]
"""Makes it; told which time it is, from 0."""


class Ledger:
    """The jobs that were enqueued, and what became of them."""

    def __init__(self, driver: AnyDriver) -> None:
        self.driver = driver
        self.jobs: list[UUID] = []
        self.ids = JobIds(SystemClock())

    async def enqueue(self) -> None:
        """A batch more, whatever happens meanwhile: the same request again until it is answered."""
        batch = [
            # Its attempts must outlast the troubles: each may cost one.
            NewJob(id=new, kind=Work.kind, args=b"{}", max_attempts=100)
            for new in self.ids.take(BATCH)
        ]
        await stubbornly(lambda: self.driver.executor().insert_many(batch))
        self.jobs += [job.id for job in batch]

    @asynccontextmanager
    async def load(self) -> AsyncGenerator[None]:
        """Enqueue as long as the block lasts."""
        more = True

        async def enqueue() -> None:
            while more:
                await self.enqueue()
                await asyncio.sleep(TICK)

        loading = asyncio.create_task(enqueue())
        try:
            yield
        finally:
            more = False
            await loading

    async def done(self) -> None:
        """Wait until all are completed."""
        left = ListFilter(states=frozenset(set(JobState) - {JobState.COMPLETED}))
        until = asyncio.get_running_loop().time() + PATIENCE
        while await stubbornly(lambda: self.driver.executor().count(left)):
            if asyncio.get_running_loop().time() > until:
                page = await self.driver.executor().list_jobs(left, None, 10)
                sessions = await self.driver.executor().session_list()
                pytest.fail(f"jobs are left: {page.jobs}; the sessions: {sessions}")
            await asyncio.sleep(TICK)

    async def balances(
        self, workers: list[Worker], *, repeats: bool, forgets: bool = False
    ) -> None:
        """Check each job.

        Args:
            workers: those who ran them.
            repeats: sessions were lost, and so some jobs may have run more than once.
            forgets: claims were lost, and so a job may have run for one that nobody remembers.
        """
        runs = Counter(job_id for worker in workers for (job_id,) in worker.words("run"))
        assert set(runs) == {str(job_id) for job_id in self.jobs}, "a job never ran, or is not ours"
        rows = [
            row
            for start in range(0, len(self.jobs), 1000)
            for row in await self.driver.executor().get_many(self.jobs[start : start + 1000])
        ]
        for row in rows:
            assert row is not None, "a job is lost"
            assert row.state == JobState.COMPLETED
            assert forgets or runs[str(row.id)] <= row.attempt, "a job ran without a claim"
        if not repeats:
            assert set(runs.values()) == {1}, "no session was lost, and yet a job ran twice"


async def stubbornly(step: Callable[[], Awaitable[T]]) -> T:
    """Repeat a request until it is answered."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await step()
            except DriverError:
                await asyncio.sleep(TICK)


async def endure(
    ledger: Ledger,
    make_driver: MakeDriver,
    trouble: Trouble,
    *,
    rounds: int,
    calm: float = 0.3,
    lease: float = STEADY,
    forgets: bool = False,
) -> None:
    """Two pools under load and trouble; each goes on, and each job is run exactly once.

    Args:
        ledger: what is enqueued.
        make_driver: the pools' driver.
        trouble: comes again and again.
        rounds: how often.
        calm: seconds between.
        lease: of the pools, in seconds; longer than a trouble.
        forgets: the trouble makes the backend forget some of what it has answered, but no job: then
            some are run again.
    """
    async with start_workers(make_driver, 2, "pool", lease=lease) as workers:
        for worker in workers:
            await worker.until("ready")
        async with ledger.load():
            for number in range(rounds):
                await asyncio.sleep(calm)
                await trouble(number)
        await ledger.done()
        await all_go_on(ledger, workers)
        for worker in workers:
            await worker.stop()
    await ledger.balances(workers, repeats=forgets, forgets=forgets)


async def outlive_workers(
    ledger: Ledger, make_driver: MakeDriver, proxy: ChaosProxy, *, rounds: int
) -> None:
    """Under load, workers are cut off and killed with -9, one after another; nothing is lost.

    Args:
        ledger: what is enqueued; it sees the backend itself.
        make_driver: the workers' driver, through the proxy.
        proxy: before the backend.
        rounds: how many are killed.
    """
    async with start_workers(make_driver, 1, "pool", lease=SHORT) as steady:
        workers = list(steady)
        await steady[0].until("ready")  # the kit's workers do not start a second time
        async with ledger.load():
            for _ in range(rounds):
                async with start_workers(make_driver, 1, "pool", lease=SHORT) as (worker,):
                    workers.append(worker)
                    await worker.until("ran", BATCH)
                    proxy.cut()
                    await worker.until("ran", 2 * BATCH)
                    await worker.kill()
        await ledger.done()
        await all_go_on(ledger, steady)
        for worker in steady:
            await worker.stop()
        await ledger.balances(workers, repeats=True)


async def outlive_a_freeze(
    ledger: Ledger,
    frozen_driver: MakeDriver,
    other_driver: MakeDriver,
    proxy: ChaosProxy,
    *,
    rounds: int,
) -> None:
    """One of two pools is cut off for longer than its lease; the other does its work meanwhile.

    Args:
        ledger: what is enqueued; it sees the backend itself.
        frozen_driver: that of the one, through the proxy.
        other_driver: that of the other, which sees the backend itself.
        proxy: before the backend.
        rounds: how often.
    """
    async with (
        start_workers(frozen_driver, 1, "pool", lease=SHORT) as frozen,
        start_workers(other_driver, 1, "pool", lease=SHORT) as other,
    ):
        workers = [*frozen, *other]
        for worker in workers:
            await worker.until("ready")
        for _ in range(rounds):
            async with ledger.load():
                await frozen[0].until("ran", len(frozen[0].words("ran")) + BATCH)
                proxy.freeze()
                await asyncio.sleep(2 * SHORT)
            # What it held is taken back and finished by the other one, while it is still frozen.
            await ledger.done()
            proxy.thaw()
            await all_go_on(ledger, workers)
        for worker in workers:
            await worker.stop()
        await ledger.balances(workers, repeats=True)


async def all_go_on(ledger: Ledger, workers: list[Worker]) -> None:
    """Enqueue more until each pool has taken some of it."""
    before = [len(worker.words("run")) for worker in workers]
    async with asyncio.timeout(PATIENCE):
        while any(len(w.words("run")) == n for w, n in zip(workers, before, strict=True)):
            await ledger.enqueue()
            await ledger.done()
