"""Enqueueing one job: what is stored, which option wins, and transactions."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

from goncordia import (
    Client,
    ConfigurationError,
    InsertOpts,
    JobState,
    NotFoundError,
    PayloadError,
    UniqueOpts,
    UnsupportedError,
)
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver, MemoryTx

from .kit import Mail, Once, Report, ShakyDriver

START = datetime(2026, 1, 1, tzinfo=UTC)


async def test_a_job_comes_back_as_it_was_enqueued(client: Client[MemoryTx]) -> None:
    handle = await client.enqueue(Mail("ann@example.com", 2))
    info = await client.get(handle)
    assert (info.id, info.kind, info.queue, info.state) == (
        handle.id,
        "mail",
        "default",
        JobState.AVAILABLE,
    )
    assert info.args == {"to": "ann@example.com", "copies": 2}
    assert info.args_as(Mail) == Mail("ann@example.com", 2)
    assert info.raw_args == b'{"to":"ann@example.com","copies":2}'
    assert (info.created_at, info.run_at) == (START, START)
    assert (info.attempt, info.max_attempts, info.timeout) == (0, None, None)
    assert (info.output, info.checkpoint, info.errors) == (None, None, ())
    assert (handle.kind, handle.args_type, handle.duplicate, handle.pending) == (
        "mail",
        Mail,
        False,
        False,
    )


async def test_every_option_is_stored(client: Client[MemoryTx]) -> None:
    handle = await client.enqueue(
        Mail("a"),
        queue="post",
        priority=-3,
        run_at=datetime(2026, 1, 1, 3, tzinfo=timezone(timedelta(hours=2))),
        max_attempts=4,
        timeout=2.5,
        tags=["x", "y", "x"],
        meta={"trace": "1"},
        concurrency_key="host-1",
        concurrency_limit=3,
        payload_version=2,
    )
    info = await client.get(handle)
    assert (info.queue, info.priority, info.max_attempts, info.timeout) == ("post", -3, 4, 2.5)
    assert info.run_at == datetime(2026, 1, 1, 1, tzinfo=UTC)
    assert info.state is JobState.SCHEDULED
    assert (info.tags, info.meta, info.payload_version) == (("x", "y"), {"trace": "1"}, 2)
    assert (info.pipeline_id, info.concurrency_key, info.concurrency_limit) == (None, "host-1", 3)


async def test_a_pipeline_is_shown_as_one(client: Client[MemoryTx]) -> None:
    info = await client.get(await client.enqueue(Mail("a"), pipeline_id="key:1"))
    assert (info.pipeline_id, info.concurrency_key, info.concurrency_limit) == ("key:1", None, 1)


async def test_no_timeout_is_not_the_same_as_none_given(client: Client[MemoryTx]) -> None:
    assert (await client.get(await client.enqueue(Mail("a"), timeout=None))).timeout == math.inf
    assert (await client.get(await client.enqueue(Mail("a")))).timeout is None


async def test_a_delay_counts_from_now(client: Client[MemoryTx], clock: MockClock) -> None:
    await clock.advance(5)
    info = await client.get(await client.enqueue(Mail("a"), delay=timedelta(minutes=1)))
    assert info.run_at == START + timedelta(seconds=65)


async def test_the_class_then_the_client_then_the_call(driver: MemoryDriver) -> None:
    plain = Client(driver)
    info = await plain.get(await plain.enqueue(Report("mon")))
    assert (info.queue, info.priority, info.tags) == ("reports", 7, ("slow",))
    mine = Client(driver, defaults=InsertOpts(queue="mine", timeout=9))
    info = await mine.get(await mine.enqueue(Report("mon")))
    assert (info.queue, info.priority, info.timeout) == ("mine", 7, 9.0)
    info = await mine.get(await mine.enqueue(Report("mon"), InsertOpts(queue="call", priority=1)))
    assert (info.queue, info.priority, info.timeout) == ("call", 1, 9.0)
    info = await mine.get(
        await mine.enqueue(Report("mon"), InsertOpts(queue="call", priority=1), queue="word")
    )
    assert (info.queue, info.priority, info.timeout) == ("word", 1, 9.0)


async def test_a_duplicate_is_the_handle_of_the_job_that_is_there(
    client: Client[MemoryTx],
) -> None:
    first = await client.enqueue(Once("a"))
    again = await client.enqueue(Once("a"))
    assert (again.id, again.duplicate, first.duplicate) == (first.id, True, False)
    assert not (await client.enqueue(Once("b"))).duplicate
    # The call takes the class's rule back.
    assert not (await client.enqueue(Once("a"), unique=None)).duplicate
    assert await client.count() == 3


async def test_unique_by_period_takes_the_period_of_run_at(
    client: Client[MemoryTx], clock: MockClock
) -> None:
    hourly = InsertOpts(unique=UniqueOpts(by_period=3600))
    first = await client.enqueue(Mail("a"), hourly)
    assert (await client.enqueue(Mail("b"), hourly, delay=3599)).id == first.id
    later = await client.enqueue(Mail("c"), hourly, delay=3600)
    assert not later.duplicate
    at = await client.enqueue(Mail("d"), hourly, run_at=START + timedelta(hours=1, minutes=59))
    assert at.id == later.id
    await clock.advance(3600)
    assert (await client.enqueue(Mail("e"), hourly)).id == later.id


async def test_ids_grow(client: Client[MemoryTx]) -> None:
    ids = [(await client.enqueue(Mail("a"))).id for _ in range(50)]
    assert ids == sorted(set(ids))
    assert {job_id.version for job_id in ids} == {7}


async def test_in_a_transaction_the_commit_decides(
    client: Client[MemoryTx], driver: MemoryDriver
) -> None:
    async with driver.transaction() as tx:
        handle = await client.enqueue_tx(tx, Mail("a"), queue="post")
        assert await client.count() == 0
    assert (await client.get(handle)).queue == "post"
    lost = handle
    with pytest.raises(KeyError):
        async with driver.transaction() as tx:
            lost = await client.enqueue_tx(tx, Mail("b"))
            raise KeyError
    with pytest.raises(NotFoundError, match=f"there is no job {lost.id}"):
        await client.get(lost)
    with pytest.raises(ConfigurationError, match="the transaction is over"):
        await client.enqueue_tx(tx, Mail("c"))


@pytest.mark.parametrize(
    ("off", "options", "told"),
    [
        ("unique_jobs", {"unique": UniqueOpts()}, "unique_jobs: enqueue without unique="),
        ("groups", {"pipeline_id": "p"}, "groups: enqueue without pipeline_id="),
        (
            "groups",
            {"concurrency_key": "k", "concurrency_limit": 2},
            "groups: enqueue without pipeline_id=",
        ),
    ],
)
async def test_what_the_driver_cannot_keep_is_refused(
    driver: MemoryDriver, off: str, options: dict[str, object], told: str
) -> None:
    weak = ShakyDriver(driver, **{off: False})
    client = Client(weak)
    opts = InsertOpts(**options)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=told) as caught:
        await client.enqueue(Mail("a"), opts)
    assert (caught.value.driver, caught.value.capability) == ("shaky", off)
    with pytest.raises(UnsupportedError, match=told):
        await client.enqueue_batch([(Mail("a"), InsertOpts()), (Mail("a"), opts)])
    assert weak.faults.calls == []
    # Taken back by the call, the option asks for nothing.
    back = {name: None for name in options if name != "concurrency_limit"}
    await client.enqueue(Mail("a"), opts, **back)  # type: ignore[arg-type]


async def test_args_are_at_most_what_the_driver_stores(driver: MemoryDriver) -> None:
    small = Client(ShakyDriver(driver, max_payload=100))
    await small.enqueue(Mail("x" * 70))
    with pytest.raises(
        PayloadError, match="bytes of args are more than the limit of 100"
    ) as caught:
        await small.enqueue(Mail("x" * 100))
    assert caught.value.kind == "mail"
    large = Client(driver)
    with pytest.raises(PayloadError, match="limit of 1048576"):
        await large.enqueue(Mail("x" * (1 << 20)))


async def test_nothing_says_the_args_in_words(client: Client[MemoryTx]) -> None:
    assert repr(client) == "<Client of MemoryDriver>"
    handle = await client.enqueue(Once("secret"))
    again = await client.enqueue(Once("secret"))
    assert repr(handle) == f"<JobHandle once {handle.id}>"
    assert repr(again) == f"<JobHandle once {handle.id} duplicate>"
    assert handle == again
    assert len({handle, again}) == 1
    assert handle != handle.id
    assert repr(await client.get(handle)) == f"<JobInfo once {handle.id} available attempt 0>"


async def test_args_as_wants_the_right_class(client: Client[MemoryTx]) -> None:
    info = await client.get(await client.enqueue(Mail("a")))
    with pytest.raises(ConfigurationError, match="is not the args class of kind 'mail'"):
        info.args_as(Report)


async def test_capabilities_may_be_known_only_once_the_driver_is_open(
    driver: MemoryDriver,
) -> None:
    shaky = ShakyDriver(driver)
    client = Client(shaky)
    await client.enqueue(Once("a"))
    shaky.become(unique_jobs=False)
    with pytest.raises(UnsupportedError, match="unique_jobs"):
        await client.enqueue(Once("a"))
    shaky.become(unique_jobs=True, max_payload=5)
    with pytest.raises(PayloadError, match="limit of 5"):
        await client.enqueue(Once("a"))
