"""A server whose disk is full: nothing is half there, and workers wait until there is room."""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from goncordia import Client, Job
from goncordia.driver import JobState, ListFilter
from goncordia.errors import DriverBusyError
from goncordia_conformance.marks import MISSING
from goncordia_conformance.servers.full_disk import FullDiskServer
from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.postgres import PG_VERSION, find_postgres
from goncordia_conformance.servers.process import NotHereError
from goncordia_conformance.workload import Work, pool
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver

LEASE = 60.0
PATIENCE = 60.0
JOBS = 8
LARGE = 40_000
"""Characters that no compression makes fit into what room a page has left."""

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def server() -> Iterator[FullDiskServer]:
    try:
        made = FullDiskServer.create(find_postgres(PG_VERSION))
        with guarded(made.run):
            yield made
    except NotHereError as error:
        pytest.skip(f"{MISSING}: pg, with a small disk: {error}")


def noise() -> str:
    """Text that cannot be compressed."""
    return random.Random(5).randbytes(LARGE // 2).hex()


async def seen(caplog: pytest.LogCaptureFixture, text: str) -> None:
    """Wait until such a line is logged."""
    async with asyncio.timeout(PATIENCE):
        while re.search(text, caplog.text) is None:  # noqa: ASYNC110 - logs wake nobody
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("library", [AsyncpgDriver, PsycopgDriver])
async def test_a_full_disk(
    library: type[Any], server: FullDiskServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "goncordia")
    schema = f"test {os.urandom(4).hex()}"
    runs: Counter[int] = Counter()
    running, full = asyncio.Semaphore(0), asyncio.Event()

    async def handle(job: Job[Work]) -> str:
        runs[job.args.number] += 1
        running.release()
        await full.wait()
        return noise()

    async with library(server.dsn, schema=schema) as driver:
        await driver.migrate()
        client = Client(driver)
        await client.enqueue_many([Work(number) for number in range(JOBS)])
        async with pool(driver, handle, lease=LEASE, concurrency=JOBS) as workers:
            async with asyncio.timeout(PATIENCE):
                for _ in range(JOBS):
                    await running.acquire()
            server.fill()
            try:
                with pytest.raises(DriverBusyError, match="No space left on device") as caught:
                    await client.enqueue_many(
                        [Work(100 + n) for n in range(1000)], meta={"x": noise()[:8000]}
                    )
                assert caught.value.outcome == "not_applied"
                full.set()
                await seen(caplog, r"results.* failed 3 times in a row.*No space left on device")
            finally:
                server.free()
            # By themselves; and none of those that were refused is there.
            await workers.drain()
            page = await driver.executor().list_jobs(ListFilter(), None, 100)
            assert [job.state for job in page.jobs] == [JobState.COMPLETED] * JOBS
            assert {job.output for job in page.jobs} == {f'"{noise()}"'.encode()}
            await client.enqueue(Work(JOBS))
            await workers.drain()
    assert runs == Counter(range(JOBS + 1))
