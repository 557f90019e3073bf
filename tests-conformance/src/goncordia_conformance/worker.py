"""A worker process of the kit: ``python -m goncordia_conformance.worker``.

It is told on its standard input what to do, writes each step to its output, and stops when its
input ends. It may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import json
import os
import pickle
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from goncordia import CronScheduler, Job, PeriodicJob, QueuePolicy, RateLimit, every
from goncordia.driver import AnyDriver, Finish, NewJob
from goncordia_conformance.faults import Faults, FaultyDriver
from goncordia_conformance.lab import Session, claim_of, outcome_of, still_busy
from goncordia_conformance.workload import Work
from goncordia_conformance.workload import pool as make_pool

__all__ = ["ROLES", "main"]

IDLE = 0.02
"""Seconds between two looks when there was nothing to do."""


def say(word: str, *about: Any) -> None:
    """Write a step, in one piece."""
    os.write(1, json.dumps([word, *about]).encode() + b"\n")


class Stop:
    """Whether the worker was asked to stop: its input has ended.

    Attributes:
        asked: whether it was.
        told: how many bytes it was told before, for roles that wait for a sign.
    """

    def __init__(self) -> None:
        self.asked = False
        self.told = 0
        # A daemon, since nothing ends a thread that reads.
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while signs := os.read(0, 1024):
            self.told += len(signs)
        self.asked = True


async def claim(driver: AnyDriver, stop: Stop, *, batch: int) -> None:
    """Claim and complete until there is nothing left."""
    session = await Session(driver.executor(), "exchange", 60, str(os.getpid())).open()
    say("ready")
    finishes: list[Finish] = []
    while not stop.asked:
        outcomes, result = await driver.executor().exchange(finishes, session.request(batch))
        assert result is not None
        for row in result.jobs:
            say("claimed", str(row.id))
        finishes = still_busy(finishes, outcomes)
        finishes += [Finish(claim_of(row), "complete") for row in result.jobs]
        if not finishes and not result.more:
            break
    await session.close()


async def work(driver: AnyDriver, stop: Stop, *, lease: float, batch: int) -> None:
    """Claim and complete until asked to stop, and beat meanwhile; the crash tests kill it."""
    executor = driver.executor()
    session = await Session(executor, "exchange", lease, str(os.getpid())).open()
    say("session", str(session.id))

    async def beat() -> None:
        stopping = False
        while not stopping:
            stopping = stop.asked  # one beat more, for what is said to be exact
            await asyncio.sleep(lease / 6)
            if not (await session.beat()).held:
                say("lost", str(session.id))
                os._exit(0)

    beating = asyncio.create_task(beat())
    while not stop.asked:
        result = await session.ask(batch)
        for row in result.jobs:
            say("claimed", str(row.id), str(session.id))
            await asyncio.sleep(0.001)
            outcome = await outcome_of(executor, Finish(claim_of(row), "complete"))
            say("finished", str(row.id), outcome.status)
        if not result.jobs:
            await asyncio.sleep(IDLE)
    await beating
    await session.close()


async def pool(driver: AnyDriver, stop: Stop, *, lease: float) -> None:
    """Run a worker pool."""

    async def handle(job: Job[Work]) -> None:
        say("run", str(job.id))
        await asyncio.sleep(0.003)
        say("ran", str(job.id))

    async with make_pool(driver, handle, lease=lease):
        say("ready")
        while not stop.asked:  # noqa: ASYNC110 - it is a thread that hears of it
            await asyncio.sleep(IDLE)


async def limited(driver: AnyDriver, stop: Stop, *, lease: float, limit: int, per: float) -> None:
    """Run a worker pool that shares a rate with others."""

    async def handle(job: Job[Work]) -> None:
        say("run", str(job.id), time.monotonic())

    rate = RateLimit(limit, per=per, scope="global")
    policies = {"default": QueuePolicy(rate=rate)}
    async with make_pool(driver, handle, lease=lease, queue_policies=policies):
        say("ready")
        while not stop.asked:  # noqa: ASYNC110 - it is a thread that hears of it
            await asyncio.sleep(IDLE)


async def slots(driver: AnyDriver, stop: Stop, *, lease: float) -> None:
    """Run a worker pool in which some jobs go on for ever, the first time."""

    async def handle(job: Job[Work]) -> None:
        if job.args.number < 0 and job.attempt == 1:
            say("hangs", str(job.id))
            await asyncio.Event().wait()
        say("run", str(job.id), time.monotonic())
        await asyncio.sleep(0.003)
        say("ran", str(job.id), time.monotonic())

    async with make_pool(driver, handle, lease=lease):
        say("ready")
        while not stop.asked:  # noqa: ASYNC110 - it is a thread that hears of it
            await asyncio.sleep(IDLE)


class _StandingStill(Faults):
    """From the first sign to the second, all stands still where jobs have just been inserted.

    So the process can be frozen while it is in no transaction, whose locks would keep the others
    from going on, and where it hurts most: the cursor does not say yet what it has enqueued.
    """

    def __init__(self, stop: Stop) -> None:
        super().__init__()
        self._stop = stop

    async def around(self, name: str, operation: Callable[[], Awaitable[Any]]) -> Any:
        result = await operation()
        if name == "insert_many" and self._stop.told == 1:
            say("stands")
            while self._stop.told == 1 and not self._stop.asked:
                time.sleep(IDLE)  # noqa: ASYNC251 - nothing else is to go on
        return result


async def schedule(driver: AnyDriver, stop: Stop, *, lease: float, interval: float) -> None:
    """Run a scheduler, and say when it begins and ends to lead; at a sign it stands still."""
    entry = PeriodicJob(every(interval), Work(), id="tick", catch_up="all")
    led: bool | None = None
    standing = FaultyDriver(driver, _StandingStill(stop))
    async with CronScheduler(standing, [entry], lease=lease) as scheduler:
        while not stop.asked:
            if scheduler.leading is not led:
                led = scheduler.leading
                say("leads" if led else "follows")
            await asyncio.sleep(IDLE)


async def insert(driver: AnyDriver, stop: Stop, *, batches: list[list[str]]) -> None:
    """Insert batch after batch."""
    for number, ids in enumerate(batches):
        if stop.asked:
            return
        say("inserting", number)
        jobs = [NewJob(id=UUID(job_id), kind="work", args=b"{}") for job_id in ids]
        await driver.executor().insert_many(jobs)
        say("inserted", number)


async def migrate(driver: AnyDriver, _: Stop) -> None:
    """Migrate."""
    say("migrated", await driver.migrate())


ROLES: dict[str, Callable[..., Awaitable[None]]] = {
    "claim": claim,
    "work": work,
    "pool": pool,
    "limited": limited,
    "slots": slots,
    "schedule": schedule,
    "insert": insert,
    "migrate": migrate,
}


def _import(name: str, file: str) -> None:
    """Make a module known under its name, from its file if there is no other way."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # it is there, and what it needs is not
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)


async def _run(told: dict[str, Any]) -> None:
    driver: AnyDriver = pickle.loads(base64.b64decode(told["make_driver"]))()  # noqa: S301 - ours
    role = told["role"]
    if role != "migrate":
        await driver.ready()
    await ROLES[role](driver, Stop(), **told["options"])
    await driver.aclose()
    say("bye")


def main() -> None:
    """Do as told."""
    told = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = told["path"]
    for name, file in told["modules"].items():
        _import(name, file)
    asyncio.run(_run(told))


if __name__ == "__main__":
    main()
