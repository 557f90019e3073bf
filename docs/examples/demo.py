"""The main job, to watch: jobs in a transaction, worked, retried, and a worker killed with -9.

    python docs/examples/demo.py

A shop takes orders in one SQLite file, which is the job queue as well. What is printed is also
checked: the exit code is 0 only if everything was so. It takes about ten seconds.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import aiosqlite

from goncordia import FixedRetry, Job, JobHandle, JobInfo, Registry, SyncClient, WorkerPool
from goncordia_driver_sqlite import SqliteDriver

# A real pool keeps its jobs for 30 seconds without contact; here nobody wants to wait so long.
LEASE = 1.5
BEAT = 0.3
PAGES = 4


# --- the jobs and their workers -------------------------------------------------------------------


@dataclass
class SendConfirmation:
    """Confirm an order."""

    kind: ClassVar[str] = "send_confirmation"
    order_id: int
    item: str


@dataclass
class SendReminder:
    """Ask whether all was well, some time later."""

    kind: ClassVar[str] = "send_reminder"
    order_id: int


@dataclass
class PrintCatalogue:
    """A long job, page by page."""

    kind: ClassVar[str] = "print_catalogue"
    pages: int


registry = Registry()


def shop_file() -> str:
    """The database, as the worker process was told it."""
    return sys.argv[2]


@registry.worker(SendConfirmation)
async def send_confirmation(job: Job[SendConfirmation]) -> None:
    if job.args.item == "teapot" and job.attempt == 1:
        print(f"confirmation of the {job.args.item}: the mail server is away")
        raise ConnectionError("the mail server is away")
    async with aiosqlite.connect(shop_file()) as db:
        await db.execute("INSERT INTO mails (order_id) VALUES (?)", (job.args.order_id,))
        await job.complete_tx(db)  # the mail and the end of the job, in one transaction
        await db.commit()
    print(f"confirmation of the {job.args.item}: sent (attempt {job.attempt})")


@registry.worker(SendReminder)
async def send_reminder(job: Job[SendReminder]) -> None:
    print(f"reminder about order {job.args.order_id}: sent")


@registry.worker(PrintCatalogue)
async def print_catalogue(job: Job[PrintCatalogue]) -> int:
    done = job.last_checkpoint or 0
    for page in range(done + 1, job.args.pages + 1):
        print(f"catalogue: page {page} of {job.args.pages} (attempt {job.attempt})")
        await asyncio.sleep(0.3)
        await job.checkpoint(page)
    return job.args.pages - done


async def work(name: str) -> None:
    """What a worker process does: all that is to do, and then it ends."""
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    async with SqliteDriver(shop_file()) as driver:
        pool = WorkerPool(
            driver,
            registry,
            worker_id=name,
            lease=LEASE,
            heartbeat_interval=BEAT,
            rescue_interval=BEAT,
            retry_policy=FixedRetry(0.5),
        )
        async with pool:
            await pool.drain(within=10)


# --- the shop -------------------------------------------------------------------------------------


def say(text: str) -> None:
    print(f"\n{text}", flush=True)


def expect(truth: bool, text: str) -> None:
    """Say what is so, or end the demo if it is not."""
    if not truth:
        raise SystemExit(f"  WRONG: it is not so that {text}")
    print(f"  ok: {text}", flush=True)


def run_worker(shop: Path, name: str, *, kill_at: str | None = None) -> None:
    """Run a worker process to its end; or kill it with -9 when it prints this."""
    print(f"  $ {name} starts", flush=True)
    command = [sys.executable, "-u", __file__, "worker", str(shop), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        alarm = threading.Timer(30, process.kill)
        alarm.start()
        assert process.stdout is not None
        killed = False
        for line in process.stdout:
            print(f"  {name} | {line}", end="", flush=True)
            if kill_at is not None and kill_at in line:
                process.kill()
                killed = True
                print(f"  $ kill -9 {name}", flush=True)
        process.wait()
        alarm.cancel()
    if not killed and process.returncode:
        raise SystemExit(f"  WRONG: {name} ended with exit code {process.returncode}")


def place_orders(db: sqlite3.Connection, client: SyncClient[sqlite3.Connection]) -> list[JobHandle]:
    """Two orders: one is committed, one rolled back."""
    jobs: list[JobHandle] = []
    with db:
        db.execute("INSERT INTO orders (id, item) VALUES (1, 'teapot')")
        jobs.append(client.enqueue_tx(db, SendConfirmation(1, "teapot")))
    try:
        with db:
            db.execute("INSERT INTO orders (id, item) VALUES (2, 'samovar')")
            jobs.append(client.enqueue_tx(db, SendConfirmation(2, "samovar")))
            raise LookupError("out of stock")
    except LookupError as error:
        print(f"  order 2 is rolled back: {error}")
    return jobs


def shop_day(shop: Path, driver: SqliteDriver, db: sqlite3.Connection) -> None:
    client = SyncClient(driver)

    say("1. The job queue moves in with the shop: migrate")
    for line in driver.migrate_sync():
        print(f"  {line}")
    db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)")
    db.execute("CREATE TABLE mails (order_id INTEGER NOT NULL)")

    say("2. An order and its confirmation, in one transaction")
    committed, rolled_back = place_orders(db, client)
    orders = db.execute("SELECT item FROM orders").fetchall()
    expect(orders == [("teapot",)], "order 1 is there, order 2 is not")
    expect(client.get(committed).state == "available", "the job of order 1 is there")
    expect(client.get_many([rolled_back]) == [None], "the job of order 2 never was")
    reminder = client.enqueue(SendReminder(1), delay=2)
    expect(client.get(reminder).state == "scheduled", "a reminder is scheduled, in 2 seconds")

    say("3. A worker: the first attempt fails, the second does it; the reminder has its time")
    run_worker(shop, "worker-1")
    info = client.get(committed)
    expect(info.state == "completed" and info.attempt == 2, "the confirmation took two attempts")
    expect(info.errors[0].type == "ConnectionError", f"why is kept: {info.errors[0].message}")
    late = client.get(reminder)
    expect(
        late.state == "completed" and (late.claimed_at or late.created_at) >= late.run_at,
        "the reminder was not early",
    )

    say("4. A worker is killed with -9 in the middle of a job")
    catalogue = client.enqueue(PrintCatalogue(PAGES))
    more = []
    for order, item in enumerate(("cup", "saucer", "spoon"), 3):
        with db:
            db.execute("INSERT INTO orders (id, item) VALUES (?, ?)", (order, item))
            more.append(client.enqueue_tx(db, SendConfirmation(order, item)))
    run_worker(shop, "worker-2", kill_at=f"page 3 of {PAGES}")
    left = client.get(catalogue)
    expect(left.state == "running", f"the job is held by {left.worker_id}, which is dead")

    say(f"5. The worker is started again, and has the job when the lease of {LEASE} s is over")
    run_worker(shop, "worker-3")
    info = client.get(catalogue)
    expect(info.state == "completed" and info.attempt == 2, "the job was taken back and completed")
    why = info.errors[0]
    expect(why.type.endswith("WorkerLostError"), f"why is kept: {why.message}")
    expect(info.output == 2, "it went on behind its last checkpoint: 2 pages were left")

    say("6. Every job is accounted for")
    jobs = list(client.list_all())
    for job in sorted(jobs, key=lambda job: job.id):
        print(f"  {job.kind:18} {job.state:10} attempts: {job.attempt}")
    accounted(client, db, jobs, [committed, reminder, catalogue, *more])


def accounted(
    client: SyncClient[sqlite3.Connection],
    db: sqlite3.Connection,
    jobs: list[JobInfo],
    enqueued: list[JobHandle],
) -> None:
    expect(
        {job.id for job in jobs} == {handle.id for handle in enqueued},
        f"{len(jobs)} jobs were enqueued, {len(jobs)} are there, none is lost",
    )
    expect(client.count(state="completed") == len(jobs), "all are completed")
    mails = [row[0] for row in db.execute("SELECT order_id FROM mails ORDER BY order_id")]
    expect(mails == [1, 3, 4, 5], "each order that was committed has one mail, no other has any")


def main() -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="goncordia-demo-") as folder:
        shop = Path(folder, "shop.db")
        with (
            SqliteDriver(str(shop)) as driver,
            closing(sqlite3.connect(shop, isolation_level="IMMEDIATE")) as db,
        ):
            shop_day(shop, driver, db)
    say(f"All of it was so. It took {time.monotonic() - started:.0f} seconds.")


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        asyncio.run(work(sys.argv[3]))
    else:
        main()
