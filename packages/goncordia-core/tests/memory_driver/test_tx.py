"""Transactions of the memory driver: at the commit, all or nothing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from goncordia.driver import (
    After,
    Change,
    Changed,
    Claim,
    FetchRequest,
    Finish,
    InsertResult,
    JobState,
    ListFilter,
    NewJob,
    Outcome,
    QueueFetch,
)
from goncordia.errors import ConfigurationError, TransactionAbortedError
from goncordia.gontest import MockClock
from goncordia.ids import JobIds, new_session_id
from goncordia.memory import MemoryDriver, MemoryTx

KEY = b"k" * 32


class Lab:
    """A memory driver under a mock clock, with a session."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.driver = MemoryDriver(self.clock)
        self.executor = self.driver.executor()
        self.ids = JobIds(self.clock)
        self.session = new_session_id()
        self._fetches = 0

    def job(self, **fields: Any) -> NewJob:
        return NewJob(**{"id": self.ids(), "kind": "k", "args": b"{}", **fields})

    async def insert(self, **fields: Any) -> UUID:
        job = self.job(**fields)
        (answer,) = await self.executor.insert_many([job])
        assert answer.status == "INSERTED"
        return job.id

    async def claims(self) -> list[Claim]:
        await self.executor.session_open(self.session, "w", 30)
        self._fetches += 1
        request = FetchRequest(self.session, self._fetches, 99, (QueueFetch("default", 99),))
        return [row.claim for row in (await self.executor.fetch(request)).jobs if row.claim]

    async def state(self, job_id: UUID) -> JobState | None:
        (row,) = await self.executor.get_many([job_id])
        return None if row is None else row.state

    async def count(self) -> int:
        return await self.executor.count(ListFilter())


@pytest.fixture
def lab() -> Lab:
    return Lab()


async def test_jobs_become_visible_at_the_commit(lab: Lab) -> None:
    jobs = [lab.job(), lab.job(run_at=After(60))]
    async with lab.driver.transaction() as tx:
        answers = await lab.driver.unwrap_tx(tx).insert_many(jobs)
        assert answers == [InsertResult(job.id, "INSERTED") for job in jobs]
        assert await lab.count() == 0
        await lab.clock.advance(5)
    assert [await lab.state(job.id) for job in jobs] == [JobState.AVAILABLE, JobState.SCHEDULED]
    rows = await lab.executor.get_many([jobs[1].id])
    assert rows[0] is not None
    assert (rows[0].run_at - lab.clock.now()).total_seconds() == 60, "counted from the commit"


def test_the_same_for_synchronous_code(lab: Lab) -> None:
    executor = lab.driver.sync_executor()
    job = lab.job()
    with lab.driver.sync_transaction() as tx:
        inside = lab.driver.unwrap_sync_tx(tx)
        assert inside.insert_many([job]) == [InsertResult(job.id, "INSERTED")]
        assert inside.cancel_many([job.id]) == [Changed("CHANGED", JobState.CANCELLED)]
        assert inside.finish_many([]) == []
        assert executor.get_many([job.id]) == [None]
    (row,) = executor.get_many([job.id])
    assert row is not None
    assert row.state is JobState.CANCELLED


async def test_an_error_rolls_back(lab: Lab) -> None:
    waiting, running = await lab.insert(run_at=After(60)), await lab.insert()
    (claim,) = await lab.claims()
    with pytest.raises(ZeroDivisionError):
        async with lab.driver.transaction() as tx:
            inside = lab.driver.unwrap_tx(tx)
            await inside.insert_many([lab.job()])
            await inside.cancel_many([waiting])
            await inside.finish_many([Finish(claim, "complete")])
            raise ZeroDivisionError
    assert await lab.count() == 2
    assert await lab.state(waiting) is JobState.SCHEDULED
    assert await lab.state(running) is JobState.RUNNING


