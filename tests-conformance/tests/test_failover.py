"""A primary that is killed, and its standby that is promoted, under load: all goes on by itself."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import psycopg
import pytest

from goncordia import Job
from goncordia.clock import SystemClock
from goncordia.driver import AnyDriver, JobState, NewJob
from goncordia.errors import DriverError
from goncordia.ids import JobIds
from goncordia_conformance.marks import MISSING
from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.postgres import PG_VERSION, PostgresServer, find_postgres
from goncordia_conformance.servers.process import NotHereError
from goncordia_conformance.servers.replica import PRIMARY, Standby
from goncordia_conformance.workload import Work, pool
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver

FULL = os.environ.get("GONCORDIA_FULL") == "1"

LEASE = 60.0
"""Seconds that no failover takes here: no session is lost."""
PATIENCE = 90.0
TICK = 0.02
BATCH = 20
ENOUGH = 30
"""Batches before, and after."""

pytestmark = [
    pytest.mark.skipif(not FULL, reason="GONCORDIA_FULL is not set: it takes long"),
    pytest.mark.timeout(300),
]


@pytest.fixture
def primary() -> Iterator[PostgresServer]:
    """A server of our own, since it is killed."""
    try:
        binaries = find_postgres(PG_VERSION)
    except NotHereError as error:
        pytest.skip(f"{MISSING}: pg, to kill: {error}")
    made = PostgresServer.create(binaries, PRIMARY)
    with guarded(made.run):
        yield made


@pytest.fixture
def standby(primary: PostgresServer) -> Iterator[Standby]:
    """It has each commit before the primary answers to it."""
    made = Standby.of(primary)
    with guarded(made.run), psycopg.connect(primary.dsn, autocommit=True) as connection:
        waits_for = f"ALTER SYSTEM SET synchronous_standby_names = '{made.name}'"
        connection.execute(waits_for.encode())
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("SET statement_timeout = '60s'")
        in_step = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        while connection.execute(in_step).fetchone() != (1,):
            connection.execute("SELECT pg_sleep(0.02)")
        connection.close()
        yield made


@pytest.mark.parametrize("library", [AsyncpgDriver, PsycopgDriver])
async def test_a_standby_takes_over(
    library: type[Any], primary: PostgresServer, standby: Standby
) -> None:
    dsn = (
        f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
        "?target_session_attrs=read-write"
    )
    runs: Counter[str] = Counter()

    async def handle(job: Job[Work]) -> int:
        runs[str(job.id)] += 1
        await asyncio.sleep(0.002)
        return job.args.number

    async with library(dsn, timeout=10) as driver:
        await driver.migrate()
        async with pool(driver, handle, lease=LEASE):
            acknowledged: list[NewJob] = []
            loading = asyncio.create_task(load(driver, acknowledged))
            try:
                async with asyncio.timeout(PATIENCE):
                    await grows(acknowledged)
                    await asyncio.to_thread(primary.kill)
                    await asyncio.to_thread(standby.promote)
                    await grows(acknowledged)
            finally:
                loading.cancel()
                await asyncio.wait([loading])
            async with asyncio.timeout(PATIENCE):
                await settled(driver)
    await balances(library, standby, acknowledged, runs)


JOB_IDS = JobIds(SystemClock())


async def load(driver: AnyDriver, acknowledged: list[NewJob]) -> None:
    """Enqueue batch after batch, each asked for until it is answered."""
    while True:
        batch = [
            NewJob(id=new, kind=Work.kind, args=b'{"number":7}') for new in JOB_IDS.take(BATCH)
        ]
        await stubbornly(partial(driver.executor().insert_many, batch))
        acknowledged += batch
        await asyncio.sleep(TICK)


async def grows(acknowledged: list[NewJob]) -> None:
    """Wait until there are enough more."""
    enough = len(acknowledged) + ENOUGH * BATCH
    while len(acknowledged) < enough:  # noqa: ASYNC110 - a list wakes nobody
        await asyncio.sleep(TICK)


async def settled(driver: AnyDriver) -> None:
    """Wait until nothing is to be done any more."""
    left = True
    while left:
        stats = await stubbornly(driver.executor().queue_stats)
        left = any(queue.available or queue.running for queue in stats)
        await asyncio.sleep(TICK)


async def stubbornly(step: Any) -> Any:
    """Repeat a request until it is answered."""
    while True:
        try:
            return await step()
        except DriverError:
            await asyncio.sleep(TICK)


async def balances(
    library: type[Any], standby: Standby, jobs: list[NewJob], runs: Counter[str]
) -> None:
    """What was acknowledged is there, is done, and was run once, as no session was lost."""
    async with library(standby.dsn) as driver:
        rows = await driver.executor().get_many([job.id for job in jobs])
    assert [row and row.state for row in rows] == [JobState.COMPLETED] * len(jobs)
    assert {row.output for row in rows} == {b"7"}
    # The last batch may have been on its way when the load ended.
    assert {runs[str(job.id)] for job in jobs} == {1} == set(runs.values())
