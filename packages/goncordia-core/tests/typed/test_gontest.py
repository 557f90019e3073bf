"""The test helpers: checked by mypy and pyright, not run.

Each ``# type: ignore[code]`` is an error that both must find.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, assert_type

from goncordia import (
    Client,
    Job,
    JobHandle,
    JobInfo,
    Registry,
    SyncClient,
    SyncJob,
    TaskArgs,
    gontest,
)
from goncordia.gontest import (
    Enqueued,
    InlineClient,
    MemoryClient,
    MockClock,
    StandaloneJob,
    StandaloneSyncJob,
    SyncTracker,
    Tracker,
    WorkerHelper,
    WorkResult,
)
from goncordia.memory import MemoryDriver, MemoryTx


@dataclass
class SendEmail:
    kind: ClassVar[str] = "send_email"
    to: str


@dataclass
class Resize:
    kind: ClassVar[str] = "resize"
    width: int


class App:
    sender: str


registry = Registry()


@registry.task(kind="double")
async def double(number: int) -> int:
    return 2 * number


async def send(job: Job[SendEmail]) -> str:
    return job.args.to


async def send_with(job: Job[SendEmail, App]) -> str:
    return job.app.sender


def resize(job: SyncJob[Resize]) -> int:
    return job.args.width


def resize_with(job: SyncJob[Resize, App]) -> int:
    return job.args.width


def clients() -> None:
    assert_type(gontest.new_client(), MemoryClient)
    assert_type(gontest.new_client(MockClock()).driver, MemoryDriver)
    gontest.new_client(5)  # type: ignore[arg-type]


async def tracked(client: Client[Any], sync: SyncClient[Any]) -> None:
    tracker = Tracker(client)
    assert_type(await tracker.require_enqueued(SendEmail, 1), list[Enqueued[SendEmail]])
    assert_type(await tracker.enqueued(double.args_class), list[Enqueued[TaskArgs[int]]])
    assert_type(await tracker.jobs(), list[JobInfo])
    await tracker.require_enqueued(SendEmail, queue="mail", where=lambda args: args.to == "ann")
    await tracker.require_enqueued(SendEmail, where=lambda args: args.width == 1)  # type: ignore[attr-defined]
    await tracker.require_enqueued(int)  # type: ignore[type-var]
    await tracker.require_enqueued(SendEmail, "1")  # type: ignore[arg-type]
    await tracker.require_not_enqueued(SendEmail, que="mail")  # type: ignore[call-arg]
    (found,) = SyncTracker(sync).require_enqueued(SendEmail, 1)
    assert_type(found.args, SendEmail)
    Tracker(sync)  # type: ignore[arg-type]
    SyncTracker(client)  # type: ignore[arg-type]


async def standalone() -> None:
    assert_type(gontest.job(SendEmail("ann")), StandaloneJob[SendEmail, None])
    assert_type(gontest.job(SendEmail("ann"), app=App()), StandaloneJob[SendEmail, App])
    assert_type(gontest.sync_job(Resize(1)), StandaloneSyncJob[Resize, None])
    assert_type(await send(gontest.job(SendEmail("ann"), attempt=2, queue="mail")), str)
    await send(gontest.job(SendEmail("ann"), app=App()))
    await send_with(gontest.job(SendEmail("ann"), app=App()))
    await send_with(gontest.job(SendEmail("ann")))  # type: ignore[arg-type]
    await send(gontest.job(Resize(1)))  # type: ignore[arg-type]
    assert_type(resize(gontest.sync_job(Resize(1))), int)
    resize(gontest.job(Resize(1)))  # type: ignore[arg-type]
    gontest.job(SendEmail("ann"), prio=1)  # type: ignore[call-overload]


async def worked() -> None:
    assert_type(await gontest.require_work(send, SendEmail("ann")), WorkResult)
    await gontest.require_work(send, SendEmail("ann"), app=App(), queue="mail")
    await gontest.require_work(send_with, SendEmail("ann"), app=App())
    await gontest.require_work(resize, Resize(1))
    await gontest.require_work(resize_with, Resize(1), app=App())
    await gontest.require_work(double, double.args(1))
    await gontest.require_work(send, Resize(1))  # type: ignore[arg-type]
    await gontest.require_work(send_with, SendEmail("ann"))  # type: ignore[arg-type]


async def helped(with_app: Registry[App], driver: MemoryDriver) -> None:
    helper = WorkerHelper(with_app, driver, app=App())
    assert_type(helper, WorkerHelper[App])
    assert_type(await helper.work(SendEmail("ann"), delay=5), WorkResult)
    WorkerHelper(with_app, app=5)  # type: ignore[misc]
    gontest.worker_pool(driver, with_app, app=App(), concurrency=1)
    gontest.worker_pool(driver, with_app, app=5)  # type: ignore[misc]


async def inline(with_app: Registry[App], driver: MemoryDriver) -> None:
    client = InlineClient(driver, with_app, app=App())
    assert_type(client, InlineClient[MemoryTx])
    assert_type(await client.enqueue(SendEmail("ann")), JobHandle[SendEmail])
    assert_type(await client.wait(await client.enqueue(double.args(1))), int)
    InlineClient(driver, with_app, app=5)  # type: ignore[misc]
