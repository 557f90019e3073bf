"""Admission control: a soft bound on how many jobs wait in a queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from goncordia import (
    Admission,
    AdmissionRejectedError,
    Capabilities,
    Client,
    ConfigurationError,
    DriverUnavailableError,
    SyncClient,
    UnsupportedError,
)
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver


@dataclass
class Work:
    kind: ClassVar[str] = "work"
    n: int = 0


class Bench:
    def __init__(self) -> None:
        self.clock = MockClock()
        self.driver = MemoryDriver(self.clock)
        self.plain = Client(self.driver)

    def client(self, max_depth: Any, wait: Any = 0.0) -> Client[Any]:
        return Client(self.driver, admission=Admission(max_depth, wait))

    async def make_room(self, number: int) -> None:
        jobs = (await self.plain.list(limit=number)).jobs
        await self.plain.delete_many(jobs)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_full_queue_rejects(bench: Bench) -> None:
    client = bench.client(3)
    for delay in (0, 0, 3600):  # what is due later waits, too
        await client.enqueue(Work(), delay=delay)
    with pytest.raises(AdmissionRejectedError) as caught:
        await client.enqueue(Work())
    assert str(caught.value) == (
        "queue 'default' has 3 waiting jobs; with one more it would exceed max_depth, 3"
    )
    assert (caught.value.queue, caught.value.depth, caught.value.max_depth) == ("default", 3, 3)
    assert await client.count() == 3
    await client.enqueue(Work(), queue="other")


async def test_only_the_queues_that_are_named(bench: Bench) -> None:
    client = bench.client({"mail": 1})
    for _ in range(5):
        await client.enqueue(Work())
    await client.enqueue(Work(), queue="mail")
    with pytest.raises(AdmissionRejectedError, match="queue 'mail' has 1 waiting jobs"):
        await client.enqueue(Work(), queue="mail")


async def test_it_looks_at_most_once_a_second(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor, looks = bench.driver.executor(), 0
    count = executor.count

    async def counted(where: Any) -> int:
        nonlocal looks
        looks += 1
        return await count(where)

    monkeypatch.setattr(executor, "count", counted)
    monkeypatch.setattr(bench.driver, "executor", lambda: executor)
    client = bench.client(1000)
    for _ in range(50):
        await client.enqueue(Work())
    assert looks == 1
    await bench.clock.advance(1)
    await client.enqueue(Work())
    assert looks == 2


async def test_what_one_client_enqueues_at_once_is_bounded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it comes while the first look is under way, and again while the next one is."""
    executor, looks = bench.driver.executor(), 0
    count = executor.count

    async def counted(where: Any) -> int:
        nonlocal looks
        looks += 1
        found = await count(where)
        await bench.clock.sleep(0.1)
        return found

    monkeypatch.setattr(executor, "count", counted)
    monkeypatch.setattr(bench.driver, "executor", lambda: executor)
    client = bench.client(10)
    for _ in range(2):
        asked = [asyncio.ensure_future(client.enqueue(Work())) for _ in range(100)]
        await bench.clock.advance(0.5)
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(isinstance(each, AdmissionRejectedError) for each in results) == 90
        assert len((await bench.plain.list(limit=100)).jobs) == 10
        await bench.make_room(10)
        await bench.clock.advance(2)
    assert looks == 2


async def test_a_look_that_fails_is_made_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = bench.driver.executor()
    count, fails = executor.count, True

    async def counted(where: Any) -> int:
        if fails:
            raise DriverUnavailableError("gone")
        return await count(where)

    monkeypatch.setattr(executor, "count", counted)
    monkeypatch.setattr(bench.driver, "executor", lambda: executor)
    client = Client(bench.driver, admission=Admission(1), replays=0)
    with pytest.raises(DriverUnavailableError):
        await client.enqueue(Work())
    fails = False
    await client.enqueue(Work())
    with pytest.raises(AdmissionRejectedError):
        await client.enqueue(Work())


async def test_others_may_exceed_it_for_a_second(bench: Bench) -> None:
    one, other = bench.client(5), bench.client(5)
    for client in (one, other):
        await client.enqueue(Work())
    for _ in range(3):  # as each sees it, there is room
        await one.enqueue(Work())
        await other.enqueue(Work())
    assert await bench.plain.count() == 8
    await bench.clock.advance(1)
    for client in (one, other):
        with pytest.raises(AdmissionRejectedError):
            await client.enqueue(Work())


