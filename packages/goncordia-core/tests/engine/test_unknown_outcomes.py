"""Answers that never came: finishes are repeated, fetches never; what they claimed goes back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from goncordia import DriverBusyError, DriverError, JobState
from goncordia.driver import FetchRequest, FetchResult, Finish, Outcome
from goncordia.engine.events import ResultLost
from goncordia.memory.executor import MemoryExecutor

from .stand import Stand, Work
from .wire import away


def results(args: tuple[Any, ...]) -> bool:
    """An exchange that brings results."""
    return bool(args[0])


def fetches(args: tuple[Any, ...]) -> bool:
    """An exchange that asks for jobs."""
    return args[1] is not None


def requests(stand: Stand) -> list[FetchRequest]:
    return [args[1] for args in stand.wire.given("exchange") if args[1] is not None]


def finishes(stand: Stand) -> list[Finish]:
    sent = [args[0] for args in stand.wire.given("exchange")]
    sent += [args[0] for args in stand.wire.given("finish_many")]
    return [finish for batch in sent for finish in batch]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("times", [1, 5])
async def test_results_are_repeated_until_they_are_answered(
    stand: Stand, after: bool, times: int
) -> None:
    gate = stand.gated()
    handles = [await stand.enqueue(Work(n)) for n in range(3)]
    async with stand.working() as pool:
        stand.wire.forget()
        stand.wire.fail("exchange", away(), after=after, only=results)
        stand.wire.fail("finish_many", away(), after=after, times=times)
        gate.open()
        await stand.advance(20)
        assert [await stand.state(handle) for handle in handles] == ["completed"] * 3
        assert len(stand.engine(pool).claims) == 0
        sent = [finish for finish in finishes(stand) if finish.claim.job_id == handles[0].id]
        assert len(sent) == times + 2
        assert len(set(map(repr, sent))) == 1  # unchanged
    assert gate.came == 3


async def test_a_result_whose_job_a_transaction_holds_is_sent_again_a_little_later(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, other = await stand.enqueue(Work(0)), await stand.enqueue(Work(1))
    exchange = MemoryExecutor.exchange
    answered: list[str] = []

    async def holding(
        self: MemoryExecutor, sent: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        free = [each for each in sent if each.claim.job_id != held.id or len(answered) >= 2]
        outcomes, result = await exchange(self, free, request)
        given = iter(outcomes)
        all_of_them = [next(given) if each in free else Outcome("BUSY") for each in sent]
        answered.extend("BUSY" for each in all_of_them if each.status == "BUSY")
        return all_of_them, result

    monkeypatch.setattr(MemoryExecutor, "exchange", holding)
    gate = stand.gated()
    gate.open()
    async with stand.working() as pool:
        await stand.advance(0.005)
        assert await stand.state(other) == "completed"
        assert await stand.state(held) == "running"
        assert answered == ["BUSY"]  # not again and again
        await stand.advance(2)
        assert await stand.state(held) == "completed"
        assert answered == ["BUSY", "BUSY"]
        assert len(stand.engine(pool).claims) == 0
    assert gate.came == 2


async def test_while_a_transaction_holds_a_job_its_result_is_sent_less_and_less(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = MemoryExecutor.exchange
    sent: list[float] = []

    async def holding(
        self: MemoryExecutor, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        _, result = await exchange(self, [], request)
        sent.extend(stand.clock.monotonic() for _ in finishes)
        return [Outcome("BUSY") for _ in finishes], result

    monkeypatch.setattr(MemoryExecutor, "exchange", holding)
    handle = await stand.enqueue()
    gate = stand.gated()
    gate.open()
    async with stand.working(shutdown_timeout=0.1):
        await stand.advance(10)
        assert await stand.state(handle) == "running"
        between = [b - a for a, b in itertools.pairwise(sent)]
        assert 0.009 < between[0] < 0.031
        assert min(between[5:]) > 0.09
        assert max(between) < 0.31
        monkeypatch.undo()
        await stand.advance(1)
        assert await stand.state(handle) == "completed"


async def test_a_result_that_was_not_taken_yet_was_not_stored(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = MemoryExecutor.exchange

    async def holding(
        self: MemoryExecutor, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        _, result = await exchange(self, [], request)
        return [Outcome("BUSY") for _ in finishes], result

    monkeypatch.setattr(MemoryExecutor, "exchange", holding)
    gate = stand.gated()
    gate.open()
    handle = await stand.enqueue()
    async with stand.working():
        await stand.advance(0.1)
        row = await stand.row(handle)
        assert row.claim is not None
        taken_back = Finish(row.claim, "discard", rescue=True)
        await stand.memory.executor().finish_many([taken_back])
        monkeypatch.undo()
        await stand.advance(1)
    (lost,) = stand.seen(ResultLost)
    assert (lost.state, lost.certain) == (JobState.DISCARDED, True)


@pytest.mark.parametrize("times", [1, 3])
async def test_a_fetch_whose_answer_was_lost_is_given_back_and_never_repeated(
    stand: Stand, times: int
) -> None:
    gate = stand.gated()
    gate.open()
    stand.wire.fail("exchange", away(), after=True, times=times, only=fetches)
    handles = [await stand.enqueue(Work(n)) for n in range(3)]
    async with stand.working():
        await stand.advance(20)
    rows = [await stand.row(handle) for handle in handles]
    assert [(row.state, row.attempt) for row in rows] == [(JobState.COMPLETED, 1)] * 3
    assert gate.came == 3
    numbers = [(request.session, request.fetch_no) for request in requests(stand)]
    assert len(numbers) == len(set(numbers))


async def test_what_it_claimed_goes_back_at_once(stand: Stand) -> None:
    gate = stand.gated()
    stand.wire.fail("exchange", away(), after=True, only=fetches)
    handle = await stand.enqueue()
    async with stand.working(poll_interval=1000):
        # In the same moment, and not only after half a lease; and then it was fetched again.
        assert stand.wire.count("held") == 1
        released = [finish for finish in finishes(stand) if finish.to == "release"]
        assert [finish.claim.job_id for finish in released] == [handle.id]
        row = await stand.row(handle)
        assert (row.state, row.attempt, gate.came) == (JobState.RUNNING, 1, 1)


async def test_a_fetch_that_certainly_did_nothing_asks_for_nothing(stand: Stand) -> None:
    stand.gated()
    stand.wire.fail("exchange", DriverBusyError("busy", outcome="not_applied"), times=3)
    async with stand.working():
        await stand.advance(5)
        assert stand.wire.count("held") == 0


async def test_a_fetch_that_takes_effect_late_is_found_by_the_next_question(stand: Stand) -> None:
    """The call was given up long ago; the statement comes through after the first question."""
    gate = stand.gated()
    gate.open()
    async with stand.working(lease=30, heartbeat_interval=5):
        zombie = stand.wire.hold("exchange", only=fetches)
        await stand.advance(1)
        assert zombie.reached == 1
        await stand.advance(15)  # half a lease: given up, and asked
        assert stand.wire.count("held") >= 1
        first = await stand.enqueue(Work(1), run_at=stand.clock.now())
        await stand.advance(5)
        assert await stand.state(first) == "completed"
        # Jobs that only the zombie can have claimed:
        later = await stand.enqueue(Work(2), queue="default", delay=0.0)
        stand.wire.hold("exchange", only=fetches)
        stand.wire.hold("exchange", only=fetches)
        zombie.let_go()
        await stand.advance(0.1)
        row = await stand.row(later)
        assert (row.state, row.claim and row.claim.fetch_no) == (
            JobState.RUNNING,
            requests(stand)[0].fetch_no + 1,
        )
        assert gate.came == 1
        await stand.advance(40)
        row = await stand.row(later)
        assert (row.state, row.attempt, gate.came) == (JobState.COMPLETED, 1, 2)


async def test_claims_of_a_fetch_in_progress_are_left_alone(stand: Stand) -> None:
    """They are unknown to the pool when it asks, since their fetch is not answered yet."""
    gate = stand.gated()
    async with stand.working(lanes=1) as pool:
        slow = stand.wire.hold("exchange", after=True, only=fetches)
        handle = await stand.enqueue()
        await stand.advance(0.1)
        assert (slow.reached, await stand.state(handle)) == (1, "running")
        reconciler = stand.engine(pool)._reconciler
        await reconciler._ask()
        await stand.advance(0.1)
        assert await stand.state(handle) == "running"
        slow.let_go()
        await stand.advance(0.1)
        assert gate.waiting == 1


async def test_claims_that_came_while_it_asked_are_left_alone(stand: Stand) -> None:
    """The question was answered before the fetch was, and the answer came after it."""
    gate = stand.gated()
    async with stand.working(lanes=1) as pool:
        slow_fetch = stand.wire.hold("exchange", after=True, only=fetches)
        handle = await stand.enqueue()
        await stand.advance(0.1)
        slow_question = stand.wire.hold("held", after=True)
        stand.engine(pool)._reconciler.look(stand.session(pool), 0)
        await stand.advance(0.1)
        assert slow_question.reached == 1
        slow_fetch.let_go()
        await stand.advance(0.1)
        assert gate.waiting == 1
        slow_question.let_go()
        await stand.advance(0.1)
        assert await stand.state(handle) == "running"
        gate.open()
        await stand.advance(0.1)
        assert await stand.state(handle) == "completed"


async def test_an_answer_about_a_lost_session_gives_nothing_back(stand: Stand) -> None:
    """Those jobs are the rescuers'; a handler of theirs may still be running."""
    gate = stand.gated()
    handle = await stand.enqueue()
    async with stand.working(rescue_interval=1000) as pool:
        slow = stand.wire.hold("held", after=True)
        stand.engine(pool)._reconciler.look(stand.session(pool), 0)
        await stand.advance(0)
        assert (slow.reached, gate.waiting) == (1, 1)
        stand.end_sessions()
        await stand.advance(5)
        assert gate.waiting == 0
        slow.let_go()
        await stand.advance(1)
        row = await stand.row(handle)
        assert (row.state, row.attempt) == (JobState.RUNNING, 1)


