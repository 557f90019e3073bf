"""A process that stops at a point and waits to be killed: ``python killed.py DATABASE POINT``.

It prints "here" when it has come there.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn
from unittest import mock
from uuid import uuid4

from goncordia import Job, Registry, SyncClient, SyncJob, WorkerPool
from goncordia.driver import FetchRequest, FetchResult, Finish, Outcome, QueueFetch
from goncordia_driver_sqlite import SqliteDriver

SETTINGS: dict[str, Any] = {
    "lease": 0.6,
    "heartbeat_interval": 0.15,
    "rescue_interval": 0.1,
    "poll_interval": 0.1,
    "retry_policy": lambda attempt: 0.0,
}


@dataclass
class Pay:
    """One payment: a row in ``payments``, as an effect that can be counted."""

    kind: ClassVar[str] = "pay"
    order: int


def here() -> NoReturn:
    """Tell that the point is reached, and stay there; threads and all."""
    print("here", flush=True)
    while True:
        time.sleep(60)


def pay(path: str, order: int) -> None:
    """The effect, in a transaction of its own."""
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO payments VALUES (?)", (order,))
    db.close()


def registry(path: str, point: str = "") -> Registry:
    """The worker; ``point``: where it stops."""
    workers = Registry()
    if "complete_tx" in point or point == "":

        @workers.worker(Pay)
        def pay_once(job: SyncJob[Pay]) -> None:
            db = sqlite3.connect(path)
            db.execute("INSERT INTO payments VALUES (?)", (job.args.order,))
            job.complete_tx(db)
            if point == "complete_tx, before the commit":
                here()
            db.commit()
            if point == "complete_tx, after the commit":
                here()
            db.close()

    else:

        @workers.worker(Pay)
        async def pay_now(job: Job[Pay]) -> None:
            pay(path, job.args.order)
            if point == "during the handler":
                here()

    return workers


def stop_at_results(driver: SqliteDriver, *, first: bool) -> None:
    """Stop when a result is sent; ``first``: take it to the database first."""
    executor = driver.executor()
    exchange = executor.exchange

    async def exchange_and_stop(
        finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        if finishes:
            if first:
                await exchange(finishes, None)
            here()
        return await exchange(finishes, request)

    mock.patch.object(executor, "exchange", exchange_and_stop).start()


def enqueue(path: str, *, commit: bool) -> None:
    """Enqueue in a transaction and stop, before its commit or after it."""
    client = SyncClient(SqliteDriver(path))
    db = sqlite3.connect(path)
    db.execute("INSERT INTO orders VALUES (1)")
    client.enqueue_tx(db, Pay(1))
    if commit:
        db.commit()
    here()


async def claim(path: str) -> None:
    """Claim as a pool does, and stop before anything is started."""
    session = uuid4()
    driver = SqliteDriver(path)
    await driver.ready()
    executor = driver.executor()
    await executor.session_open(session, "killed", SETTINGS["lease"])
    request = FetchRequest(session, 1, 1, (QueueFetch("default", 1),), "killed")
    claimed = await executor.fetch(request)
    assert len(claimed.jobs) == 1
    here()


async def work(path: str, point: str) -> None:
    """Work until the point is reached."""
    driver = SqliteDriver(path)
    if point == "before its result is sent":
        stop_at_results(driver, first=False)
    if point == "before the answer":
        stop_at_results(driver, first=True)
    async with WorkerPool(driver, registry(path, point), worker_id="killed", **SETTINGS):
        await asyncio.sleep(60)


def main(path: str, point: str) -> None:
    if point.startswith("enqueue"):
        enqueue(path, commit=point == "enqueue, after the commit")
    elif point == "before the start":
        asyncio.run(claim(path))
    else:
        asyncio.run(work(path, point))


if __name__ == "__main__":
    main(*sys.argv[1:])
