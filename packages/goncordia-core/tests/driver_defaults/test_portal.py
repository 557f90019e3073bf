"""Synchronous code over an asynchronous driver: the portal thread, and the base class's twins."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from goncordia.driver import (
    BaseDriver,
    BaseExecutor,
    Change,
    JobState,
    ListFilter,
    NewJob,
    QueueState,
)
from goncordia.driver.portal import Portal
from goncordia.errors import UnsupportedError

from .ten import CAPABILITIES, Lab


@pytest.fixture
def portal() -> Portal:
    return Portal()


class TenDriver(BaseDriver):
    """A driver with nothing of its own; it notes what is done with it."""

    name: ClassVar[str] = "ten"

    def __init__(self) -> None:
        super().__init__(CAPABILITIES)
        self.ten = Lab().ten
        self.log: list[str] = []

    async def open(self) -> None:
        self.log.append("open")

    async def aclose(self) -> None:
        self.log.append("aclose")
        await super().aclose()

    async def verify(self) -> None:
        self.log.append("verify")

    async def migrate(self) -> list[str]:
        self.log.append(f"migrate in {threading.current_thread().name}")
        return ["made everything"]

    def executor(self) -> BaseExecutor:
        return self.ten


# -------------------------------------------------------------------- the portal


def test_it_gives_back_what_the_coroutine_returns_or_raises(portal: Portal) -> None:
    async def name() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    async def fail() -> None:
        raise ZeroDivisionError

    assert portal.call(name) == "goncordia-portal"
    with pytest.raises(ZeroDivisionError):
        portal.call(fail)
    assert portal.call(name) == "goncordia-portal"
    portal.stop()


def test_callers_do_not_wait_for_each_other(portal: Portal) -> None:
    arrived: list[int] = []
    all_are_here = asyncio.Event()

    async def meet() -> int:
        arrived.append(1)
        if len(arrived) == 4:
            all_are_here.set()
        await all_are_here.wait()
        return threading.get_ident()

    with ThreadPoolExecutor(4) as threads:
        idents = set(threads.map(lambda _: portal.call(meet), range(4)))
    assert len(idents) == 1, "one thread for all"
    portal.stop()


def test_it_can_be_stopped_and_used_again(portal: Portal) -> None:
    async def ident() -> threading.Thread:
        return threading.current_thread()

    first = portal.call(ident)
    portal.stop()
    assert not first.is_alive()
    portal.stop()
    second = portal.call(ident)
    assert second is not first
    portal.stop()


def test_stopping_cancels_what_is_left_on_the_loop(portal: Portal) -> None:
    ended: list[str] = []
    kept: list[asyncio.Task[None]] = []

    async def background() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("background")

    async def start() -> None:
        kept.append(asyncio.create_task(background()))
        await asyncio.sleep(0)

    portal.call(start)
    portal.stop()
    assert ended == ["background"]
    assert kept[0].cancelled()


@pytest.mark.skipif(sys.platform == "win32", reason="it takes a signal to interrupt the wait")
def test_an_interrupted_call_is_cancelled(portal: Portal) -> None:
    cancelled = threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    async def wait() -> None:
        await asyncio.sleep(0.05)  # the caller waits by now
        signal.pthread_kill(main, signal.SIGUSR1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            portal.call(wait)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert cancelled.wait(10)
    portal.stop()


# -------------------------------------------------------------------- the driver's synchronous side


def test_the_executor_for_synchronous_code() -> None:
    driver = TenDriver()
    executor = driver.sync_executor()
    job = NewJob(id=Lab().ids(), kind="k", args=b"{}")
    assert executor.insert_many([job])[0].status == "INSERTED"
    assert driver.log == ["open", "verify"], "it opened itself"
    (row,) = executor.get_many([job.id])
    assert row is not None
    assert row.state is JobState.AVAILABLE
    assert executor.list_jobs(ListFilter(), None, 9).jobs == [row]
    assert executor.count(ListFilter()) == 1
    executor.queue_pause("default")
    assert executor.queue_list() == [QueueState("default", True)]
    executor.queue_resume("default")
    assert executor.queue_list() == [QueueState("default", False)]
    assert executor.change_many([Change(job.id, "cancel")])[0].status == "CHANGED"
    driver.close()
    assert driver.log == ["open", "verify", "aclose"]


def test_with_opens_and_closes() -> None:
    driver = TenDriver()
    with driver as entered:
        assert entered is driver
        assert driver.migrate_sync() == ["made everything"]
        driver.sync_executor().count(ListFilter())
    driver.close()
    assert driver.log == [
        "open",
        "migrate in goncordia-portal",
        "verify",
        "aclose",
        "aclose",
    ]


async def test_async_with_opens_and_closes() -> None:
    driver = TenDriver()
    async with driver:
        await driver.migrate()
        await asyncio.gather(*(driver.ready() for _ in range(5)))
    assert driver.log.count("verify") == 1
    assert driver.log[-1] == "aclose"


async def test_what_a_plain_driver_does_not_have() -> None:
    driver = TenDriver()
    assert driver.listener() is None
    assert driver.heartbeater() is None
    assert driver.migration_script() == ""
    assert await driver.check() == []
    nothing = object()
    for refused, capability in (
        (lambda: driver.unwrap_tx(nothing), "native_tx"),  # type: ignore[arg-type] # what is refused
        (lambda: driver.unwrap_sync_tx(nothing), "sync_tx"),  # type: ignore[arg-type] # as above
    ):
        with pytest.raises(UnsupportedError) as caught:
            refused()
        assert (caught.value.driver, caught.value.capability) == ("ten", capability)
    with pytest.raises(UnsupportedError):
        TenDriver.from_url("ten://")


async def test_closing_the_driver_ends_the_thread_too() -> None:
    driver = TenDriver()
    await asyncio.to_thread(driver.migrate_sync)
    assert any(thread.name == "goncordia-portal" for thread in threading.enumerate())
    await driver.aclose()
    assert not any(thread.name == "goncordia-portal" for thread in threading.enumerate())
