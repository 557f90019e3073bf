from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from goncordia import (
    AnyDriver,
    ConfigurationError,
    Discard,
    InsertOpts,
    Job,
    JobFailedError,
    PayloadError,
    Registry,
    RetryAfter,
    Snooze,
    SyncJob,
)
from goncordia.gontest import InlineClient, MockClock, SyncInlineClient
from goncordia.memory import MemoryDriver

from .kit import DRIVERS, Resize, SendEmail, Turned


@dataclass
class Order:
    kind: ClassVar[str] = "order"
    item: str


class Mails(list[str]):
    """What was sent."""


@asynccontextmanager
async def lifespan() -> AsyncIterator[Mails]:
    yield Mails()


registry = Registry(lifespan=lifespan)


@registry.worker(Order, max_attempts=3)
async def order(job: Job[Order, Mails]) -> int:
    match job.args.item:
        case "samovar":
            raise ConnectionError("out of stock")
        case "cup" if job.attempt == 1:
            raise RetryAfter(3600)
        case "spoon":
            raise Discard("no spoon")
        case "later" if not job.app:
            job.app.append("snoozed")
            raise Snooze(60)
        case item:
            await job.client.enqueue(SendEmail(item), queue="mail")
    return job.attempt


@registry.worker(SendEmail)
def send(job: SyncJob[SendEmail, Mails]) -> None:
    job.app.append(job.args.to)


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> AnyDriver:
    made: AnyDriver = request.param()
    return made


async def test_an_enqueue_works_the_job_and_what_it_enqueues(driver: AnyDriver) -> None:
    mails = Mails()
    client = InlineClient(driver, registry, app=mails)
    handle = await client.enqueue(Order("teapot"))
    assert mails == ["teapot"]
    assert await client.wait(handle, timeout=0) == 1
    await client.enqueue_many([Order("a"), Order("b")])
    await client.enqueue_batch([(Order("c"), InsertOpts(queue="elsewhere"))])
    assert sorted(mails) == ["a", "b", "c", "teapot"]


async def test_retries_come_at_once_and_end_as_in_a_pool(driver: AnyDriver) -> None:
    client = InlineClient(driver, registry, app=Mails())
    assert await client.wait(await client.enqueue(Order("cup")), timeout=0) == 2
    failed = await client.enqueue(Order("samovar"))
    with pytest.raises(JobFailedError, match="out of stock") as raised:
        await client.wait(failed, timeout=0)
    job: Any = raised.value.job
    assert (job.attempt, len(job.errors)) == (3, 3)
    discarded = await client.get(await client.enqueue(Order("spoon")))
    assert (discarded.state, discarded.attempt) == ("discarded", 1)


async def test_what_is_due_later_stays_until_time_is_moved() -> None:
    clock, mails = MockClock(), Mails()
    client = InlineClient(MemoryDriver(clock), registry, app=mails)
    delayed = await client.enqueue(SendEmail("ann"), delay=3600)
    snoozed = await client.enqueue(Order("later"))
    assert mails == ["snoozed"]
    assert (await client.get(snoozed)).state == "scheduled"
    await clock.advance(60)
    await client.work()
    assert mails == ["snoozed", "later"]
    await clock.advance(3600)
    await client.work()
    assert mails == ["snoozed", "later", "ann"]
    assert await client.count(state="completed") == 3
    assert (await client.get(delayed)).attempt == 1


async def test_a_transaction_is_worked_after_its_commit() -> None:
    driver, mails = MemoryDriver(), Mails()
    client = InlineClient(driver, registry, app=mails)
    async with driver.transaction() as tx:
        await client.enqueue_tx(tx, SendEmail("ann"))
        await client.enqueue(SendEmail("bob"))
        assert mails == ["bob"]
    await client.work()
    assert mails == ["bob", "ann"]


async def test_an_enqueue_inside_a_worker_does_not_wait_for_itself() -> None:
    driver = MemoryDriver()
    nested = Registry()
    client = InlineClient(driver, nested)
    done: list[str] = []

    @nested.worker(Order)
    async def again(job: Job[Order]) -> None:
        await client.enqueue(SendEmail(job.args.item))
        done.append("order")

    @nested.worker(SendEmail)
    async def mail(job: Job[SendEmail]) -> None:
        done.append("mail")

    async with asyncio.timeout(10):
        await client.enqueue(Order("teapot"))
    assert sorted(done) == ["mail", "order"]


