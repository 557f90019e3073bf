"""Finishing a job inside the worker's own transaction."""

from __future__ import annotations

import asyncio

import pytest

from goncordia import (
    Discard,
    Job,
    JobState,
    Snooze,
    StaleClaimError,
)
from goncordia.driver import Finish
from goncordia.engine.events import JobFinished, SessionLost
from goncordia.errors import TransactionNotCommittedError

from .stand import Gate, Other, Stand, Work
from .wire import away


class RollBackError(Exception):
    """Leaves the transaction without a commit."""


def confirmations(stand: Stand) -> list[Finish]:
    batches: list[list[Finish]] = [args[0] for args in stand.wire.given("finish_many")]
    assert all(len(batch) == 1 for batch in batches)  # each goes alone
    return [batch[0] for batch in batches]


async def test_a_commit_completes_the_job_with_its_output(stand: Stand) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> str:
        async with stand.memory.transaction() as tx:
            await stand.client.enqueue_tx(tx, Other(1))
            await job.complete_tx(tx, {"by": "transaction"})
        row = await stand.row(job.id)
        assert (row.state, row.output) == (JobState.COMPLETED, b'{"by":"transaction"}')
        return "ignored"

    handle = await stand.enqueue(Work(), queue="default")
    async with stand.working(registry=stand.registry) as pool:
        await stand.advance(1)
        assert len(stand.engine(pool).claims) == 0
    row = await stand.row(handle)
    assert (row.state, row.attempt, row.errors) == (JobState.COMPLETED, 1, ())
    assert row.output == b'{"by":"transaction"}'
    (asked,) = confirmations(stand)
    assert asked.claim.job_id == handle.id
    assert [event.to for event in stand.seen(JobFinished)] == ["complete"]
    page = await stand.client.list()
    assert sorted(job.kind for job in page.jobs) == ["other", "work"]


async def test_the_client_s_form_is_the_same(stand: Stand) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        async with stand.memory.transaction() as tx:
            await stand.client.complete_tx(tx, job, output=5)

    handle = await stand.enqueue()
    async with stand.working():
        pass
    assert (await stand.row(handle)).output == b"5"


@pytest.mark.parametrize(("max_attempts", "state"), [(2, "retryable"), (1, "discarded")])
async def test_what_was_not_committed_has_failed(
    stand: Stand, max_attempts: int, state: str
) -> None:
    told: list[BaseException] = []

    @stand.registry.worker(Work, max_attempts=max_attempts, retry_policy=lambda _: 100)
    async def work(job: Job[Work]) -> str:
        try:
            async with stand.memory.transaction() as tx:
                await stand.client.enqueue_tx(tx, Other(1))
                await job.complete_tx(tx, "lost")
                raise RollBackError
        except RollBackError:
            return "as if nothing had happened"

    handle = await stand.enqueue()
    async with stand.working(error_handler=lambda job, error: told.append(error)):
        await stand.advance(1)
    row = await stand.row(handle)
    assert (row.state.value, row.attempt, row.output) == (state, 1, None)
    (error,) = row.errors
    assert (error.type, error.message) == (
        "goncordia.errors.TransactionNotCommittedError",
        "transaction not committed",
    )
    assert [type(each) for each in told] == [TransactionNotCommittedError]
    (finished,) = stand.seen(JobFinished)
    assert (finished.to, finished.error) == ("retry" if max_attempts > 1 else "discard", told[0])
    assert [job.kind for job in (await stand.client.list()).jobs] == ["work"]


@pytest.mark.parametrize(
    ("raised", "state", "attempt", "errors"),
    [
        (ValueError("the reason"), "retryable", 1, ["the reason"]),
        (Discard("for good"), "discarded", 1, ["for good"]),
        (Snooze(60), "scheduled", 0, []),
    ],
)
async def test_what_rolled_it_back_says_what_becomes_of_the_job(
    stand: Stand, raised: Exception, state: str, attempt: int, errors: list[str]
) -> None:
    @stand.registry.worker(Work, retry_policy=lambda _: 100)
    async def work(job: Job[Work]) -> None:
        async with stand.memory.transaction() as tx:
            await job.complete_tx(tx)
            raise raised

    handle = await stand.enqueue()
    async with stand.working():
        await stand.advance(1)
    row = await stand.row(handle)
    assert (row.state.value, row.attempt) == (state, attempt)
    assert [error.message for error in row.errors] == errors


