"""``run``: until a signal comes, in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from goncordia import ConfigurationError, Job, Registry

from .kit import Kit, Work

SCRIPT = """
import asyncio, contextlib, logging, sys, time
from dataclasses import dataclass
from typing import ClassVar
from goncordia import Client, DriverUnavailableError, Job, Registry, SyncJob, WorkerPool
from goncordia.memory import MemoryDriver

def say(*words):
    print(*words, flush=True)

@dataclass
class Work:
    kind: ClassVar[str] = "work"

@contextlib.asynccontextmanager
async def lifespan():
    say("enter")
    try:
        yield None
    finally:
        say("leave")

registry = Registry(lifespan=lifespan)
driver = MemoryDriver()
"""

ASYNC = """
@registry.worker(Work)
async def work(job: Job[Work]) -> None:
    say("started")
    try:
        await asyncio.sleep({seconds})
    except asyncio.CancelledError:
        say("interrupted")
        raise
    say("finished")

async def main():
    await Client(driver).enqueue(Work())
    await WorkerPool(driver, registry, shutdown_timeout={shutdown}).run()
    (job,) = (await Client(driver).list()).jobs
    say("state", job.state.value, "attempt", job.attempt)

asyncio.run(main())
say("over")
"""

THREAD = """
@registry.worker(Work)
def work(job: SyncJob[Work]) -> None:
    say("started")
    time.sleep(60)

async def main():
    await Client(driver).enqueue(Work())
    await WorkerPool(driver, registry, shutdown_timeout=60).run()

asyncio.run(main())
"""

AWAY = """
class Away(MemoryDriver):
    def executor(self):
        inner = super().executor()
        class Proxy:
            def __getattr__(self, name):
                if name == "session_open":
                    say("started")
                    raise DriverUnavailableError("away")
                return getattr(inner, name)
        return Proxy()

@registry.worker(Work)
async def work(job: Job[Work]) -> None: ...

async def main():
    say("starting")
    await WorkerPool(Away(), registry).run()

asyncio.run(main())
say("over")
"""


class Process:
    """A worker process that says what it does, a line each."""

    def __init__(self, body: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", SCRIPT + textwrap.dedent(body)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.said: list[str] = []

    def until(self, line: str) -> None:
        assert self._process.stdout is not None
        for said in self._process.stdout:
            self.said.append(said.strip())
            if self.said[-1] == line:
                return
        raise AssertionError(f"{line!r} was not said, but {self.said}")

    def signal_until_it_ends(self, number: signal.Signals) -> None:
        """Again and again: in the first moment it is taken for the one before."""
        for _ in range(200):
            self._process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.02)
                return
        raise AssertionError(f"{number.name} does not end it")

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self) -> int:
        said, _ = self._process.communicate(timeout=30)
        self.said += said.splitlines()
        return self._process.returncode

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()


@contextmanager
def running(body: str) -> Iterator[Process]:
    process = Process(body)
    try:
        yield process
    finally:
        process.kill()


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_what_runs_end(number: signal.Signals) -> None:
    with running(ASYNC.format(seconds=0.3, shutdown=30)) as process:
        process.until("started")
        process.signal(number)
        assert process.end() == 0
        assert process.said == [
            "enter",
            "started",
            "finished",
            "leave",
            "state completed attempt 1",
            "over",
        ]


def test_what_does_not_end_in_time_is_interrupted_and_given_back() -> None:
    with running(ASYNC.format(seconds=60, shutdown=0.2)) as process:
        process.until("started")
        process.signal(signal.SIGTERM)
        assert process.end() == 0
        assert process.said[2:] == ["interrupted", "leave", "state available attempt 0", "over"]


def test_a_signal_that_comes_twice_in_a_moment_is_one() -> None:
    """As from ``timeout``, which sends it to the process and to its group."""
    with running(ASYNC.format(seconds=0.5, shutdown=30)) as process:
        process.until("started")
        process.signal(signal.SIGTERM)
        process.signal(signal.SIGTERM)
        assert process.end() == 0
        assert "state completed attempt 1" in process.said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("body", [ASYNC.format(seconds=60, shutdown=60), THREAD])
def test_a_second_signal_ends_the_process_at_once(body: str, number: signal.Signals) -> None:
    log = "logging.basicConfig(level=logging.INFO, stream=sys.stdout, format='%(message)s')\n"
    with running(log + body) as process:
        process.until("started")
        process.signal(number)
        process.until(f"{number.name}: shutting down; a second signal ends the process at once")
        process.signal_until_it_ends(number)
        assert process.end() == -number
        assert "leave" not in process.said


def test_a_signal_while_it_starts_gives_up_starting() -> None:
    with running(AWAY) as process:
        process.until("started")
        process.signal(signal.SIGTERM)
        assert process.end() == 0
        assert process.said[-2:] == ["leave", "over"]


# ---------------------------------------------------------------- in this process


async def test_handlers_are_as_before_afterwards(kit: Kit) -> None:
    def own(number: int, frame: object) -> None: ...

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGTERM, own)
    try:
        running = asyncio.create_task(kit.pool().run())
        await kit.clock.advance(1)
        assert signal.getsignal(signal.SIGTERM) is not own
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(running, 10)
        assert signal.getsignal(signal.SIGTERM) is own
        assert signal.getsignal(signal.SIGINT) is before[signal.SIGINT]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def test_a_cancelled_run_stops_the_pool(kit: Kit) -> None:
    before = signal.getsignal(signal.SIGTERM)
    await kit.client.enqueue(Work(1))
    assert not await kit.over(kit.pool().run(), 5)
    assert kit.done == [1]
    assert kit.driver.store.session_list() == []
    assert signal.getsignal(signal.SIGTERM) is before


async def test_a_pool_that_is_started_is_run(kit: Kit) -> None:
    pool = kit.pool()
    async with pool:
        assert not await kit.over(pool.run(), 5)
        assert kit.driver.store.session_list() == []  # it was stopped on the way out


async def test_a_pool_that_dies_by_its_lifespan_ends_the_run(kit: Kit) -> None:
    """No signal will come to say so."""

    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async def fails() -> None:
            await kit.clock.sleep(5)
            raise LookupError("the feed broke off")

        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            yield

    registry: Registry[None] = Registry(lifespan=lifespan)

    @registry.worker(Work)
    async def work(job: Job[Work, None]) -> None:
        kit.done.append(job.args.n)

    await kit.client.enqueue(Work(1))
    with pytest.raises(ExceptionGroup) as caught:
        await kit.finish(kit.pool(registry=registry).run(), within=60)
    assert [str(each) for each in caught.value.exceptions] == ["the feed broke off"]
    assert kit.done == [1]
    assert kit.driver.store.session_list() == []  # it was left in order


async def test_errors_of_the_start_are_raised(kit: Kit) -> None:
    with pytest.raises(ConfigurationError, match="it has no workers"):
        await kit.pool(registry=Registry()).run()


def test_only_the_main_thread_hears_signals(kit: Kit) -> None:
    raised: list[Exception] = []

    def thread() -> None:
        try:
            asyncio.run(kit.pool().run())
        except ConfigurationError as error:
            raised.append(error)

    worker = threading.Thread(target=thread)
    worker.start()
    worker.join(10)
    (error,) = raised
    assert "signals reach only the main thread" in str(error)