async def test_enqueues_at_once_share_the_work() -> None:
    mails = Mails()
    client = InlineClient(MemoryDriver(), registry, app=mails)
    await asyncio.gather(*[client.enqueue(SendEmail(str(n))) for n in range(10)])
    assert sorted(mails) == [str(n) for n in range(10)]


async def test_without_an_app_the_lifespan_is_entered(driver: AnyDriver) -> None:
    client = InlineClient(driver, registry)
    assert await client.wait(await client.enqueue(Order("teapot")), timeout=0) == 1


async def test_what_cannot_run_is_left(driver: AnyDriver) -> None:
    client = InlineClient(driver, registry, app=Mails())
    await client.queue_pause("mail")
    async with asyncio.timeout(10):
        paused = await client.enqueue(SendEmail("ann"), queue="mail")
        unknown = await client.enqueue(Resize(1))
        newer = await client.enqueue(Order("teapot"), payload_version=9)
    for handle in (paused, unknown):
        assert (await client.get(handle)).state == "available"
    assert not (await client.get(newer)).state.finished
    await client.queue_resume("mail")
    await client.work()
    assert (await client.get(paused)).state == "completed"


async def test_args_are_proved_and_decoded() -> None:
    client = InlineClient(MemoryDriver(), registry, app=Mails())
    unfit: Any = SendEmail(float("inf"))  # type: ignore[arg-type]
    with pytest.raises(PayloadError):
        await client.enqueue(unfit)

    @dataclass
    class Older:
        kind: ClassVar[str] = "order"
        number: int

    info = await client.get(await client.enqueue(Older(1)))
    assert info.state == "discarded"
    assert "do not fit Order" in info.errors[0].message


async def test_defaults_are_those_of_a_client() -> None:
    client = InlineClient(MemoryDriver(), registry, app=Mails(), defaults=InsertOpts(tags=["test"]))
    assert (await client.get(await client.enqueue(Order("x")))).tags == ("test",)


async def test_codecs_and_settings_of_the_pool(driver: AnyDriver) -> None:
    mails = Mails()
    client = InlineClient(driver, registry, app=mails, codec=Turned(), max_attempts=2)
    info = await client.get(await client.enqueue(SendEmail("ann")))
    assert (info.state, info.content, mails) == ("completed", "turned", ["ann"])
    with pytest.raises(ConfigurationError, match="'queues' is no setting"):
        InlineClient(driver, registry, queues=["mail"])


def test_the_same_for_synchronous_code(driver: AnyDriver) -> None:
    mails = Mails()
    with driver:
        client = SyncInlineClient(driver, registry, app=mails)
        assert client.wait(client.enqueue(Order("cup")), timeout=0) == 2
        client.enqueue_many([Order("a"), Order("b")])
        client.enqueue_batch([(Order("c"), InsertOpts(queue="elsewhere"))])
        assert sorted(mails) == ["a", "b", "c", "cup"]
        with pytest.raises(JobFailedError, match="no spoon"):
            client.wait(client.enqueue(Order("spoon")), timeout=0)


def test_a_synchronous_enqueue_inside_a_worker_does_not_wait_for_itself() -> None:
    driver = MemoryDriver()
    nested = Registry()
    client = SyncInlineClient(driver, nested)
    done: list[str] = []

    @nested.worker(Order)
    def again(job: SyncJob[Order]) -> None:
        client.enqueue(SendEmail(job.args.item))
        done.append("order")

    @nested.worker(SendEmail)
    def mail(job: SyncJob[SendEmail]) -> None:
        done.append("mail")

    with driver:
        client.enqueue(Order("teapot"))
        assert sorted(done) == ["mail", "order"]
        with driver.sync_transaction() as tx:
            client.enqueue_tx(tx, SendEmail("ann"))
        client.work()
        assert sorted(done) == ["mail", "mail", "order"]
