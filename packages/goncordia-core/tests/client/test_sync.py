"""The synchronous client does what the other does, on every driver."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import pytest

from goncordia import (
    ChangeSummary,
    Client,
    ConflictError,
    InsertOpts,
    JobFailedError,
    JobState,
    NotFoundError,
    SyncClient,
)
from goncordia.driver import BaseDriver, BaseExecutor, Capabilities
from goncordia.memory import MemoryDriver, MemoryTx

from .kit import Hand, Mail, Once, Report


class OnlyAsync(BaseDriver):
    """A driver without a synchronous side of its own: the portal's thread stands in."""

    name = "only-async"

    def __init__(self) -> None:
        self.inner = MemoryDriver()
        capabilities: Capabilities = self.inner.capabilities
        super().__init__(capabilities)

    async def open(self) -> None:
        await self.inner.open()

    async def aclose(self) -> None:
        await self.inner.aclose()
        await super().aclose()

    async def migrate(self) -> list[str]:
        return await self.inner.migrate()

    def executor(self) -> BaseExecutor:
        return self.inner.executor()


def test_both_clients_offer_the_same() -> None:
    def offer(cls: type[Any]) -> dict[str, list[tuple[str, Any]]]:
        return {
            name: [
                (each.name, each.kind)
                for each in inspect.signature(getattr(cls, name)).parameters.values()
            ]
            for name in dir(cls)
            if not name.startswith("_")
        }

    assert offer(SyncClient) == offer(Client)
    one, two = inspect.signature(Client), inspect.signature(SyncClient)
    assert list(one.parameters) == list(two.parameters)


@pytest.mark.parametrize("make", [MemoryDriver, OnlyAsync])
def test_the_whole_life_of_jobs(make: type[Any]) -> None:
    with make() as driver:
        driver.migrate_sync()
        client: SyncClient[Any] = SyncClient(driver, defaults=InsertOpts(queue="q"))
        one = client.enqueue(Mail("a"))
        assert client.get(one).args_as(Mail) == Mail("a")
        done = client.enqueue_many([Once("x"), Once("x")])
        assert (done.count, done.duplicates) == (2, 1)
        client.enqueue_batch(iter([(Report("mon"), InsertOpts(priority=2))]))
        assert client.count() == client.count(queue="q") == 3
        assert [info.kind for info in client.list_all()] == ["report", "once", "mail"]
        page = client.list(limit=2)
        assert page.cursor is not None
        assert [info.id for info in client.list(cursor=page.cursor)] == [one.id]
        assert client.reschedule(one, delay=60).state is JobState.SCHEDULED
        assert client.retry(one).status == "CHANGED"
        assert client.cancel(one).status == "CHANGED"
        with pytest.raises(JobFailedError, match="was cancelled"):
            client.wait(one)
        with pytest.raises(ConflictError):
            client.reschedule(one, delay=1)
        assert [result.ok for result in client.cancel_many(done.handles)] == [True, True]
        assert client.retry_many([one])[0].ok
        assert client.reschedule_many([one], delay=5)[0].ok
        assert client.cancel_where(kind=Report) == ChangeSummary(changed=1)
        assert client.retry_where(state="cancelled") == ChangeSummary(changed=2)
        assert client.reschedule_where(everything=True, delay=9) == ChangeSummary(changed=3)
        assert client.delete(one).ok
        with pytest.raises(NotFoundError):
            client.get(one)
        assert client.get_many([one, done.handles[0]])[0] is None
        assert client.delete_many([done.handles[0]])[0].ok
        assert client.delete_where(everything=True) == ChangeSummary(changed=1)
        client.queue_pause("q")
        assert [(queue.name, queue.paused) for queue in client.queues()] == [("q", True)]
        client.queue_resume("q")
        with pytest.raises(TimeoutError, match="did not end within 0 s"):
            client.wait(client.enqueue(Mail("a")), timeout=0)
        assert repr(client) == f"<SyncClient of {make.__name__}>"


def test_transactions(sync: SyncClient[MemoryTx], driver: MemoryDriver) -> None:
    kept = sync.enqueue(Mail("a"))
    with driver.sync_transaction() as tx:
        sync.enqueue_tx(tx, Mail("b"), queue="x")
        sync.enqueue_many_tx(tx, [Mail("c")])
        sync.enqueue_batch_tx(tx, [(Mail("d"), InsertOpts())])
        sync.cancel_tx(tx, kept)
        assert sync.count(state="available") == 1
    assert sync.count(state="available") == 3
    assert sync.get(kept).state is JobState.CANCELLED
    with pytest.raises(KeyError), driver.sync_transaction() as tx:
        sync.enqueue_tx(tx, Mail("e"))
        raise KeyError
    assert sync.count() == 4


def test_waiting_blocks_until_the_job_has_ended() -> None:
    # In real time: who blocks a thread cannot be moved by a clock that an event loop advances.
    driver = MemoryDriver()
    client = SyncClient(driver)
    handle = client.enqueue(Report("mon"))
    ended = threading.Event()

    def work() -> None:
        import asyncio

        ended.wait(60)
        asyncio.run(Hand(driver).work("reports", output=4))

    thread = threading.Thread(target=work)
    thread.start()
    with pytest.raises(TimeoutError, match=r"did not end within 0\.05 s; it is available"):
        client.wait(handle, timeout=0.05)
    ended.set()
    assert client.wait(handle, timeout=60) == 4
    thread.join()
    # What waited leaves no thread behind.
    assert not [each for each in threading.enumerate() if "portal" in each.name]
