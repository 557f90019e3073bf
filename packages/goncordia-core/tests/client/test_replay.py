"""Unknown outcomes: what is repeated, how often, and what never is."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from itertools import pairwise
from typing import TypeVar

import pytest

from goncordia import (
    Client,
    ConfigurationError,
    DriverBusyError,
    DriverError,
    DriverUnavailableError,
    JobState,
    NotFoundError,
    SyncClient,
    TransactionAbortedError,
)
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver, MemoryTx

from .kit import Mail, Once, ShakyDriver

R = TypeVar("R")


@pytest.fixture
def client(shaky: ShakyDriver) -> Client[MemoryTx]:
    return Client(shaky, rng=random.Random(7))


async def given_time(clock: MockClock, call: Awaitable[R], seconds: float = 60) -> R:
    task = asyncio.ensure_future(call)
    await clock.advance(seconds)
    assert task.done()
    return await task


async def test_a_lost_request_is_sent_again(
    client: Client[MemoryTx], shaky: ShakyDriver, clock: MockClock
) -> None:
    shaky.faults.before += [DriverUnavailableError("cut")] * 4
    handle = await given_time(clock, client.enqueue(Mail("a")))
    assert shaky.faults.calls == ["insert_many"] * 5
    assert (await client.get(handle)).state is JobState.AVAILABLE


async def test_a_lost_answer_enqueues_nothing_twice(
    client: Client[MemoryTx], shaky: ShakyDriver, clock: MockClock
) -> None:
    shaky.faults.after += [DriverUnavailableError("cut")] * 3
    handle = await given_time(clock, client.enqueue(Once("a")))
    assert not handle.duplicate
    assert [info.id async for info in client.list_all()] == [handle.id]


async def test_a_lost_answer_for_many(
    client: Client[MemoryTx], shaky: ShakyDriver, clock: MockClock
) -> None:
    shaky.faults.after += [DriverUnavailableError("cut")]
    done = await given_time(clock, client.enqueue_many([Once("a"), Once("a"), Mail("b")]))
    assert (done.count, done.duplicates) == (3, 1)
    assert await client.count() == 2


async def test_in_the_end_the_error_is_raised(
    client: Client[MemoryTx], shaky: ShakyDriver, clock: MockClock
) -> None:
    shaky.faults.before += [DriverUnavailableError(f"no. {n}") for n in range(1, 9)]
    with pytest.raises(DriverUnavailableError, match=r"no\. 5"):
        await given_time(clock, client.enqueue(Mail("a")))
    assert shaky.faults.calls == ["insert_many"] * 5


async def test_what_was_unknown_stays_so_when_the_repetitions_come_to_nothing(
    client: Client[MemoryTx], shaky: ShakyDriver, clock: MockClock
) -> None:
    shaky.faults.after += [DriverUnavailableError("cut")]
    refused = [DriverUnavailableError("refused", outcome="not_applied") for _ in range(4)]
    shaky.faults.before += [None, *refused]
    with pytest.raises(DriverUnavailableError, match="refused") as caught:
        await given_time(clock, client.enqueue(Mail("a")))
    assert caught.value.outcome == "unknown"
    assert shaky.faults.calls == ["insert_many"] * 5
    assert await client.count() == 1


async def test_it_is_sent_again_until_it_is_known(
    client: Client[MemoryTx], shaky: ShakyDriver, clock: MockClock
) -> None:
    shaky.faults.after += [DriverUnavailableError("cut")]
    refused = [DriverUnavailableError("refused", outcome="not_applied") for _ in range(3)]
    shaky.faults.before += [None, *refused]
    handle = await given_time(clock, client.enqueue(Once("a")))
    assert not handle.duplicate
    assert [info.id async for info in client.list_all()] == [handle.id]


async def test_a_backend_that_is_away_for_a_moment_is_asked_again(
    client: Client[MemoryTx], shaky: ShakyDriver, clock: MockClock
) -> None:
    shaky.faults.before += [
        DriverUnavailableError("refused", outcome="not_applied") for _ in range(4)
    ]
    handle = await given_time(clock, client.enqueue(Once("a")))
    assert shaky.faults.calls == ["insert_many"] * 5
    assert [info.id async for info in client.list_all()] == [handle.id]


async def test_a_backend_that_stays_away_is_not_waited_for(
    client: Client[MemoryTx], shaky: ShakyDriver, clock: MockClock
) -> None:
    shaky.faults.before += [
        DriverUnavailableError("refused", outcome="not_applied") for _ in range(5)
    ]
    with pytest.raises(DriverUnavailableError) as caught:
        await given_time(clock, client.enqueue(Mail("a")), 1)
    assert caught.value.outcome == "not_applied"
    assert shaky.faults.calls == ["insert_many"] * 5


async def test_a_driver_that_was_patient_is_not_asked_again(
    client: Client[MemoryTx], shaky: ShakyDriver, clock: MockClock
) -> None:
    shaky.faults.before += [
        DriverUnavailableError("refused", outcome="not_applied") for _ in range(5)
    ]
    shaky.faults.seconds = 1.1
    with pytest.raises(DriverUnavailableError):
        await given_time(clock, client.enqueue(Mail("a")))
    assert shaky.faults.calls == ["insert_many"] * 2


@pytest.mark.parametrize(
    "error",
    [
        DriverBusyError("full", outcome="not_applied"),
        DriverBusyError("away for long", retry_after=11),
        TransactionAbortedError("deadlock"),
        TransactionAbortedError("deadlock", retry_after=1),
        ValueError("a bug"),
    ],
)
async def test_what_is_certain_is_not_repeated(
    client: Client[MemoryTx], shaky: ShakyDriver, error: Exception
) -> None:
    shaky.faults.before += [error]
    with pytest.raises(type(error)):
        await client.enqueue(Mail("a"))
    assert shaky.faults.calls == ["insert_many"]


async def test_a_busy_backend_is_left_alone_for_as_long_as_it_asks(
    client: Client[MemoryTx], shaky: ShakyDriver, clock: MockClock
) -> None:
    shaky.faults.before += [DriverBusyError("full", outcome="not_applied", retry_after=3)]
    task = asyncio.create_task(client.enqueue(Mail("a")))
    await clock.advance(2.999)
    assert shaky.faults.calls == ["insert_many"]
    await clock.advance(0.1)
    assert shaky.faults.calls == ["insert_many"] * 2
    await task


async def test_pauses_grow_and_are_jittered(shaky: ShakyDriver, clock: MockClock) -> None:
    async def times(seed: int) -> list[float]:
        shaky.faults.before[:] = [DriverUnavailableError("cut")] * 8
        shaky.faults.calls.clear()
        client = Client(shaky, replays=8, rng=random.Random(seed))
        task = asyncio.create_task(client.enqueue(Mail("a")))
        seen: list[float] = []
        for tick in range(3000):
            await clock.settle()
            seen += [tick * 0.005] * (len(shaky.faults.calls) - len(seen))
            if task.done():
                break
            await clock.advance(0.005)
        await task
        return seen

    one, other = await times(1), await times(2)
    assert one != other
    for seen in (one, other):
        pauses = [after - before for before, after in pairwise(seen)]
        caps = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
        assert all(pause <= cap + 0.01 for pause, cap in zip(pauses, caps, strict=True))


async def test_never_inside_a_transaction(
    client: Client[MemoryTx], shaky: ShakyDriver, driver: MemoryDriver
) -> None:
    for call in ("enqueue_tx", "enqueue_many_tx"):
        for faults in (shaky.faults.before, shaky.faults.after):
            faults += [DriverUnavailableError("cut")]
            shaky.faults.calls.clear()
            with pytest.raises(DriverUnavailableError):
                async with driver.transaction() as tx:
                    args = Mail("a") if call == "enqueue_tx" else [Mail("a")]
                    await getattr(client, call)(tx, args)
            assert shaky.faults.calls == ["insert_many"]
    assert await client.count() == 0


@pytest.mark.parametrize("when", ["before", "after"])
async def test_changes_are_repeated_too(
    client: Client[MemoryTx], shaky: ShakyDriver, clock: MockClock, when: str
) -> None:
    faults: list[Exception] = getattr(shaky.faults, when)
    one, two = await client.enqueue(Mail("a")), await client.enqueue(Mail("a"))
    faults += [DriverUnavailableError("cut")]
    result = await given_time(clock, client.cancel(one))
    assert (result.ok, result.state) == (True, JobState.CANCELLED)
    faults += [DriverUnavailableError("cut")]
    await given_time(clock, client.queue_pause("q"))
    faults += [DriverUnavailableError("cut")]
    assert (await given_time(clock, client.retry(one))).ok
    faults += [DriverUnavailableError("cut")]
    # The second time it is gone, by the first.
    assert (await given_time(clock, client.delete(one))).status == "CHANGED"
    with pytest.raises(NotFoundError):
        await client.delete(one)
    faults += [DriverUnavailableError("cut")]
    (gone,) = await given_time(clock, client.delete_many([two]))
    assert gone.status == "CHANGED"
    assert [queue.paused for queue in await client.queues()] == [True]


async def test_what_was_refused_at_first_was_not_done_by_that(
    client: Client[MemoryTx], shaky: ShakyDriver, clock: MockClock
) -> None:
    one = await client.enqueue(Mail("a"))
    await client.delete(one)
    shaky.faults.before += [DriverUnavailableError("refused", outcome="not_applied")]
    with pytest.raises(NotFoundError):
        await given_time(clock, client.delete(one))


async def test_reads_are_repeated_too(
    client: Client[MemoryTx], shaky: ShakyDriver, clock: MockClock
) -> None:
    handle = await client.enqueue(Mail("a"))
    for call in (client.get(handle), client.list(), client.count(), client.queues()):
        shaky.faults.before += [DriverUnavailableError("cut")]
        await given_time(clock, call)


async def test_replays_can_be_off(shaky: ShakyDriver) -> None:
    client = Client(shaky, replays=0)
    shaky.faults.after += [DriverError("cut")]
    with pytest.raises(DriverError):
        await client.enqueue(Mail("a"))
    assert shaky.faults.calls == ["insert_many"]
    with pytest.raises(ConfigurationError, match="replays: -1 is not a whole number from 0"):
        Client(shaky, replays=-1)


async def test_sync_code_repeats_as_well(shaky: ShakyDriver, clock: MockClock) -> None:
    client = SyncClient(shaky, rng=random.Random(7))
    shaky.faults.after += [DriverUnavailableError("cut")] * 2
    task = asyncio.create_task(asyncio.to_thread(client.enqueue, Once("a")))
    while not task.done():
        await clock.advance(0.1)
        await asyncio.sleep(0.001)  # the other thread plans its timer in real time
    assert not (await task).duplicate
    assert shaky.faults.calls == ["insert_many"] * 3
    assert client.count() == 1
