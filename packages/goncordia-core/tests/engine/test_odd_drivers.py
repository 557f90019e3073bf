"""What drivers and event loops do that one does not expect."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec
import pytest

from goncordia import Job, JobState
from goncordia.driver import JobRow
from goncordia.engine.events import JobFinished, JobGivenBack

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


async def test_a_driver_that_cancels_its_own_calls_ends_no_part_of_the_engine(
    stand: Stand,
) -> None:
    gate = stand.gated(max_attempts=1)
    cancelled: Any = asyncio.CancelledError()  # an Exception as far as the wire knows
    for name in ("session_open", "exchange", "session_beat", "held", "expire", "mark_many"):
        stand.wire.fail(name, cancelled)
    handle = await stand.enqueue()
    async with stand.working() as pool:
        await stand.advance(40)
        assert gate.waiting == 1
        stand.wire.fail("exchange", cancelled, only=lambda args: bool(args[0]))
        stand.wire.fail("finish_many", cancelled)
        gate.open()
        await stand.advance(5)
        assert await stand.state(handle) == "completed"
        engine = stand.engine(pool)
        assert not any(task.done() for task in (*engine._lane_tasks, *engine._background))
        assert stand.wire.count("session_beat") >= 8
        assert stand.wire.count("expire") >= 3


async def test_one_hung_fetch_does_not_keep_the_whole_room(stand: Stand) -> None:
    """It may bring jobs for every slot, but nobody knows when."""
    gate = stand.gated()
    hung = stand.wire.hold("exchange", after=True, only=lambda args: args[1] is not None)
    first = await stand.enqueue(Work(1))
    async with stand.working(concurrency=1, lease=60, heartbeat_interval=5):
        assert (hung.reached, await stand.state(first)) == (1, "running")
        second = await stand.enqueue(Work(2))
        await stand.advance(1)
        assert gate.waiting == 0
        await stand.advance(3)
        assert (gate.waiting, await stand.state(second)) == (1, "running")
        # At last it is answered: there is no slot any more, and the job goes back.
        hung.let_go()
        await stand.advance(0)
        row = await stand.row(first)
        assert (row.state, row.attempt, gate.waiting) == (JobState.AVAILABLE, 0, 1)
        assert [event.reason for event in stand.seen(JobGivenBack)] == ["no room"]
        gate.open()
        await stand.advance(2)
    assert (await stand.state(first), await stand.state(second)) == ("completed", "completed")
    assert gate.most == 1


async def test_a_late_answer_that_finds_room_is_taken(stand: Stand) -> None:
    gate = stand.gated()
    hung = stand.wire.hold("exchange", after=True, only=lambda args: args[1] is not None)
    first = await stand.enqueue(Work(1))
    async with stand.working(concurrency=2, lease=60):
        await stand.advance(5)
        await stand.enqueue(Work(2))
        await stand.advance(1)
        assert gate.waiting == 1
        hung.let_go()
        await stand.advance(0)
        assert (gate.waiting, await stand.state(first)) == (2, "running")
        gate.open()
    assert stand.seen(JobGivenBack) == []


async def test_a_hung_lane_does_not_put_off_the_look_that_was_planned() -> None:
    """The next job's time is known; sending a result in between must not move it."""
    stand = Stand(wakes=False)
    times: list[float] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        times.append(stand.clock.monotonic())
        await stand.clock.sleep(0.5)

    await stand.enqueue(Work(1))
    later = await stand.enqueue(Work(2), delay=1)
    async with stand.working(poll_interval=10, concurrency=5):
        stand.wire.hold("exchange", only=lambda args: bool(args[0]))
        await stand.advance(5)
        assert await stand.state(later) != "scheduled"
        # Two seconds after the result was sent, the other lane may use the room.
        assert [round(each, 3) for each in times] == [0, 2.5]
        stand.wire.heal()


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


@pytest.mark.parametrize("in_transaction", [False, True])
def test_results_on_their_way_are_sent_again_when_the_loop_ends(in_transaction: bool) -> None:
    """What sent them was cancelled with every other task."""
    stand = Stand(real=True)

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> str:
        if in_transaction:
            with pytest.raises(ZeroDivisionError):
                async with stand.memory.transaction() as tx:
                    await job.complete_tx(tx)
                    raise ZeroDivisionError
        return "done"

    async def main() -> None:
        name = "finish_many" if in_transaction else "exchange"
        hung = stand.wire.hold(name, only=lambda args: bool(args[0]))
        await stand.enqueue()
        await stand.pool(retry_policy=lambda _: 1000).start()
        await stand.until(lambda: hung.reached)

    asyncio.run(main())
    (job,) = stand.memory.store.jobs.values()
    row = job.row(stand.clock.now())
    assert row.claim is None
    if in_transaction:
        assert [error.message for error in row.errors] == ["transaction not committed"]
    else:
        assert (row.state, row.output) == (JobState.COMPLETED, b'"done"')


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
        if job.args.n % 1000 == 999:
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
