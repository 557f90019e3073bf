from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from goncordia import (
    AnyDriver,
    Cancel,
    Client,
    ConfigurationError,
    Discard,
    Job,
    JobHandle,
    JobTimeoutError,
    NotFoundError,
    Registry,
    RetryAfter,
    Snooze,
    SyncJob,
    current_job,
)
from goncordia.gontest import MockClock, WorkerHelper, require_work
from goncordia.ids import new_session_id
from goncordia.memory import MemoryDriver

from .kit import DRIVERS, Resize, SendEmail


@dataclass
class Sync:
    kind: ClassVar[str] = "sync"
    how: str


class App:
    def __init__(self, name: str) -> None:
        self.name = name


@asynccontextmanager
async def lifespan() -> AsyncIterator[App]:
    yield App("real")


seen: list[str] = []


async def noted(job: Job, call_next: Any) -> object:
    seen.append(job.kind)
    return await call_next(job)


registry = Registry(lifespan=lifespan, middleware=[noted])


@registry.worker(Sync, timeout=0.05)
async def sync(job: Job[Sync, App]) -> str:
    match job.args.how:
        case "busy" if job.attempt == 1:
            raise RetryAfter(0, "rate limited")
        case "early":
            raise Snooze(60)
        case "gone":
            raise Discard("no such account")
        case "closed":
            raise Cancel
        case "slow":
            await asyncio.get_running_loop().create_future()
        case "broken":
            raise ZeroDivisionError("by zero")
        case _:
            pass
    return job.app.name


@registry.worker(Resize)
def resize(job: SyncJob[Resize, App]) -> int:
    assert current_job() is job
    return job.args.width


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> AnyDriver:
    made: AnyDriver = request.param()
    return made


async def test_an_attempt_is_that_of_a_pool(driver: AnyDriver) -> None:
    helper = WorkerHelper(registry, driver)
    seen.clear()
    result = await helper.work(Sync("well"), queue="other", delay=3600)
    assert (result.state, result.output, result.error) == ("completed", "real", None)
    assert (result.info.queue, result.info.attempt) == ("other", 1)
    assert (await helper.work(Resize(7))).output == 7
    assert seen == ["sync", "resize"]


async def test_only_one_attempt_runs(driver: AnyDriver) -> None:
    helper = WorkerHelper(registry, driver)
    result = await helper.work(Sync("busy"))
    assert result.info.attempt == 1
    assert result.state == "retryable"  # though it is due again at once
    assert isinstance(result.error, RetryAfter)
    result = await helper.attempt(result.info)
    assert (result.state, result.info.attempt) == ("completed", 2)
    assert [error.message for error in result.info.errors] == ["rate limited"]


@pytest.mark.parametrize(
    ("how", "state", "attempt", "error"),
    [
        ("early", "scheduled", 0, None),
        ("gone", "discarded", 1, Discard),
        ("closed", "cancelled", 1, None),
        ("broken", "retryable", 1, ZeroDivisionError),
    ],
)
async def test_directives_and_failures(
    how: str, state: str, attempt: int, error: type[BaseException] | None
) -> None:
    result = await WorkerHelper(registry).work(Sync(how))
    assert (result.state, result.info.attempt) == (state, attempt)
    assert type(result.error) is (error or type(None))


async def test_the_last_attempt_is_the_last() -> None:
    helper = WorkerHelper(registry)
    result = await helper.work(Sync("broken"), max_attempts=2)
    assert result.state == "retryable"
    result = await helper.attempt(result.info)
    assert (result.state, result.info.attempt) == ("discarded", 2)


async def test_a_timeout_ends_an_attempt() -> None:
    result = await WorkerHelper(registry).work(Sync("slow"))
    assert result.state == "retryable"
    assert isinstance(result.error, JobTimeoutError)


async def test_the_app_can_be_another(driver: AnyDriver) -> None:
    helper = WorkerHelper(registry, driver, app=App("mine"))
    assert (await helper.work(Sync("well"))).output == "mine"


async def test_other_jobs_of_the_queue_stay_as_they_are(driver: AnyDriver) -> None:
    client = Client(driver)
    others: list[JobHandle] = [await client.enqueue(Sync("well"), max_attempts=1) for _ in range(3)]
    others += [await client.enqueue(Sync("well")) for _ in range(3)]
    result = await WorkerHelper(registry, driver).work(Sync("well"))
    assert result.state == "completed"
    for other in others:
        info = await client.get(other)
        assert (info.state, info.attempt, info.errors) == ("available", 0, ())


