"""Waiting: outputs, failures, time, and one poller for all."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

import pytest

from goncordia import (
    Client,
    DriverUnavailableError,
    JobFailedError,
    JobInfo,
    JobState,
    NotFoundError,
    PayloadError,
    Registry,
)
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver, MemoryTx

from .kit import Hand, Mail, Report, ShakyDriver

registry = Registry()


@registry.task(kind="add")
async def add(left: int, right: int) -> list[int]:
    return [left + right]


@dataclass
class Broken:
    """Args whose declaration names what does not exist."""

    kind: ClassVar[str] = "broken"

    def __returns__(self) -> Nowhere:  # type: ignore[name-defined]  # noqa: F821 - that is the case
        raise NotImplementedError


async def test_what_has_ended_is_answered_at_once(client: Client[MemoryTx], hand: Hand) -> None:
    handle = await client.enqueue(Mail("a"))
    await hand.work(output={"sent": True})
    assert await client.wait(handle) == {"sent": True}
    assert await client.wait(handle.id) == {"sent": True}
    assert await client.wait(await client.get(handle)) == {"sent": True}
    assert await client.wait(handle, output=dict[str, bool]) == {"sent": True}


async def test_a_worker_that_returns_nothing(client: Client[MemoryTx], hand: Hand) -> None:
    handle = await client.enqueue(Mail("a"))
    row = await hand.claim()
    await hand.finish(row)
    assert await client.wait(handle) is None


async def test_the_declared_type_of_args_and_tasks(client: Client[MemoryTx], hand: Hand) -> None:
    report = await client.enqueue(Report("mon"))
    await hand.work("reports", output=5)
    assert await client.wait(report) == 5
    task = await client.enqueue(add.args(1, 2))
    await hand.work(output=[3])
    assert await client.wait(task) == [3]
    wrong = await client.enqueue(add.args(1, 2))
    await hand.work(output=["three"])
    with pytest.raises(PayloadError, match="output"):
        await client.wait(wrong)


async def test_an_output_of_another_type(client: Client[MemoryTx], hand: Hand) -> None:
    handle = await client.enqueue(Report("mon"))
    await hand.work("reports", output="five")
    with pytest.raises(PayloadError, match="output") as caught:
        await client.wait(handle)
    assert (caught.value.kind, caught.value.job_id) == ("report", handle.id)
    assert "five" not in str(caught.value)
    with pytest.raises(PayloadError, match="output"):
        await client.wait(handle.id, output=int)
    assert await client.wait(handle, output=str) == "five"


async def test_a_declaration_that_names_nothing(client: Client[MemoryTx], hand: Hand) -> None:
    handle = await client.enqueue(Broken())
    await hand.work()
    with pytest.raises(ValueError, match=r"Broken\.__returns__: name 'Nowhere' is not defined"):
        await client.wait(handle)


async def test_a_discarded_job_raises_with_its_last_error(
    client: Client[MemoryTx], hand: Hand
) -> None:
    handle = await client.enqueue(Mail("a"))
    await hand.fail(error="no such address")
    told = f"job {handle.id} .mail. was discarded after attempt 1: ValueError: no such address"
    with pytest.raises(JobFailedError, match=told) as caught:
        await client.wait(handle)
    job = caught.value.job
    assert isinstance(job, JobInfo)
    assert (job.id, job.state) == (handle.id, JobState.DISCARDED)


async def test_a_cancelled_job_raises_too(client: Client[MemoryTx]) -> None:
    handle = await client.enqueue(Mail("a"))
    await client.cancel(handle)
    with pytest.raises(JobFailedError, match=r"was cancelled after attempt 0$"):
        await client.wait(handle)


async def test_no_such_job(client: Client[MemoryTx]) -> None:
    with pytest.raises(NotFoundError, match="there is no job"):
        await client.wait(UUID(int=7))
    with pytest.raises(NotFoundError, match="there is no job"):
        await client.wait(UUID(int=7), timeout=0)


async def test_a_job_deleted_meanwhile(client: Client[MemoryTx], clock: MockClock) -> None:
    handle = await client.enqueue(Mail("a"))
    waiting = asyncio.create_task(client.wait(handle))
    await clock.advance(1)
    await client.delete(handle)
    await clock.advance(2)
    with pytest.raises(NotFoundError):
        await waiting


async def test_a_timeout_is_exact_and_the_job_goes_on(
    client: Client[MemoryTx], clock: MockClock
) -> None:
    handle = await client.enqueue(Mail("a"))
    waiting = asyncio.create_task(client.wait(handle, timeout=10))
    await clock.advance(9.999)
    assert not waiting.done()
    await clock.advance(0.001)
    assert waiting.done()
    told = f"job {handle.id} did not end within 10 s; it is available"
    with pytest.raises(TimeoutError, match=told):
        await waiting
    assert (await client.get(handle)).state is JobState.AVAILABLE


async def test_a_timeout_of_zero_looks_once(client: Client[MemoryTx], hand: Hand) -> None:
    handle = await client.enqueue(Mail("a"))
    with pytest.raises(TimeoutError, match="did not end within 0 s; it is available"):
        await client.wait(handle, timeout=0)
    await hand.work(output=1)
    assert await client.wait(handle, timeout=0) == 1


async def test_it_looks_less_and_less_often(driver: MemoryDriver, clock: MockClock) -> None:
    shaky = ShakyDriver(driver)
    client = Client(shaky, rng=random.Random(3))
    handle = await client.enqueue(Mail("a"))
    waiting = asyncio.create_task(client.wait(handle))
    await clock.settle()
    looks: list[int] = []
    for _ in range(20):
        shaky.faults.calls.clear()
        await clock.advance(1)
        looks.append(shaky.faults.calls.count("get_many"))
    assert 5 <= looks[0] <= 9
    assert max(looks[5:]) <= 2
    assert sum(looks[5:]) >= 11
    waiting.cancel()


async def test_a_job_is_seen_within_a_quarter_more_than_it_took(
    client: Client[MemoryTx], hand: Hand, clock: MockClock
) -> None:
    handle = await client.enqueue(Mail("a"))
    waiting = asyncio.create_task(client.wait(handle))
    await clock.advance(60)
    await hand.work(output=1)
    await clock.advance(1.3)
    assert await waiting == 1


async def test_all_who_wait_share_one_poller_and_its_calls(
    driver: MemoryDriver, clock: MockClock, hand: Hand
) -> None:
    shaky = ShakyDriver(driver, max_batch=60)
    client = Client(shaky, rng=random.Random(3))
    handles = list((await client.enqueue_many([Mail("a", n) for n in range(50)])).handles)
    before = asyncio.all_tasks()
    waiting = [asyncio.create_task(client.wait(handle)) for handle in handles]
    await clock.settle()
    pollers = asyncio.all_tasks() - before - set(waiting)
    assert [task.get_name() for task in pollers] == ["goncordia-wait"]
    await clock.advance(20)
    shaky.faults.calls.clear()
    await clock.advance(10)
    # Alone each would look about ten times in ten seconds.
    assert shaky.faults.calls.count("get_many") < 10 * len(handles) / 5
    for number in range(50):
        await hand.work(output=number)
    await clock.advance(2)
    assert await asyncio.gather(*waiting) == list(range(50))
    await clock.settle()
    assert not asyncio.all_tasks() & pollers


async def test_more_than_one_batch(driver: MemoryDriver, hand: Hand, clock: MockClock) -> None:
    shaky = ShakyDriver(driver, max_batch=2)
    client = Client(shaky)
    done = await client.enqueue_many([Mail("a")] * 5, atomic=False)
    for _ in range(5):
        await hand.work()
    shaky.faults.calls.clear()
    await asyncio.gather(*(client.wait(handle) for handle in done.handles))
    assert shaky.faults.calls == ["get_many"] * 3


async def test_one_who_gives_up_does_not_disturb_the_others(
    client: Client[MemoryTx], hand: Hand, clock: MockClock
) -> None:
    handle = await client.enqueue(Mail("a"))
    patient = asyncio.create_task(client.wait(handle))
    hasty = asyncio.create_task(client.wait(handle))
    await clock.advance(5)
    hasty.cancel()
    await clock.advance(5)
    assert hasty.cancelled()
    await hand.work(output=2)
    await clock.advance(2)
    assert await patient == 2


async def test_a_short_outage_is_waited_through(
    driver: MemoryDriver, hand: Hand, clock: MockClock
) -> None:
    shaky = ShakyDriver(driver)
    client = Client(shaky, rng=random.Random(5))
    handle = await client.enqueue(Mail("a"))
    await hand.work(output=1)
    shaky.faults.before += [DriverUnavailableError("cut"), DriverUnavailableError("cut")]
    waiting = asyncio.create_task(client.wait(handle))
    await clock.advance(1)
    assert await waiting == 1


async def test_a_long_outage_is_told_to_all_who_wait(
    driver: MemoryDriver, clock: MockClock
) -> None:
    shaky = ShakyDriver(driver)
    client = Client(shaky, replays=1)
    handle = await client.enqueue(Mail("a"))
    shaky.faults.before += [DriverUnavailableError("cut")] * 2
    waiting: list[Any] = [asyncio.create_task(client.wait(handle)) for _ in range(2)]
    await clock.advance(1)
    for task in waiting:
        with pytest.raises(DriverUnavailableError, match="cut"):
            await task
    # The next one finds the backend again.
    with pytest.raises(TimeoutError):
        await client.wait(handle, timeout=0)


def test_a_client_serves_one_loop_after_the_other() -> None:
    driver = MemoryDriver()
    client = Client(driver)

    async def once(number: int) -> object:
        handle = await client.enqueue(Mail("a"))
        waiting = asyncio.create_task(client.wait(handle))
        await asyncio.sleep(0)
        await Hand(driver).work(output=number)
        return await waiting

    async def left() -> None:
        handle = await client.enqueue(Mail("a"), queue="never")
        task = asyncio.create_task(client.wait(handle))
        await asyncio.sleep(0)
        del task

    assert asyncio.run(once(1)) == 1
    asyncio.run(left())
