"""Starting and stopping a pool, in every order and out of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import pytest

from goncordia import ConfigurationError, DriverUnavailableError, GoncordiaError, Job, Registry
from goncordia.driver import BaseExecutor
from goncordia.errors import MigrationRequiredError
from goncordia.memory import MemoryDriver
from goncordia.memory.core import MemoryListener

from .kit import Kit, Work

noted: ContextVar[str] = ContextVar("noted", default="nothing")


class Away(MemoryDriver):
    """A driver whose backend is away at first."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit.clock)
        self.away = True
        self.opens = 0
        self.listeners: list[MemoryListener] = []

    def executor(self) -> BaseExecutor:
        inner = super().executor()
        outer = self

        class Proxy:
            def __getattr__(self, name: str) -> Any:
                if name == "session_open":
                    outer.opens += 1
                    if outer.away:
                        raise DriverUnavailableError("away")
                return getattr(inner, name)

        proxy: Any = Proxy()
        executor: BaseExecutor = proxy
        return executor

    def listener(self) -> MemoryListener:
        self.listeners.append(super().listener())
        return self.listeners[-1]


async def test_async_with_starts_and_stops(kit: Kit) -> None:
    async with kit.pool() as pool:
        await kit.client.enqueue(Work(1))
        await kit.clock.advance(1)
        assert kit.done == [1]
        assert pool.running == 0
    await kit.client.enqueue(Work(2))
    await kit.clock.advance(5)
    assert kit.done == [1]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_running_counts_handlers_until_the_end(kit: Kit) -> None:
    kit.gate.clear()
    pool = kit.pool()
    assert pool.running == 0
    await pool.start()
    for n in range(3):
        await kit.client.enqueue(Work(n))
    await kit.clock.advance(1)
    assert pool.running == 3
    stopping = asyncio.create_task(pool.stop())
    await kit.clock.advance(1)
    assert pool.running == 3
    kit.gate.set()
    await kit.finish(stopping)
    assert pool.running == 0


async def test_stopping_what_was_not_started_is_harmless(kit: Kit) -> None:
    pool = kit.pool()
    await pool.stop()
    await pool.stop()


async def test_it_starts_once(kit: Kit) -> None:
    pool = kit.pool()
    starts = await asyncio.gather(pool.start(), pool.start(), return_exceptions=True)
    assert [type(each) for each in starts] == [type(None), ConfigurationError]
    with pytest.raises(ConfigurationError, match="WorkerPool: it is started already"):
        await pool.start()
    assert len(kit.driver.store.session_list()) == 1
    await pool.stop()
    assert kit.driver.store.session_list() == []


async def test_a_registry_without_workers_is_refused(kit: Kit) -> None:
    with pytest.raises(ConfigurationError, match="registry: it has no workers"):
        await kit.pool(registry=Registry()).start()


async def test_a_started_pool_s_registry_takes_no_more_workers(kit: Kit) -> None:
    async with kit.pool():
        with pytest.raises(ConfigurationError, match="before the pool starts"):

            @kit.registry.task(kind="late")
            async def late() -> None: ...


# ---------------------------------------------------------------- a backend that is away


async def test_a_start_waits_for_as_long_as_it_takes(kit: Kit) -> None:
    driver = Away(kit)
    pool = kit.pool(driver=driver)
    starting = asyncio.create_task(pool.start())
    await kit.clock.advance(300)
    assert not starting.done()
    assert 150 < driver.opens < 600  # with pauses, which grow to a limit
    driver.away = False
    await kit.clock.advance(2)
    assert starting.done()
    await pool.stop()


async def test_a_stop_while_it_starts_gives_up_starting(kit: Kit) -> None:
    driver = Away(kit)
    pool = kit.pool(driver=driver)
    starting = asyncio.create_task(pool.start())
    await kit.clock.advance(10)
    await pool.stop()
    with pytest.raises(GoncordiaError, match="stopped before it had started"):
        await starting
    opens = driver.opens
    await kit.clock.advance(60)
    assert driver.opens == opens
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert driver.store.sessions.open == {}


