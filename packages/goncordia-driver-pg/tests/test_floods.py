"""Many jobs that become due, or have to be parked, at once: no call takes long over them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from math import inf
from typing import Any, TypeAlias

import pytest

from goncordia.driver import After, FetchRequest, FetchResult, NewJob, QueueFetch
from goncordia.gontest import MockClock
from goncordia.ids import new_session_id

NewJobs: TypeAlias = Callable[..., NewJob]


class Worker:
    """A session that fetches five jobs at a time, of two queues."""

    def __init__(self, driver: Any, clock: MockClock) -> None:
        self.driver = driver
        self.clock = clock
        self._session = new_session_id()
        self._fetches = 0

    async def open(self) -> Worker:
        await self.driver.executor().session_open(self._session, "w", 600)
        return self

    async def insert(self, *jobs: NewJob) -> None:
        await self.driver.executor().insert_many(list(jobs))

    async def fetch(self) -> FetchResult:
        self._fetches += 1
        queues = tuple(QueueFetch(name, 5) for name in ("default", "second"))
        request = FetchRequest(self._session, self._fetches, 5, queues, "w")
        found: FetchResult = await self.driver.executor().fetch(request)
        return found


@pytest.fixture
async def worker(make: Any) -> AsyncIterator[Worker]:
    clock = MockClock()
    async with make(clock=clock) as driver:
        await driver.migrate()
        yield await Worker(driver, clock).open()


def ids(result: FetchResult) -> list[Any]:
    return [row.id for row in result.jobs]


async def test_a_flood_is_made_ready_call_by_call(
    worker: Worker, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goncordia_sql.postgres.fetch._PROMOTED_AT_ONCE", 10)
    flood = [new_job(run_at=After(1), priority=n) for n in range(25)]
    other = new_job(queue="second")
    await worker.insert(*flood, other)
    await worker.clock.advance(1)
    for _ in range(2):
        result = await worker.fetch()
        # Nothing of the second queue either, while the first one has more.
        assert (result.jobs, result.more, result.next_due_in) == ([], True, 0.0)
    # Only now is it known which are the first.
    result = await worker.fetch()
    assert ids(result) == [job.id for job in flood[:-6:-1]]
    assert (result.more, result.next_due_in) == (True, 0.0)


async def test_a_flood_is_parked_call_by_call(
    worker: Worker, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goncordia_sql.ops.fetch._PARKED_AT_ONCE", 10)
    flood = [new_job(group="g", group_limit=1, run_at=After(1), priority=1) for _ in range(25)]
    other = new_job()
    await worker.insert(*flood, other)
    await worker.clock.advance(1)
    found = [await worker.fetch() for _ in range(3)]
    assert [ids(result) for result in found] == [[flood[0].id], [], [other.id]]
    assert [result.more for result in found] == [True, True, False]
    assert found[2].next_due_in == inf
