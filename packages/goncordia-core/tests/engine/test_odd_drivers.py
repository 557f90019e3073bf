"""What drivers and event loops do that one does not expect."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec
import pytest

from goncordia import Job, JobState
from goncordia.driver import JobRow
from goncordia.engine.events import JobFinished

from .stand import Gate, Stand, Work
from .wire import away


@pytest.mark.parametrize("name", ["exchange", "finish_many", "mark_many"])
async def test_a_wrong_number_of_answers_is_no_answer(stand: Stand, name: str) -> None:
    gate = Gate()

    @stand.registry.worker(Work, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    executor: Any = stand.driver.executor()
    method, wrong = getattr(executor, name), [3]

    async def short(*args: Any) -> Any:
        answer = await method(*args)
        if wrong[0] and args[0]:
            wrong[0] -= 1
            return ([], answer[1]) if name == "exchange" else []
        return answer

    vars(executor)[name] = short
    handle = await stand.enqueue()
    async with stand.working() as pool:
        if name == "finish_many":
            stand.wire.fail("exchange", away(), only=lambda args: bool(args[0]))
        gate.open()
        await stand.advance(60)
        assert await stand.state(handle) == "completed"
        assert not any(task.done() for task in stand.engine(pool)._lane_tasks)
        await stand.enqueue()
        await stand.advance(1)
        assert gate.came == 2


async def test_an_error_that_the_driver_did_not_translate_is_worth_repeating(stand: Stand) -> None:
    """Else a job that was completed would run again."""
    gate = Gate()

    @stand.registry.worker(Work, max_attempts=1)
    async def work(job: Job[Work]) -> str:
        await gate.pass_through()
        return "done"

    stand.wire.fail("mark_many", ConnectionResetError("by peer"), times=2)
    handle = await stand.enqueue()
    async with stand.working():
        await stand.advance(5)
        assert gate.waiting == 1
        stand.wire.fail("exchange", TimeoutError(), only=lambda args: bool(args[0]))
        stand.wire.fail("finish_many", EOFError(), times=2)
        gate.open()
        await stand.advance(5)
    row = await stand.row(handle)
    assert (row.state, row.output, gate.came) == (JobState.COMPLETED, b'"done"', 1)


async def test_what_a_driver_notes_on_its_claims_is_its_own_affair(stand: Stand) -> None:
    """It may be another note each time: the claim is the same, and its job goes on."""
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    executor: Any = stand.driver.executor()
    held, beat = executor.held, executor.session_beat

    def noted(row: JobRow) -> JobRow:
        claim = msgspec.structs.replace(row.claim, ref=b"elsewhere") if row.claim else None
        return msgspec.structs.replace(row, claim=claim)

    async def held_elsewhere(*args: Any) -> list[JobRow]:
        return [noted(row) for row in await held(*args)]

    async def beat_elsewhere(*args: Any) -> Any:
        answer = await beat(*args)
        cancels = tuple(msgspec.structs.replace(each, ref=b"beyond") for each in answer.cancels)
        return msgspec.structs.replace(answer, cancels=cancels)

    vars(executor).update(held=held_elsewhere, session_beat=beat_elsewhere)
    handle = await stand.enqueue()
    async with stand.working(lease=30):
        await stand.advance(60)
        assert (await stand.state(handle), gate.waiting) == ("running", 1)
        await stand.client.cancel(handle)
        await stand.advance(1)
        assert (await stand.state(handle), gate.waiting) == ("cancelled", 0)


# ---------------------------------------------------------------- event loops


def test_a_loop_that_ends_without_a_stop_fails_no_attempt() -> None:
    """``asyncio.run`` cancels every task at its end, the handlers too."""
    stand = Stand(real=True)
    started = []

    @stand.registry.worker(Work, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        started.append(job.id)
        await asyncio.Event().wait()

    async def main() -> None:
        for n in range(5):
            await stand.enqueue(Work(n))
        await stand.pool().start()
        await stand.until(lambda: len(started) == 5)

    asyncio.run(main())
    found = [job.row(stand.clock.now()) for job in stand.memory.store.jobs.values()]
    assert [(row.claim, row.attempt, row.errors) for row in found] == [(None, 0, ())] * 5
    assert stand.memory.store.session_list() == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks() -> None:
    """A handler that never waits is over before its task is made."""
    stand = Stand()
    seen: list[int] = []
    most: list[int] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        seen.append(job.args.n)
        most.append(stand.pools[0].running)
        if job.args.n % 10 == 0:
            await asyncio.sleep(0)

    async def main() -> None:
        factory: Any = getattr(asyncio, "eager_task_factory", None)  # absent from 3.11
        asyncio.get_running_loop().set_task_factory(factory)
        for n in range(3000):
            await stand.enqueue(Work(n))
        async with stand.working(concurrency=4, max_pending=2000):
            for _ in range(50):
                await stand.advance(0)
            assert len(stand.seen(JobFinished)) == 3000

    asyncio.run(main())
    assert sorted(seen) == list(range(3000))
    assert max(most) <= 4