async def test_it_waits_for_room(bench: Bench) -> None:
    client = bench.client(2, wait=10)
    await client.enqueue_many([Work(), Work()])
    waiting = asyncio.ensure_future(client.enqueue(Work()))
    await bench.clock.advance(5)
    assert not waiting.done()
    await bench.make_room(1)
    await bench.clock.advance(1)
    assert waiting.done()
    await waiting
    assert await client.count() == 2


async def test_it_waits_no_longer_than_it_should(bench: Bench) -> None:
    client = bench.client(1, wait=3)
    await client.enqueue(Work())
    waiting = asyncio.ensure_future(client.enqueue(Work()))
    await bench.clock.advance(2.9)
    assert not waiting.done()
    await bench.clock.advance(0.2)
    with pytest.raises(AdmissionRejectedError):
        await waiting


async def test_it_waits_for_as_long_as_it_takes(bench: Bench) -> None:
    client = bench.client(1, wait=None)
    await client.enqueue(Work())
    waiting = asyncio.ensure_future(client.enqueue(Work()))
    await bench.clock.advance(1000)
    assert not waiting.done()
    await bench.make_room(1)
    await bench.clock.advance(1)
    await waiting


async def test_inside_a_transaction_it_only_rejects(bench: Bench) -> None:
    client = bench.client(1, wait=None)
    await client.enqueue(Work())
    with pytest.raises(AdmissionRejectedError):
        async with bench.driver.transaction() as tx:
            await client.enqueue_tx(tx, Work())
    await bench.make_room(1)
    await bench.clock.advance(1)
    async with bench.driver.transaction() as tx:
        await client.enqueue_tx(tx, Work())
        with pytest.raises(AdmissionRejectedError):  # what it enqueued itself counts
            await client.enqueue_tx(tx, Work())
    assert await client.count() == 1


async def test_many_at_once(bench: Bench) -> None:
    client = bench.client(10)
    with pytest.raises(AdmissionRejectedError, match="with 11 more it would exceed max_depth, 10"):
        await client.enqueue_many([Work() for _ in range(11)])
    assert await client.count() == 0
    await client.enqueue_many([Work() for _ in range(10)])


async def test_a_stream_goes_in_chunks_that_fit(bench: Bench) -> None:
    client = bench.client(10, wait=None)

    async def source() -> AsyncIterator[Work]:
        for n in range(35):
            yield Work(n)

    streaming = asyncio.ensure_future(client.enqueue_many(source(), atomic=False))
    for _ in range(20):
        await bench.clock.advance(1)
        await bench.make_room(10)
    assert (await streaming).count == 35


def test_for_synchronous_clients() -> None:
    driver = MemoryDriver()
    client = SyncClient(driver, admission=Admission(1))
    client.enqueue(Work())
    with pytest.raises(AdmissionRejectedError):
        client.enqueue(Work())
    with pytest.raises(AdmissionRejectedError):
        SyncClient(driver, admission=Admission(1, wait=0.05)).enqueue(Work())


async def test_a_bound_that_the_driver_cannot_count_to(bench: Bench) -> None:
    driver: Any = MemoryDriver(bench.clock)
    driver.capabilities = Capabilities()
    Client(driver, admission=Admission(10_000))
    with pytest.raises(
        UnsupportedError, match="exact_counts: a max_depth of more than 10000 needs"
    ):
        Client(driver, admission=Admission(10_001))


@pytest.mark.parametrize(
    ("max_depth", "wait", "message"),
    [
        (0, 0, "Admission: max_depth: 0 is not a whole number from 1"),
        ("10", 0, "Admission: max_depth: '10' is not a whole number"),
        ({}, 0, "Admission: max_depth: {} is empty; name a queue"),
        ({"mail": 0}, 0, "Admission: max_depth['mail']: 0 is not a whole number"),
        ({"": 5}, 0, "Admission: max_depth: key: '' is empty"),
        (5, -1, "Admission: wait: -1 is not a number of seconds from 0"),
        (5, "1", "Admission: wait: '1' is not a number of seconds from 0"),
    ],
)
def test_wrong_bounds(max_depth: Any, wait: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Admission(max_depth, wait)
    assert str(caught.value).startswith(message)


def test_only_an_admission(bench: Bench) -> None:
    given: Any = 100
    with pytest.raises(ConfigurationError, match="admission: 100 is not an Admission"):
        Client(bench.driver, admission=given)