async def test_running_claims_are_never_given_back(stand: Stand) -> None:
    gate = stand.gated()
    handles = [await stand.enqueue(Work(n)) for n in range(5)]
    async with stand.working(lease=30):
        await stand.advance(100)
        assert stand.wire.count("held") >= 6
        assert [await stand.state(handle) for handle in handles] == ["running"] * 5
        gate.open()
        await stand.advance(0)
    assert gate.came == 5


async def test_a_question_that_fails_is_asked_again(stand: Stand) -> None:
    gate = stand.gated()
    gate.open()
    stand.wire.fail("exchange", away(), after=True, only=fetches)
    stand.wire.fail("held", away(), times=2)
    handle = await stand.enqueue()
    async with stand.working(lease=30):
        await stand.advance(14)
        assert await stand.state(handle) == "running"
        await stand.advance(20)
        assert await stand.state(handle) == "completed"


async def test_results_and_a_fetch_in_one_exchange_are_told_apart(stand: Stand) -> None:
    gate = stand.gated()
    first = await stand.enqueue(Work(1))
    async with stand.working(concurrency=1):
        second = await stand.enqueue(Work(2))
        stand.wire.fail("exchange", away(), after=True, only=lambda a: results(a) and fetches(a))
        gate.open()
        await stand.advance(20)
        assert [await stand.state(job) for job in (first, second)] == ["completed"] * 2
        assert (await stand.row(second)).attempt == 1
        numbers = [request.fetch_no for request in requests(stand)]
        assert len(numbers) == len(set(numbers))