async def test_a_cancelled_start_gives_up_and_leaves_nothing_behind(kit: Kit) -> None:
    driver = Away(kit)
    pool = kit.pool(driver=driver)
    assert not await kit.over(pool.start(), 10)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    # And it may be started again.
    driver.away = False
    await kit.finish(pool.start())
    await pool.stop()
    # All listeners were closed: nobody reads them any more, so they must not collect.
    assert driver.listeners
    for listener in driver.listeners:
        with pytest.raises(StopAsyncIteration):
            await anext(listener.wakes())


async def test_errors_that_waiting_does_not_cure_are_raised(kit: Kit) -> None:
    class Old(MemoryDriver):
        async def verify(self) -> None:
            raise MigrationRequiredError("run goncordia migrate")

    pool = kit.pool(driver=Old(kit.clock))
    with pytest.raises(MigrationRequiredError):
        await pool.start()
    with pytest.raises(MigrationRequiredError):
        await pool.start()  # not "started already"
    assert asyncio.all_tasks() == {asyncio.current_task()}


# ---------------------------------------------------------------- the lifespan


class App:
    def __init__(self) -> None:
        self.log: list[str] = []


def with_lifespan(kit: Kit, app: App) -> Registry[App]:
    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[App]:
        noted.set("by the lifespan")
        app.log.append("enter")
        # A task group must be left in the task that entered it.
        async with asyncio.TaskGroup() as group:
            beside = group.create_task(asyncio.Event().wait())
            try:
                yield app
            finally:
                beside.cancel()
                app.log.append("leave")

    registry: Registry[App] = Registry(lifespan=lifespan)

    @registry.worker(Work)
    async def work(job: Job[Work, App]) -> None:
        job.app.log.append(f"job {job.args.n}, {noted.get()}")

    return registry


async def test_the_app_is_there_from_before_the_first_job_to_after_the_last(kit: Kit) -> None:
    app = App()
    await kit.client.enqueue(Work(1))
    async with kit.pool(registry=with_lifespan(kit, app)):
        await kit.clock.advance(1)
    assert app.log == ["enter", "job 1, by the lifespan", "leave"]


async def test_who_stops_the_pool_need_not_have_started_it(kit: Kit) -> None:
    app = App()
    pool = kit.pool(registry=with_lifespan(kit, app))
    await asyncio.create_task(pool.start())
    await asyncio.create_task(pool.stop())
    assert app.log == ["enter", "leave"]


async def test_a_lifespan_that_fails_fails_the_start(kit: Kit) -> None:
    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        if not kit.done:
            raise LookupError("no database")
        yield

    registry: Registry[None] = Registry(lifespan=lifespan)

    @registry.worker(Work)
    async def work(job: Job[Work, None]) -> None: ...

    with pytest.raises(LookupError, match="no database"):
        await kit.pool(registry=registry).start()
    assert kit.driver.store.session_list() == []


async def test_a_lifespan_that_fails_at_the_end_fails_the_stop(kit: Kit) -> None:
    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        yield
        raise LookupError("cannot close")

    registry: Registry[None] = Registry(lifespan=lifespan)

    @registry.worker(Work)
    async def work(job: Job[Work, None]) -> None: ...

    pool = kit.pool(registry=registry)
    await pool.start()
    with pytest.raises(LookupError, match="cannot close"):
        await pool.stop()
    assert kit.driver.store.session_list() == []
    await pool.stop()


async def test_the_lifespan_is_left_when_the_start_is_given_up(kit: Kit) -> None:
    app = App()
    pool = kit.pool(registry=with_lifespan(kit, app), driver=Away(kit))
    assert not await kit.over(pool.start(), 10)
    assert app.log == ["enter", "leave"]


async def test_the_driver_stays_open(kit: Kit) -> None:
    """The pool did not open it, so it does not close it."""
    async with kit.pool():
        pass
    await kit.client.enqueue(Work(1))
    async with kit.pool():
        await kit.clock.advance(1)
    assert kit.done == [1]


async def test_the_worker_id_is_given_or_made(kit: Kit) -> None:
    assert kit.pool(worker_id="mine").worker_id == "mine"
    made = {kit.pool().worker_id for _ in range(20)}
    assert len(made) == 20
    assert all(len(each) <= 128 for each in made)
