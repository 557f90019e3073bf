"""Enqueueing many: any iterable, in chunks, all or nothing, in bounded memory."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import AsyncIterator, Iterator

import pytest

from goncordia import (
    Client,
    ConfigurationError,
    DriverUnavailableError,
    InsertOpts,
    JobArgs,
    JobState,
    PayloadError,
    SyncClient,
    UnsupportedError,
)
from goncordia.memory import MemoryDriver, MemoryTx

from .kit import Mail, Once, Report, ShakyDriver


async def arriving(number: int) -> AsyncIterator[Mail]:
    for copies in range(number):
        yield Mail("a", copies)


async def test_a_list_gives_its_handles_in_order(client: Client[MemoryTx]) -> None:
    args: list[JobArgs] = [Mail("a"), Report("mon"), Once("x"), Once("x")]
    done = await client.enqueue_many(args, priority=4)
    assert (done.count, done.duplicates, done.pending) == (4, 1, 0)
    kinds = [(handle.kind, handle.duplicate) for handle in done.handles]
    assert kinds == [("mail", False), ("report", False), ("once", False), ("once", True)]
    assert done.handles[3].id == done.handles[2].id
    rows = await client.get_many([handle.id for handle in done.handles[:3]])
    assert [row and (row.queue, row.priority) for row in rows] == [
        ("default", 4),
        ("reports", 4),
        ("default", 4),
    ]
    assert repr(done) == "<EnqueuedMany 4 jobs, 1 duplicate>"


async def test_the_result_does_not_keep_the_args(
    client: Client[MemoryTx], sync: SyncClient[MemoryTx]
) -> None:
    class Mails(list[Mail]):
        """A list that can be seen to go."""

    for enqueue in ("await", "sync"):
        mails = Mails([Mail("a"), Mail("b")])
        seen = weakref.ref(mails)
        if enqueue == "await":
            done = await client.enqueue_many(mails)
        else:
            done = sync.enqueue_many(mails)
        del mails
        gc.collect()
        assert seen() is None
        assert [handle.kind for handle in done.handles] == ["mail", "mail"]
        assert done.handles is done.handles


async def test_an_iterator_gives_counts(client: Client[MemoryTx]) -> None:
    done = await client.enqueue_many((Mail("a", n) for n in range(5)), queue="q")
    assert (done.count, done.duplicates) == (5, 0)
    with pytest.raises(ConfigurationError, match="handles: they are not kept for an iterator"):
        _ = done.handles
    assert await client.count(queue="q") == 5


async def test_an_async_iterable_too(client: Client[MemoryTx], driver: MemoryDriver) -> None:
    assert (await client.enqueue_many(arriving(7))).count == 7
    async with driver.transaction() as tx:
        assert (await client.enqueue_many_tx(tx, arriving(3))).count == 3
    assert await client.count() == 10
    newest = [info.args["copies"] for info in (await client.list()).jobs]
    assert newest == [2, 1, 0, 6, 5, 4, 3, 2, 1, 0]


async def test_nothing_is_nothing(client: Client[MemoryTx], shaky: ShakyDriver) -> None:
    done = await Client(shaky).enqueue_many([])
    assert (done.count, list(done.handles)) == (0, [])
    assert shaky.faults.calls == []


async def test_each_with_its_own_options(client: Client[MemoryTx], driver: MemoryDriver) -> None:
    pairs: list[tuple[JobArgs, InsertOpts]] = [
        (Mail("a"), InsertOpts(queue="x")),
        (Report("mon"), InsertOpts(delay=60)),
    ]
    done = await client.enqueue_batch(pairs)
    rows = await client.get_many(done.handles)
    assert [row and (row.queue, row.state) for row in rows] == [
        ("x", JobState.AVAILABLE),
        ("reports", JobState.SCHEDULED),
    ]
    async with driver.transaction() as tx:
        await client.enqueue_batch_tx(tx, iter(pairs))
        assert await client.count() == 2
    assert await client.count() == 4


async def test_more_than_is_atomic_is_refused_before_anything_is_written(
    driver: MemoryDriver,
) -> None:
    shaky = ShakyDriver(driver, atomic_insert=3, max_batch=10)
    client = Client(shaky)
    assert (await client.enqueue_many([Mail("a")] * 3)).count == 3
    shaky.faults.calls.clear()
    with pytest.raises(UnsupportedError, match="at most 3 jobs are inserted all or nothing; with"):
        await client.enqueue_many([Mail("a")] * 4)
    with pytest.raises(UnsupportedError, match="atomic_insert"):
        await client.enqueue_batch([(Mail("a"), InsertOpts())] * 4)
    assert shaky.faults.calls == []
    done = await client.enqueue_many([Mail("a")] * 25, atomic=False)
    assert (done.count, len(done.handles)) == (25, 25)
    assert shaky.faults.calls == ["insert_many"] * 3


async def test_with_atomic_one_bad_job_means_none(driver: MemoryDriver) -> None:
    client = Client(ShakyDriver(driver, max_batch=2))
    with pytest.raises(PayloadError):
        await client.enqueue_many([Mail("a"), Mail("\udc80")])
    assert await client.count() == 0


async def test_without_atomic_whole_chunks_stay(driver: MemoryDriver) -> None:
    client = Client(ShakyDriver(driver, max_batch=2))
    args = [Mail("a"), Mail("b"), Mail("c"), Mail("\udc80")]
    with pytest.raises(PayloadError) as caught:
        await client.enqueue_many(args, atomic=False)
    assert caught.value.__notes__ == ["2 jobs before this were enqueued, and stay so"]
    assert await client.count() == 2


async def test_a_transaction_takes_any_number_in_chunks(driver: MemoryDriver) -> None:
    shaky = ShakyDriver(driver, max_batch=10, atomic_insert=1)
    client = Client(shaky)
    async with driver.transaction() as tx:
        done = await client.enqueue_many_tx(tx, [Mail("a")] * 25)
    assert (done.count, len(done.handles)) == (25, 25)
    assert shaky.faults.calls == ["insert_many"] * 3


async def test_chunks_are_repeated_alone(driver: MemoryDriver) -> None:
    shaky = ShakyDriver(driver, max_batch=2)
    client = Client(shaky, replays=0)
    shaky.faults.after += [DriverUnavailableError("cut")]
    with pytest.raises(DriverUnavailableError):
        await client.enqueue_many([Mail("a")] * 4, atomic=False)
    # Its outcome is unknown: here it was done.
    assert await client.count() == 2


def many(number: int, sizes: int) -> Iterator[Mail]:
    return (Mail("x" * sizes, n) for n in range(number))


async def test_large_args_make_small_chunks(shaky: ShakyDriver) -> None:
    client = Client(shaky)
    await client.enqueue_many(many(20, 500_000), atomic=False)
    # 4 MiB hold eight of them; the ninth crosses it.
    assert shaky.faults.calls == ["insert_many"] * 3


class _Swallow:
    """An executor that keeps nothing."""

    def insert_many(self, jobs: object) -> object:
        from goncordia.driver import InsertResult

        return [InsertResult(job.id, "INSERTED") for job in jobs]  # type: ignore[attr-defined]


def test_memory_does_not_grow_with_the_stream(
    driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "sync_executor", _Swallow)
    client = SyncClient(driver)
    client.enqueue_many(many(5000, 10), atomic=False)
    tracemalloc.start()
    try:
        client.enqueue_many(many(5_000, 10), atomic=False)
        tracemalloc.reset_peak()
        client.enqueue_many(many(5_000, 10), atomic=False)
        _, little = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        client.enqueue_many(many(20_000, 10), atomic=False)
        _, much = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert much < little * 1.2


def test_sync_code_cannot_wait_for_async_args(sync: SyncClient[MemoryTx]) -> None:
    with pytest.raises(ConfigurationError, match="is not a plain iterable: for async ones"):
        sync.enqueue_many(arriving(3))  # type: ignore[arg-type]
