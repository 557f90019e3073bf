"""The table of docs/guarantees.md: what is left when a process is killed at each point."""

from __future__ import annotations

import asyncio
import importlib.util
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from goncordia import JobInfo, SyncClient, WorkerPool
from goncordia_driver_sqlite import SqliteDriver

PROGRAM = Path(__file__).with_name("killed.py")
SECONDS = 30


def load() -> Any:
    """The program as a module, under the name that it has in its own process."""
    spec = importlib.util.spec_from_file_location("killed", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["killed"] = module
    spec.loader.exec_module(module)
    return module


killed = load()


class Shop:
    """The database, from the outside."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.driver = SqliteDriver(path)
        self.driver.migrate_sync()
        self.client = SyncClient(self.driver)
        self.run("CREATE TABLE orders (id INTEGER)", "CREATE TABLE payments (id INTEGER)")

    def run(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.path)) as db, db:
            for statement in statements:
                db.execute(statement)

    def count(self, table: str) -> int:
        with closing(sqlite3.connect(self.path)) as db:
            (found,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(found)

    @property
    def jobs(self) -> list[JobInfo]:
        return list(self.client.list_all())

    def kill_at(self, point: str) -> None:
        """Run the program to this point, and kill it with -9 there."""
        words = [sys.executable, str(PROGRAM), str(self.path), point]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "here\n"
            process.kill()

    def work(self) -> JobInfo:
        """Start a pool again, and let it do all that is left; the only job afterwards."""

        async def main() -> None:
            driver = SqliteDriver(self.path)
            async with (
                asyncio.timeout(SECONDS),
                driver,
                WorkerPool(driver, killed.registry(str(self.path)), **killed.SETTINGS) as pool,
            ):
                await pool.drain(within=SECONDS)

        asyncio.run(main())
        (job,) = self.jobs
        return job


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path / "shop.db")
    yield found
    found.driver.close()


def lost(job: JobInfo) -> bool:
    """Whether the job's first attempt is on record as lost with its worker."""
    error = job.errors[0]
    return error.attempt == 1 and error.type.endswith("WorkerLostError")


def test_before_the_commit_of_the_enqueue_there_is_nothing(shop: Shop) -> None:
    shop.kill_at("enqueue, before the commit")
    assert shop.jobs == []
    assert shop.count("orders") == 0


def test_after_that_commit_the_job_is_worked(shop: Shop) -> None:
    shop.kill_at("enqueue, after the commit")
    assert shop.count("orders") == 1
    job = shop.work()
    assert (job.state, job.attempt, job.errors) == ("completed", 1, ())


def test_after_the_claim_an_attempt_is_used(shop: Shop) -> None:
    shop.client.enqueue(killed.Pay(1))
    shop.kill_at("before the start")
    assert shop.jobs[0].state == "running"
    job = shop.work()
    assert (job.state, job.attempt) == ("completed", 2)
    assert lost(job)


def test_after_the_claim_of_a_last_attempt_none_is_used(shop: Shop) -> None:
    shop.client.enqueue(killed.Pay(1), max_attempts=1)
    shop.kill_at("before the start")
    job = shop.work()
    assert (job.state, job.attempt, job.errors) == ("completed", 1, ())


@pytest.mark.parametrize("point", ["during the handler", "before its result is sent"])
def test_with_the_handler_the_effect_comes_twice(shop: Shop, point: str) -> None:
    shop.client.enqueue(killed.Pay(1))
    shop.kill_at(point)
    assert shop.jobs[0].state == "running"
    job = shop.work()
    assert (job.state, job.attempt) == ("completed", 2)
    assert lost(job)
    assert shop.count("payments") == 2


def test_the_last_attempt_is_discarded_with_the_reason(shop: Shop) -> None:
    shop.client.enqueue(killed.Pay(1), max_attempts=1)
    shop.kill_at("during the handler")
    job = shop.work()
    assert (job.state, job.attempt) == ("discarded", 1)
    assert lost(job)
    assert shop.count("payments") == 1


def test_a_result_that_the_backend_has_is_enough(shop: Shop) -> None:
    shop.client.enqueue(killed.Pay(1))
    shop.kill_at("before the answer")
    assert shop.jobs[0].state == "completed"
    assert shop.jobs[0].attempt == 1
    assert shop.count("payments") == 1


def test_in_complete_tx_before_the_commit_nothing_was_written(shop: Shop) -> None:
    shop.client.enqueue(killed.Pay(1))
    shop.kill_at("complete_tx, before the commit")
    assert shop.count("payments") == 0
    assert shop.jobs[0].state == "running"
    job = shop.work()
    assert (job.state, job.attempt) == ("completed", 2)
    assert shop.count("payments") == 1


def test_in_complete_tx_after_the_commit_all_is_written(shop: Shop) -> None:
    shop.client.enqueue(killed.Pay(1))
    shop.kill_at("complete_tx, after the commit")
    assert shop.jobs[0].state == "completed"
    assert shop.count("payments") == 1
