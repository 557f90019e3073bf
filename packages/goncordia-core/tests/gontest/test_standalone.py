from __future__ import annotations

from typing import Any

import pytest

from goncordia import (
    Client,
    ConfigurationError,
    Job,
    PayloadError,
    ProcessJob,
    SyncClient,
    SyncJob,
    UniqueOpts,
    gontest,
)
from goncordia.gontest import Tracker, new_client

from .kit import Resize, SendEmail


class App:
    sender = "shop"


async def test_a_worker_is_called_as_the_function_that_it_is() -> None:
    async def send(job: Job[SendEmail, App]) -> str:
        return f"{job.app.sender} to {job.args.to}, attempt {job.attempt}"

    said = await send(gontest.job(SendEmail("ann"), app=App(), attempt=3))
    assert said == "shop to ann, attempt 3"


def test_a_plain_worker_too() -> None:
    def send(job: SyncJob[SendEmail, App]) -> str:
        return f"{job.app.sender} to {job.args.to}, attempt {job.attempt}"

    assert send(gontest.sync_job(SendEmail("ann"), app=App())) == "shop to ann, attempt 1"


@pytest.mark.parametrize("make", [gontest.job, gontest.sync_job])
def test_what_it_says_of_itself(make: Any) -> None:
    job = make(
        SendEmail("ann"),
        queue="mail",
        priority=7,
        tags=["vip"],
        meta={"trace": "1"},
        max_attempts=4,
        unique=UniqueOpts(),
    )
    assert (job.kind, job.queue, job.priority, job.tags) == ("send_email", "mail", 7, ("vip",))
    assert (job.meta, job.max_attempts, job.attempt) == ({"trace": "1"}, 4, 1)
    assert (job.id.version or job.id.int >> 76 & 15) == 7
    assert job.run_at.tzinfo is not None
    assert job.app is None
    assert make(SendEmail("ann")).max_attempts == 25
    assert not job.cancelled
    job.cancel()
    assert job.cancelled


def test_its_args_go_to_json_and_back() -> None:
    args = SendEmail("ann")
    assert gontest.job(args).args == args
    assert gontest.job(args).args is not args
    unfit: Any = SendEmail(float("nan"))  # type: ignore[arg-type]
    with pytest.raises(PayloadError):
        gontest.job(unfit)


async def test_checkpoints_are_noted() -> None:
    job = gontest.job(Resize(400), checkpoint={"row": 1})
    assert job.last_checkpoint == {"row": 1}
    assert job.checkpoints == []
    await job.checkpoint({"row": 2})
    await job.checkpoint({"row": 3})
    assert job.checkpoints == [{"row": 2}, {"row": 3}]
    assert job.last_checkpoint == {"row": 3}
    with pytest.raises(PayloadError):
        await job.checkpoint("x" * 70_000)


async def test_checkpoints_of_a_plain_worker_also_on_a_loop() -> None:
    job = gontest.sync_job(Resize(400), checkpoint=1)
    assert job.load_checkpoint(int) == 1
    job.checkpoint(2)
    assert (job.checkpoints, job.last_checkpoint) == ([2], 2)


async def test_complete_tx_leaves_the_transaction_alone() -> None:
    transaction = object()
    job = gontest.job(Resize(400))
    assert job.completed_in is None
    await job.complete_tx(transaction, 5)
    assert job.completed_in is transaction
    blocking = gontest.sync_job(Resize(400))
    blocking.complete_tx(transaction)
    assert blocking.completed_in is transaction


async def test_its_client_is_the_given_one_or_one_on_an_empty_driver() -> None:
    client = new_client()
    job = gontest.job(Resize(400), client=client)
    assert job.client is client
    await Tracker(client).require_not_enqueued(Resize)
    alone = gontest.job(Resize(400))
    await alone.client.enqueue(SendEmail("ann"))
    (found,) = await Tracker(alone.client).jobs()
    assert found.kind == "send_email"
    sync = SyncClient(client.driver)
    assert gontest.sync_job(Resize(400), client=sync).client is sync
    blocking = gontest.sync_job(Resize(400))
    blocking.client.enqueue(SendEmail("ann"))
    assert blocking.client.count() == 1
    assert isinstance(alone.client, Client)


def test_a_worker_for_processes_is_called_here() -> None:
    def count(job: ProcessJob[Resize]) -> int:
        for row in range(job.last_checkpoint or 0, 3):
            job.checkpoint(row + 1)
        return job.args.width * job.attempt

    job = gontest.process_job(Resize(4), attempt=2, checkpoint=1, queue="cpu")
    assert count(job) == 8
    assert (job.checkpoints, job.last_checkpoint, job.queue) == ([2, 3], 3, "cpu")


def test_bad_input_is_named() -> None:
    client: Any = "x"
    with pytest.raises(ConfigurationError, match="attempt: 0 is not"):
        gontest.job(Resize(1), attempt=0)
    with pytest.raises(ConfigurationError, match="client: 'x' is not a Client"):
        gontest.job(Resize(1), client=client)
    with pytest.raises(ConfigurationError, match="client: 'x' is not a SyncClient"):
        gontest.sync_job(Resize(1), client=client)
    options: Any = {"prio": 1}
    with pytest.raises(ConfigurationError, match="prio"):
        gontest.job(Resize(1), **options)