async def test_a_transaction_sees_its_own_work(lab: Lab) -> None:
    holder = await lab.insert(unique_key=KEY)
    (claim,) = await lab.claims()
    job, other = lab.job(unique_key=KEY), lab.job(unique_key=KEY)
    async with lab.driver.transaction() as tx:
        inside = lab.driver.unwrap_tx(tx)
        assert await inside.insert_many([job]) == [InsertResult(job.id, "DUPLICATE", holder)]
        done = Outcome("DONE", JobState.COMPLETED)
        assert await inside.finish_many([Finish(claim, "complete")]) == [done]
        again = await inside.finish_many([Finish(claim, "complete")])
        assert again == [Outcome("ALREADY", JobState.COMPLETED)]
        assert await inside.insert_many([job, other]) == [
            InsertResult(job.id, "INSERTED"),
            InsertResult(other.id, "DUPLICATE", job.id),
        ]
        assert await inside.insert_many([job]) == [InsertResult(job.id, "REPLAYED")]
        assert await inside.cancel_many([job.id, other.id]) == [
            Changed("CHANGED", JobState.CANCELLED),
            Changed("GONE"),
        ]
    assert await lab.state(holder) is JobState.COMPLETED
    assert await lab.state(job.id) is JobState.CANCELLED
    assert await lab.count() == 2


async def test_a_finish_inside_takes_effect_with_all_that_belongs_to_it(lab: Lab) -> None:
    await lab.insert(group="g", group_limit=1)
    parked = await lab.insert(group="g", group_limit=1)
    (claim,) = await lab.claims()
    async with lab.driver.transaction() as tx:
        await lab.driver.unwrap_tx(tx).finish_many([Finish(claim, "complete", output=b"1")])
        assert await lab.claims() == [], "the group is free only after the commit"
    assert [next_claim.job_id for next_claim in await lab.claims()] == [parked]
    (row,) = await lab.executor.get_many([claim.job_id])
    assert row is not None
    assert row.output == b"1"
    assert await lab.executor.finish_many([Finish(claim, "retry")]) == [
        Outcome("ALREADY", JobState.COMPLETED)
    ]


async def test_a_lost_claim_is_stale_inside_and_does_not_abort(lab: Lab) -> None:
    job_id = await lab.insert()
    (claim,) = await lab.claims()
    await lab.executor.session_close(lab.session)
    other = lab.job()
    async with lab.driver.transaction() as tx:
        inside = lab.driver.unwrap_tx(tx)
        assert await inside.finish_many([Finish(claim, "complete")]) == [
            Outcome("ALREADY", JobState.AVAILABLE)
        ]
        await inside.insert_many([other])
    assert await lab.state(job_id) is JobState.AVAILABLE
    assert await lab.state(other.id) is JobState.AVAILABLE


async def test_what_was_finished_before_is_seen_inside(lab: Lab) -> None:
    await lab.insert()
    await lab.insert()
    first, second = await lab.claims()
    await lab.executor.finish_many([Finish(first, "complete")])
    async with lab.driver.transaction() as tx:
        inside = lab.driver.unwrap_tx(tx)
        assert await inside.finish_many(
            [Finish(first, "complete"), Finish(second, "complete")]
        ) == [
            Outcome("ALREADY", JobState.COMPLETED),
            Outcome("DONE", JobState.COMPLETED),
        ]
        assert await inside.cancel_many([first.job_id]) == [Changed("CONFLICT", JobState.COMPLETED)]
    assert await lab.state(second.job_id) is JobState.COMPLETED


async def test_several_claims_of_one_session_end_together(lab: Lab) -> None:
    for _ in range(3):
        await lab.insert()
    claims = await lab.claims()
    async with lab.driver.transaction() as tx:
        inside = lab.driver.unwrap_tx(tx)
        for claim in claims:
            await inside.finish_many([Finish(claim, "complete")])
        assert len(await lab.executor.held(lab.session, None, 9)) == 3
    assert await lab.executor.held(lab.session, None, 9) == []


async def test_a_claim_lost_before_the_commit_aborts_all_of_it(lab: Lab) -> None:
    job_id = await lab.insert()
    (claim,) = await lab.claims()
    with pytest.raises(TransactionAbortedError) as caught:
        async with lab.driver.transaction() as tx:
            inside = lab.driver.unwrap_tx(tx)
            await inside.insert_many([lab.job()])
            (answer,) = await inside.finish_many([Finish(claim, "complete")])
            assert answer.status == "DONE"
            await lab.executor.session_close(lab.session)
    assert caught.value.outcome == "not_applied"
    assert await lab.state(job_id) is JobState.AVAILABLE
    assert await lab.count() == 1


