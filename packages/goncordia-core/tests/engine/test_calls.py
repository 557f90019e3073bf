"""Calling a driver: what is worth repeating, how long to wait, when to give up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from itertools import pairwise

import pytest

from goncordia import (
    DriverBusyError,
    DriverError,
    DriverUnavailableError,
    MigrationRequiredError,
    UnsupportedError,
)
from goncordia.engine.calls import Backoff, Calls, refused
from goncordia.errors import TransactionAbortedError
from goncordia.gontest import MockClock

from .wire import away


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture
def calls(clock: MockClock) -> Calls:
    return Calls(clock, random.Random(1), bound=15)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DriverUnavailableError("x"), False),
        (DriverUnavailableError("x", outcome="not_applied"), False),
        (DriverBusyError("x"), False),
        (DriverBusyError("x", outcome="not_applied"), False),
        (MigrationRequiredError("x"), False),
        (DriverError("x"), False),
        (TransactionAbortedError("x"), False),
        (DriverError("x", outcome="not_applied"), True),
        (TransactionAbortedError("x", outcome="not_applied"), True),
        (UnsupportedError("d", "marks"), True),
        (ValueError("x"), True),
    ],
)
def test_what_is_refused_for_good(error: Exception, expected: bool) -> None:
    assert refused(error) is expected


def test_pauses_double_up_to_a_cap_with_full_jitter(clock: MockClock) -> None:
    class Highest(random.Random):
        def random(self) -> float:
            return 1.0

    backoff = Backoff(clock, Highest(), 2.0)
    assert [backoff.delay(away()) for _ in range(9)] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2, 2, 2]
    assert backoff.failures == 9
    backoff.reset()
    assert (backoff.delay(away()), backoff.failures) == (0.05, 1)
    drawn = Backoff(clock, random.Random(3), 2.0)
    pauses = [drawn.delay(away()) for _ in range(200)]
    assert 0 <= min(pauses[8:]) < 0.1
    assert 1.9 < max(pauses[8:]) <= 2
    assert len(set(pauses)) == 200


def test_a_pause_is_never_shorter_than_the_backend_asks_for(clock: MockClock) -> None:
    backoff = Backoff(clock, random.Random(3), 2.0)
    assert backoff.delay(DriverBusyError("x", retry_after=30)) == 30
    # But a stop may have to wait for it, too.
    assert backoff.delay(DriverBusyError("x", retry_after=3600)) == 60
    assert backoff.delay(DriverBusyError("x", retry_after=0)) <= 0.1
    assert backoff.delay(ValueError()) <= 0.4


async def test_the_third_failure_in_a_row_is_said_aloud(
    clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    backoff = Backoff(clock, random.Random(3), 2.0)

    async def fail() -> None:
        for _ in range(20):
            await backoff.pause(away(), "doing it")

    task = asyncio.create_task(fail())
    await clock.advance(60)
    assert task.done()
    (record,) = caplog.records
    assert "doing it failed 3 times in a row" in record.getMessage()
    assert "the backend is away" in record.getMessage()


# ---------------------------------------------------------------- bounded in time


async def test_a_call_that_is_answered(clock: MockClock, calls: Calls) -> None:
    async def answer() -> int:
        await clock.sleep(14)
        return 5

    task = asyncio.create_task(calls.once(answer()))
    await clock.advance(14)
    assert task.result() == 5
    await clock.advance(60)
    assert task.cancelling() == 0


async def test_one_that_is_not_is_given_up_with_an_unknown_outcome(
    clock: MockClock, calls: Calls
) -> None:
    ended: list[str] = []

    async def hang() -> None:
        try:
            await clock.sleep(1000)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def caller() -> str:
        task = asyncio.current_task()
        assert task is not None
        with pytest.raises(DriverUnavailableError, match="did not answer within 15 s") as caught:
            await calls.once(hang())
        assert (caught.value.outcome, task.cancelling()) == ("unknown", 0)
        return "goes on"

    task = asyncio.create_task(caller())
    await clock.advance(15)
    assert (task.result(), ended) == ("goes on", ["cancelled"])


@pytest.mark.parametrize("swallows", ["answer", "error"])
async def test_a_driver_that_takes_no_notice_leaves_no_trace(
    clock: MockClock, calls: Calls, swallows: str
) -> None:
    """A cancellation of ours that went under must not count against the task's own time limits."""

    async def stubborn() -> int:
        try:
            await clock.sleep(1000)
        except asyncio.CancelledError:
            if swallows == "error":
                raise OSError("the library's own word for it") from None
        return 5

    async def caller() -> str:
        task = asyncio.current_task()
        assert task is not None
        try:
            assert await calls.once(stubborn()) == 5
        except OSError:
            assert swallows == "error"
        return f"cancelling {task.cancelling()}"

    task = asyncio.create_task(caller())
    await clock.advance(20)
    assert task.result() == "cancelling 0"


async def test_a_cancellation_from_outside_stays_one(clock: MockClock, calls: Calls) -> None:
    async def hang() -> None:
        await clock.sleep(1000)

    task = asyncio.create_task(calls.once(hang()))
    await clock.advance(14)
    task.cancel()
    await clock.advance(0)
    assert task.cancelled()


async def test_also_when_it_comes_while_the_call_is_given_up(
    clock: MockClock, calls: Calls
) -> None:
    async def hang() -> None:
        try:
            await clock.sleep(1000)
        except asyncio.CancelledError:
            task.cancel()  # somebody else, in the same moment
            raise

    task = asyncio.create_task(calls.once(hang()))
    await clock.advance(15)
    assert task.cancelled()
    assert task.cancelling() == 1  # theirs; ours was taken back


async def test_a_driver_that_cancels_its_own_call_cancels_nobody(
    clock: MockClock, calls: Calls
) -> None:
    """As libraries do by mistake: it would end a lane or the heartbeat without a word."""

    async def broken() -> None:
        raise asyncio.CancelledError

    with pytest.raises(DriverUnavailableError, match="cancelled its own call") as caught:
        await calls.once(broken())
    assert caught.value.outcome == "unknown"
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)


# ---------------------------------------------------------------- until it is answered


async def test_it_is_repeated_until_it_is_answered(clock: MockClock, calls: Calls) -> None:
    times: list[float] = []

    async def call() -> int:
        times.append(clock.monotonic())
        if len(times) < 10:
            raise DriverBusyError("x") if len(times) % 2 else DriverError("?")
        return len(times)

    task = asyncio.create_task(calls.until_answered(call, "calling"))
    await clock.advance(60)
    assert task.result() == 10
    assert all(0 <= after - before <= 2 for before, after in pairwise(times))


async def test_a_refusal_ends_it(clock: MockClock, calls: Calls) -> None:
    tries: list[int] = []

    def call() -> Awaitable[int]:
        tries.append(1)
        error = away() if len(tries) < 3 else UnsupportedError("d", "marks")

        async def fail() -> int:
            raise error

        return fail()

    task = asyncio.create_task(calls.until_answered(call, "calling"))
    await clock.advance(60)
    assert isinstance(task.exception(), UnsupportedError)
    assert len(tries) == 3