async def test_a_hung_call_is_given_up_after_half_a_lease(stand: Stand) -> None:
    gate = stand.gated()
    handle = await stand.enqueue()
    async with stand.working(lease=30):
        hung = stand.wire.hold("exchange", only=results)
        gate.open()
        await stand.advance(14)
        assert (hung.reached, await stand.state(handle)) == (1, "running")
        await stand.advance(2)
        assert await stand.state(handle) == "completed"
        hung.let_go()  # it takes effect once more: the claim is ended, so nothing happens
        await stand.advance(1)
        assert await stand.state(handle) == "completed"


async def test_one_hung_lane_does_not_hold_up_the_other_s_results(stand: Stand) -> None:
    gate = stand.gated()
    handles = [await stand.enqueue(Work(n)) for n in range(2)]
    async with stand.working():
        hung = stand.wire.hold("exchange", only=fetches)
        await stand.advance(1)
        assert hung.reached == 1
        gate.open()
        await stand.advance(0.1)
        assert [await stand.state(handle) for handle in handles] == ["completed"] * 2


async def test_a_stale_result_is_dropped_and_said(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    gate = stand.gated()
    handle = await stand.enqueue()
    async with stand.working() as pool:
        row = await stand.row(handle)
        hand = stand.hand()
        assert (await hand.finish(row.claim, "retry")).status == "DONE"
        (taken,) = await hand.claim()
        assert (await hand.finish(taken.claim, "retry")).status == "DONE"
        (again,) = await hand.claim()
        gate.open()
        await stand.advance(1)
        assert len(stand.engine(pool).claims) == 0
        assert f"job {handle.id} (work): its result (complete) was lost" in caplog.text
        assert (await stand.row(handle)).claim == again.claim


async def test_an_error_that_is_no_driver_s_does_not_end_a_lane(stand: Stand) -> None:
    gate = stand.gated()
    gate.open()
    async with stand.working(lanes=1):
        for error in (RuntimeError("a bug"), KeyError("x"), DriverError("?")):
            stand.wire.fail("exchange", error, after=True)
            handle = await stand.enqueue()
            await stand.advance(40)
            assert await stand.state(handle) == "completed"