async def test_a_claim_of_an_ended_session_can_still_be_finished_inside(lab: Lab) -> None:
    await lab.insert()
    (claim,) = await lab.claims()
    rescuer = new_session_id()
    await lab.executor.session_open(rescuer, "r", 10)
    for _ in range(16):
        await lab.clock.advance(2)
        await lab.executor.session_beat(rescuer, 10)
    assert len(await lab.executor.expire(rescuer, 9)) == 1
    async with lab.driver.transaction() as tx:
        await lab.driver.unwrap_tx(tx).finish_many([Finish(claim, "complete")])
    assert await lab.state(claim.job_id) is JobState.COMPLETED
    assert [info.id for info in await lab.executor.session_list()] == [rescuer]


async def test_of_two_transactions_for_one_key_the_second_to_commit_aborts(lab: Lab) -> None:
    first, second = lab.job(unique_key=KEY), lab.job(unique_key=KEY)
    with pytest.raises(TransactionAbortedError):
        async with lab.driver.transaction() as outer:
            await lab.driver.unwrap_tx(outer).insert_many([first])
            async with lab.driver.transaction() as inner:
                await lab.driver.unwrap_tx(inner).insert_many([second])
    assert [await lab.state(job.id) for job in (first, second)] == [None, JobState.AVAILABLE]


async def test_a_duplicate_inside_does_not_abort(lab: Lab) -> None:
    holder = await lab.insert(unique_key=KEY)
    duplicate, other = lab.job(unique_key=KEY), lab.job()
    async with lab.driver.transaction() as tx:
        answers = await lab.driver.unwrap_tx(tx).insert_many([duplicate, other])
        assert answers == [
            InsertResult(duplicate.id, "DUPLICATE", holder),
            InsertResult(other.id, "INSERTED"),
        ]
    assert await lab.count() == 2


async def test_what_does_not_touch_the_answers_does_not_abort(lab: Lab) -> None:
    """A cancel request, a mark, and time passing leave DONE what it is."""
    job_id = await lab.insert()
    (claim,) = await lab.claims()
    async with lab.driver.transaction() as tx:
        inside = lab.driver.unwrap_tx(tx)
        await inside.finish_many([Finish(claim, "retry", After(1))])
        await lab.executor.change_many([Change(job_id, "cancel")])
        await lab.clock.advance(60)
    assert await lab.state(job_id) is JobState.CANCELLED


async def test_listeners_hear_after_the_commit(lab: Lab) -> None:
    listener = lab.driver.listener()
    wakes = listener.wakes()
    async with lab.driver.transaction() as tx:
        await lab.driver.unwrap_tx(tx).insert_many([lab.job(queue="inside")])
        await lab.executor.insert_many([lab.job(queue="outside")])
    assert [(await anext(wakes)).queue for _ in range(2)] == ["outside", "inside"]
    await listener.aclose()


async def test_an_empty_transaction_commits(lab: Lab) -> None:
    async with lab.driver.transaction():
        pass
    assert await lab.count() == 0


async def test_what_is_no_open_transaction_of_this_driver_is_refused(lab: Lab) -> None:
    async with lab.driver.transaction() as tx:
        executor = lab.driver.unwrap_tx(tx)
        with pytest.raises(ConfigurationError, match=r"^tx: .*another MemoryDriver"):
            MemoryDriver().unwrap_tx(tx)
    with pytest.raises(ConfigurationError, match=r"^tx: .*over"):
        lab.driver.unwrap_tx(tx)
    with pytest.raises(ConfigurationError, match=r"^tx: .*over"):
        await executor.insert_many([lab.job()])
    wrong: Any = object()
    for unwrap in (lab.driver.unwrap_tx, lab.driver.unwrap_sync_tx):
        with pytest.raises(ConfigurationError, match=r"^tx: object is not a MemoryTx"):
            unwrap(wrong)


async def test_a_rolled_back_transaction_is_over(lab: Lab) -> None:
    kept: list[MemoryTx] = []
    with pytest.raises(ZeroDivisionError):
        async with lab.driver.transaction() as tx:
            kept.append(tx)
            raise ZeroDivisionError
    with pytest.raises(ConfigurationError, match=r"^tx: .*over"):
        lab.driver.unwrap_tx(kept[0])
