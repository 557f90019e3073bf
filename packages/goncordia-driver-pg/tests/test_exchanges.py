"""Exchanges side by side, and a driver that is closed while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

import asyncpg
import pytest

from goncordia.driver import FetchRequest, Finish, NewJob, QueueFetch
from goncordia.ids import new_session_id
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver
from goncordia_sql import Op, Sql

AnyPgDriver: TypeAlias = AsyncpgDriver | PsycopgDriver
NewJobs: TypeAlias = Callable[..., NewJob]

PATIENCE = 60.0


class Lane:
    """Sends what it was given, and fetches."""

    def __init__(self, driver: AnyPgDriver) -> None:
        self.driver = driver
        self.session = new_session_id()
        self._fetches = 0
        self.finishes: list[Finish] = []

    async def open(self) -> Lane:
        await self.driver.executor().session_open(self.session, "w", 600)
        return self

    def request(self, most: int) -> FetchRequest:
        self._fetches += 1
        return FetchRequest(self.session, self._fetches, most, (QueueFetch("default", most),), "w")

    async def exchange(self, most: int) -> int:
        """How many of the finishes were done."""
        request = self.request(most)
        outcomes, result = await self.driver.executor().exchange(self.finishes, request)
        assert result is not None
        # What another's fetch holds at that moment is sent again.
        busy = [
            finish
            for finish, outcome in zip(self.finishes, outcomes, strict=True)
            if outcome.status == "BUSY"
        ]
        done = len(outcomes) - len(busy)
        claims = [row.claim for row in result.jobs if row.claim is not None]
        self.finishes = busy + [Finish(claim, "complete") for claim in claims]
        return done


def noted(operation: Op[Any], sent: list[Sql]) -> Op[Any]:
    """The operation, with its statements noted."""
    answer: Any = None
    while True:
        try:
            step = operation.send(answer)
        except StopIteration as end:
            return end.value
        sent.append(step.sql)
        answer = yield step


async def test_claims_of_groups_are_ended_before_groups_are_locked_to_claim(
    asyncpg_driver: AsyncpgDriver, new_job: NewJobs
) -> None:
    """Else two exchanges, each with the lock that the other wants, are a deadlock."""
    operations, lane = asyncpg_driver._operations, await Lane(asyncpg_driver).open()
    jobs = [new_job(group=f"g{n % 4}", group_limit=2) for n in range(8)]
    await asyncpg_driver.executor().insert_many(jobs)
    await lane.exchange(4)
    operations.fetch._walks.clear()  # it begins as every twenty-first does, in one statement
    sent: list[Sql] = []
    exchange = noted(operations.exchange(lane.finishes, lane.request(4)), sent)
    outcomes, result = await asyncpg_driver._runner.once(await asyncpg_driver._pool(), exchange)
    assert [each.status for each in outcomes] == ["DONE"] * 4
    assert len(result.jobs) == 4
    groups = operations.groups
    ends = [n for n, sql in enumerate(sent) if sql is groups.entering]
    locks = [
        n for n, sql in enumerate(sent) if sql in {groups._lock_to_park, groups._lock_to_claim}
    ]
    assert ends
    assert locks
    assert max(ends) < min(locks)


async def test_exchanges_of_groups_are_no_deadlock(
    driver: AnyPgDriver, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goncordia_sql.postgres.fetch._WALKS", 0)
    total, undone = 120, []
    jobs = [new_job(group=f"g{n % 4}", group_limit=3) for n in range(total)]
    await driver.executor().insert_many(jobs)
    ours = driver._runner.ours

    def noting(error: Exception, *args: Any, **details: Any) -> Exception:
        undone.append(error)
        return ours(error, *args, **details)

    monkeypatch.setattr(driver._runner, "ours", noting)
    done = 0

    async def work(lane: Lane) -> None:
        nonlocal done
        while done < total:
            ended = await lane.exchange(6)
            done += ended
            if not lane.finishes:
                await asyncio.sleep(0.005)

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*[work(await Lane(driver).open()) for _ in range(3)])
    assert undone == []


async def test_a_connection_in_use_while_the_driver_closes_is_closed_after_it(
    make: Any, db: asyncpg.Connection, migrated: str, new_job: NewJobs
) -> None:
    driver = make()
    await driver.ready()
    async with asyncio.timeout(PATIENCE):
        async with db.transaction():
            await db.execute(f'LOCK TABLE "{migrated}".job IN EXCLUSIVE MODE')
            inserting = asyncio.create_task(driver.executor().insert_many([new_job()]))
            waiting = """
                SELECT pid FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))
                """
            while (pid := await db.fetchval(waiting)) is None:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)
            await driver.aclose()
        assert [each.status for each in await inserting] == ["INSERTED"]
        there = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1"
        while await db.fetchval(there, pid):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
    await driver.aclose()


@pytest.mark.parametrize("group_lock", [None, "UPDATE"])
async def test_a_fetch_reads_no_further_of_a_group_that_it_must_leave(
    asyncpg_driver: AsyncpgDriver, db: asyncpg.Connection, new_job: NewJobs, group_lock: str | None
) -> None:
    """While somebody's long transaction ends a job of it, or a fetch is at it: it cannot park."""
    driver, lane = asyncpg_driver, await Lane(asyncpg_driver).open()
    operations, executor = driver._operations, driver.executor()
    await executor.insert_many([new_job(group="g", group_limit=1)])
    await lane.exchange(1)
    waiting = [new_job(group="g", group_limit=1 + n % 2) for n in range(300)]
    other = new_job(priority=-1)
    await executor.insert_many([*waiting, other])
    sent: list[Sql] = []
    async with db.transaction():
        await driver.unwrap_tx(db).finish_many(lane.finishes)
        if group_lock is None:
            # It can claim of it, and does of those that may run beside the one that ends.
            wanted = [waiting[1].id, other.id]
        else:
            await db.execute(f'SELECT 1 FROM "{driver.schema}".job_group FOR {group_lock}')
            wanted = [other.id]
        fetch = noted(operations.fetch.fetch(lane.request(5)), sent)
        found = await driver._runner.once(await driver._pool(), fetch)
    assert [row.id for row in found.jobs] == wanted
    assert found.more is (group_lock is not None)
    assert sum(sql is operations.fetch._ready for sql in sent) <= 3