async def test_other_jobs_go_back_before_they_start(driver: AnyDriver) -> None:
    client = Client(driver)
    mixed = Registry()

    @mixed.worker(Resize)
    async def wait_for_the_other(job: Job[Resize]) -> None:
        async with asyncio.timeout(30):  # it is a moment
            while (await client.get(other)).state == "running":  # noqa: ASYNC110  # no event tells
                await asyncio.sleep(0)

    other = await client.enqueue(Resize(2), timeout=0.001, max_attempts=1)
    result = await WorkerHelper(mixed, driver).work(Resize(1))
    assert result.state == "completed"
    info = await client.get(other)
    assert (info.state, info.attempt, info.errors) == ("available", 0, ())


async def test_any_number_of_jobs_may_be_before_it(driver: AnyDriver) -> None:
    client = Client(driver)
    await client.enqueue(Sync("well"), payload_version=9)  # no worker can read it
    for _ in range(12):
        await client.enqueue_many([Sync("well")] * 100)
    before = {info.id: (info.state, info.run_at) async for info in client.list_all()}
    result = await WorkerHelper(registry, driver).work(Sync("well"))
    assert result.state == "completed"
    after = {info.id: (info.state, info.run_at) async for info in client.list_all()}
    del after[result.info.id]
    assert after == before


async def test_settings_are_those_of_a_pool() -> None:
    seen.clear()
    helper = WorkerHelper(registry, max_attempts=1, middleware=[noted])
    assert (await helper.work(Sync("broken"))).state == "discarded"
    assert seen == ["sync", "sync"]
    with pytest.raises(ConfigurationError, match="'queues' is no setting"):
        WorkerHelper(registry, queues=["mail"])


async def test_a_snooze_of_no_time_leaves_it_scheduled() -> None:
    naps = Registry()

    @naps.worker(Resize)
    async def nap(job: Job[Resize]) -> None:
        raise Snooze(0)

    result = await WorkerHelper(naps).work(Resize(1))
    assert (result.state, result.info.attempt, result.error) == ("scheduled", 0, None)


async def test_args_that_do_not_decode_are_discarded() -> None:
    @dataclass
    class Older:
        kind: ClassVar[str] = "resize"
        name: str

    result = await WorkerHelper(registry).work(Older("cat"))
    assert result.state == "discarded"
    assert "do not fit Resize" in str(result.error)


async def test_what_cannot_be_run_is_said() -> None:
    helper = WorkerHelper(registry)
    with pytest.raises(ConfigurationError, match=r"'send_email' has no worker .* resize, sync"):
        await helper.work(SendEmail("ann"))
    with pytest.raises(NotFoundError):
        await helper.attempt(new_session_id())
    done = await helper.work(Sync("well"))
    again = await helper.attempt(done.info)
    assert again.info.attempt == 2
    with pytest.raises(AssertionError, match="was not run: newer payload version"):
        await helper.work(Sync("well"), payload_version=9)
    await helper.client.queue_pause("mail")
    with pytest.raises(ConfigurationError, match="registry"):
        WorkerHelper(seen)  # type: ignore[arg-type]


async def test_require_work_gives_what_the_worker_returned() -> None:
    async def send(job: Job[SendEmail, App]) -> dict[str, str]:
        return {"from": job.app.name, "to": job.args.to}

    def count(job: SyncJob[Resize]) -> int:
        return job.args.width

    result = await require_work(send, SendEmail("ann"), app=App("shop"))
    assert result.output == {"from": "shop", "to": "ann"}
    result = await require_work(count, Resize(3), driver=MemoryDriver(MockClock()), queue="q")
    assert (result.output, result.info.queue) == (3, "q")


async def test_require_work_of_a_function_task() -> None:
    tasks = Registry()

    @tasks.task(kind="double", queue="maths")
    async def double(number: int, /) -> int:
        return 2 * number

    result = await require_work(double, double.args(4))
    assert (result.output, result.info.queue) == (8, "maths")


async def test_require_work_fails_with_the_workers_error_as_its_cause() -> None:
    async def broken(job: Job[SendEmail]) -> None:
        raise ZeroDivisionError("by zero")

    async def snoozing(job: Job[SendEmail]) -> None:
        raise Snooze(5)

    with pytest.raises(AssertionError) as raised:
        await require_work(broken, SendEmail("ann"))
    assert str(raised.value) == (
        "'send_email' completed expected, it is retryable: ZeroDivisionError: by zero"
    )
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    with pytest.raises(AssertionError, match=r"it is scheduled$"):
        await require_work(snoozing, SendEmail("ann"))
    with pytest.raises(ConfigurationError, match="takes a job of SendEmail"):
        await require_work(broken, Resize(1))  # type: ignore[arg-type]