async def test_an_error_after_the_commit_changes_nothing(stand: Stand) -> None:
    told: list[BaseException] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        async with stand.memory.transaction() as tx:
            await job.complete_tx(tx, "done")
        raise ValueError("too late")

    handle = await stand.enqueue()
    async with stand.working(error_handler=lambda job, error: told.append(error)):
        await stand.advance(1)
    # Nor is anybody told of a failure.
    assert told == []
    (finished,) = stand.seen(JobFinished)
    assert (finished.to, finished.error) == ("complete", None)
    row = await stand.row(handle)
    assert (row.state, row.output, row.errors) == (JobState.COMPLETED, b'"done"', ())


async def test_a_run_that_lost_its_job_cannot_commit(stand: Stand) -> None:
    gate, raised = Gate(), list[Exception]()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()
        try:
            async with stand.memory.transaction() as tx:
                await stand.client.enqueue_tx(tx, Other(1))
                await job.complete_tx(tx)
        except StaleClaimError as error:
            raised.append(error)
            raise

    handle = await stand.enqueue()
    async with stand.working():
        hand = stand.hand()
        await hand.finish((await stand.row(handle)).claim, "release")
        (taken,) = await hand.claim()
        gate.open()
        await stand.advance(1)
        assert (await stand.row(handle)).claim == taken.claim
    (error,) = raised
    assert str(handle.id) in str(error)
    assert "roll the transaction back" in str(error)
    assert [job.kind for job in (await stand.client.list()).jobs] == ["work"]


async def test_an_answer_that_was_lost_is_asked_for_again(stand: Stand) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        async with stand.memory.transaction() as tx:
            await job.complete_tx(tx, "done")

    handle = await stand.enqueue()
    stand.wire.fail("finish_many", away(), times=2)
    stand.wire.fail("finish_many", away(), after=True)
    async with stand.working() as pool:
        await stand.advance(10)
        assert len(confirmations(stand)) == 4
        assert len(stand.engine(pool).claims) == 0
    assert (await stand.row(handle)).output == b'"done"'


async def test_its_slot_is_free_while_it_is_confirmed(stand: Stand) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        if job.args.n == 1:
            async with stand.memory.transaction() as tx:
                await job.complete_tx(tx)

    await stand.enqueue(Work(1))
    slow = stand.wire.hold("finish_many")
    async with stand.working(concurrency=1):
        assert slow.reached == 1
        second = await stand.enqueue(Work(2))
        await stand.advance(0.1)
        assert await stand.state(second) == "completed"
        slow.let_go()


async def test_a_session_lost_while_it_is_confirmed_interrupts_nothing(stand: Stand) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        async with stand.memory.transaction() as tx:
            await job.complete_tx(tx)

    handle = await stand.enqueue()
    slow = stand.wire.hold("finish_many")
    async with stand.working() as pool:
        assert slow.reached == 1
        stand.end_sessions()
        await stand.advance(5)
        assert [event.runs for event in stand.seen(SessionLost)] == [0]
        slow.let_go()
        await stand.advance(0)
        assert len(stand.engine(pool).claims) == 0
    assert await stand.state(handle) == "completed"


async def test_a_stop_waits_for_the_confirmation(stand: Stand) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        async with stand.memory.transaction() as tx:
            await job.complete_tx(tx)
            raise RollBackError

    handle = await stand.enqueue()
    pool = stand.pool(retry_policy=lambda _: 100)
    slow = stand.wire.hold("finish_many")
    await pool.start()
    await stand.advance(0)
    assert slow.reached == 1
    stopping = asyncio.create_task(pool.stop())
    await stand.advance(5)
    assert not stopping.done()
    slow.let_go()
    await stand.advance(0)
    assert stopping.done()
    assert await stand.state(handle) == "retryable"


async def test_a_shutdown_in_the_transaction_uses_no_attempt(stand: Stand) -> None:
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        async with stand.memory.transaction() as tx:
            await job.complete_tx(tx)
            await gate.pass_through()

    handle = await stand.enqueue()
    async with stand.working(shutdown_timeout=0):
        assert gate.waiting == 1
    row = await stand.row(handle)
    assert (row.state, row.attempt, row.errors) == (JobState.AVAILABLE, 0, ())
