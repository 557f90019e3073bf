"""A server that becomes read-only under a running pool, as in a failover, and can write later."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from goncordia import Client, DriverUnavailableError
from goncordia.driver import JobState, ListFilter
from goncordia_conformance.servers.schemas import own_database
from goncordia_conformance.workload import Work, pool

PATIENCE = 60.0
JOBS = 8


@pytest.fixture
def database(pg_dsn: str) -> Iterator[str]:
    """A database of its own, since its settings are changed."""
    with own_database(pg_dsn) as dsn:
        yield dsn


@contextmanager
def read_only(sync_db: psycopg.Connection, name: str) -> Iterator[None]:
    """Connections end, and new ones find what a replica would be to them."""

    def turn(switch: str) -> None:
        change = f'ALTER DATABASE "{name}" SET default_transaction_read_only = {switch}'
        sync_db.execute(change.encode())
        ended = """
            SELECT count(pg_terminate_backend(pid, 20000)) FROM pg_stat_activity
            WHERE datname = %s
            """
        sync_db.execute(ended, [name])

    turn("on")
    try:
        yield
    finally:
        turn("off")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "the server is read-only: a replica, or a primary before or after a failover"),
        ("?target_session_attrs=read-write", "could not connect to .*: .*read.only|read.write"),
    ],
    ids=["any server", "a primary"],
)
async def test_a_server_that_becomes_read_only(
    make: Any,
    database: str,
    sync_db: psycopg.Connection,
    caplog: pytest.LogCaptureFixture,
    words: str,
    says: str,
) -> None:
    caplog.set_level("DEBUG", "goncordia")
    runs: list[int] = []
    running, go_on = asyncio.Semaphore(0), asyncio.Event()

    async def handle(job: Any) -> int:
        runs.append(job.args.number)
        running.release()
        await go_on.wait()
        return int(job.args.number)

    async with make(f"{database}{words}") as driver:
        await driver.migrate()
        client = Client(driver, replays=0)
        await client.enqueue_many([Work(number) for number in range(JOBS)])
        async with pool(driver, handle, lease=60.0, concurrency=JOBS) as workers:
            async with asyncio.timeout(PATIENCE):
                for _ in range(JOBS):
                    await running.acquire()
            with read_only(sync_db, database.rpartition("/")[2]):
                with pytest.raises(DriverUnavailableError, match=says) as caught:
                    async with asyncio.timeout(PATIENCE):
                        while True:  # the first may be told of connections that were ended
                            await refused(client)
                assert caught.value.outcome == "not_applied"
                go_on.set()
                async with asyncio.timeout(PATIENCE):
                    tried = "results.* failed 3 times in a row"
                    while not re.search(tried, caplog.text):  # noqa: ASYNC110 - logs wake nobody
                        await asyncio.sleep(0.02)
            await workers.drain()
            page = await driver.executor().list_jobs(ListFilter(), None, 100)
    assert [job.state for job in page.jobs] == [JobState.COMPLETED] * JOBS
    assert sorted(runs) == list(range(JOBS))


async def refused(client: Client[Any]) -> None:
    """An enqueue, of which the error is raised unless it only tells that a connection was ended."""
    try:
        await client.enqueue(Work(JOBS))
    except DriverUnavailableError as error:
        if "terminating connection" not in str(error) and "is lost" not in str(error):
            raise
