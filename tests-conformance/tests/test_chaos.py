"""PostgreSQL under load while the network fails, the server crashes and workers are killed.

Afterwards the ledger must balance: every job that was enqueued is completed, no pool has stopped,
and where no session was lost no job has run twice.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeAlias, TypeVar
from uuid import UUID

import psycopg
import pytest

from goncordia.clock import SystemClock
from goncordia.driver import AnyDriver, JobState, ListFilter, NewJob
from goncordia.errors import DriverError
from goncordia.ids import JobIds
from goncordia_conformance import MakeDriver
from goncordia_conformance.marks import MISSING
from goncordia_conformance.processes import Worker, start_workers
from goncordia_conformance.proxy import ChaosProxy, Direction
from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.postgres import PG_VERSION, PostgresServer, find_postgres
from goncordia_conformance.servers.process import NotHereError
from goncordia_conformance.servers.schemas import own_schema
from goncordia_conformance.workload import Work
from goncordia_driver_pg import AsyncpgDriver
from goncordia_driver_pg.psycopg_driver import PsycopgDriver

FULL = os.environ.get("GONCORDIA_FULL") == "1"
ROUNDS = 20 if FULL else 3
"""How often each trouble comes."""

STEADY = 15.0
"""A lease, in seconds, that outlasts the troubles by which nobody should lose a session."""

SHORT = 2.0
"""A lease that sessions are lost by."""

PATIENCE = 90.0
TICK = 0.05
BATCH = 20

T = TypeVar("T")
Library: TypeAlias = Callable[..., AnyDriver]
Trouble: TypeAlias = Callable[[int], Awaitable[None]]
"""Makes it; told which time it is, from 0."""

LIBRARIES: list[Library] = [AsyncpgDriver, PsycopgDriver]
both = pytest.mark.parametrize("library", LIBRARIES)
one_or_both = pytest.mark.parametrize("library", LIBRARIES if FULL else LIBRARIES[:1])
either = pytest.mark.parametrize("library", LIBRARIES if FULL else LIBRARIES[1:])
only_full = pytest.mark.skipif(not FULL, reason="GONCORDIA_FULL is not set: it takes long")

WAYS: tuple[Direction | None, ...] = ("up", "down", None)

pytestmark = pytest.mark.timeout(600 if FULL else 180)


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server of our own, since it is crashed: no container, and so not always every version."""
    try:
        try:
            binaries = find_postgres(PG_VERSION)
        except NotHereError:
            binaries = find_postgres()
        made = PostgresServer.create(binaries)
    except NotHereError as error:
        message = f"{MISSING}: pg, to crash: {error}"
        required = str(request.config.getoption("--require-backends"))
        if required == "all" or "pg" in required.split(","):
            pytest.fail(message, pytrace=False)
        pytest.skip(message)
    with guarded(made.run):
        yield made


@pytest.fixture
def schema(server: PostgresServer) -> Iterator[str]:
    with own_schema(server.dsn) as name:
        yield name


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[ChaosProxy]:
    with ChaosProxy.of(server.dsn) as proxy:
        yield proxy


class Ledger:
    """The jobs that were enqueued, and what became of them."""

    def __init__(self, driver: AnyDriver) -> None:
        self.driver = driver
        self.jobs: list[UUID] = []
        self._ids = JobIds(SystemClock())

    async def enqueue(self) -> None:
        """A batch more, whatever happens meanwhile: the same request again until it is answered."""
        batch = [
            # Its attempts must outlast the troubles: each may cost one.
            NewJob(id=new, kind=Work.kind, args=b"{}", max_attempts=100)
            for new in self._ids.take(BATCH)
        ]
        await stubbornly(lambda: self.driver.executor().insert_many(batch))
        self.jobs += [job.id for job in batch]

    @asynccontextmanager
    async def load(self) -> AsyncIterator[None]:
        """Enqueue as long as the block lasts."""
        more = True

        async def enqueue() -> None:
            while more:
                await self.enqueue()
                await asyncio.sleep(TICK)

        loading = asyncio.create_task(enqueue())
        try:
            yield
        finally:
            more = False
            await loading

    async def done(self) -> None:
        """Wait until all are completed."""
        left = ListFilter(states=frozenset(set(JobState) - {JobState.COMPLETED}))
        until = asyncio.get_running_loop().time() + PATIENCE
        while await stubbornly(lambda: self.driver.executor().count(left)):
            if asyncio.get_running_loop().time() > until:
                page = await self.driver.executor().list_jobs(left, None, 10)
                sessions = await self.driver.executor().session_list()
                pytest.fail(f"jobs are left: {page.jobs}; the sessions: {sessions}")
            await asyncio.sleep(TICK)

    async def balances(self, workers: list[Worker], *, repeats: bool) -> None:
        """Check each job."""
        runs = Counter(job_id for worker in workers for (job_id,) in worker.words("run"))
        assert set(runs) == {str(job_id) for job_id in self.jobs}, "a job never ran, or is not ours"
        rows = [
            row
            for start in range(0, len(self.jobs), 1000)
            for row in await self.driver.executor().get_many(self.jobs[start : start + 1000])
        ]
        for row in rows:
            assert row is not None, "a job is lost"
            assert row.state == JobState.COMPLETED
            assert runs[str(row.id)] <= row.attempt, "a job ran without a claim"
        if not repeats:
            assert set(runs.values()) == {1}, "no session was lost, and yet a job ran twice"


async def stubbornly(step: Callable[[], Awaitable[T]]) -> T:
    """Repeat a request until it is answered."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await step()
            except DriverError:
                await asyncio.sleep(TICK)


@asynccontextmanager
async def open_ledger(server: PostgresServer, schema: str) -> AsyncIterator[Ledger]:
    """A ledger that sees the server itself."""
    async with AsyncpgDriver(server.dsn, schema=schema, timeout=5) as driver:
        await driver.migrate()
        yield Ledger(driver)


async def endure(
    ledger: Ledger, make_driver: MakeDriver, trouble: Trouble, *, calm: float = 0.3
) -> None:
    """Two pools under load and trouble; each goes on, and each job is run exactly once.

    Args:
        ledger: what is enqueued.
        make_driver: the pools' driver.
        trouble: comes again and again.
        calm: seconds between.
    """
    async with start_workers(make_driver, 2, "pool", lease=STEADY) as workers:
        for worker in workers:
            await worker.until("ready")
        async with ledger.load():
            for number in range(ROUNDS):
                await asyncio.sleep(calm)
                await trouble(number)
        await ledger.done()
        await all_go_on(ledger, workers)
        for worker in workers:
            await worker.stop()
    await ledger.balances(workers, repeats=False)


async def all_go_on(ledger: Ledger, workers: list[Worker]) -> None:
    """Enqueue more until each pool has taken some of it."""
    before = [len(worker.words("run")) for worker in workers]
    async with asyncio.timeout(PATIENCE):
        while any(len(w.words("run")) == n for w, n in zip(workers, before, strict=True)):
            await ledger.enqueue()
            await ledger.done()


# ---------------------------------------------------------------- the network


@both
async def test_cut_connections(
    library: Library, server: PostgresServer, schema: str, proxy: ChaosProxy
) -> None:
    async def cut(number: int) -> None:
        # At once, or after a time in which requests arrive and answers do not.
        if number % 2:
            proxy.freeze("down")
            await asyncio.sleep(0.1)
        proxy.cut()
        proxy.thaw()

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, proxy.before(server.dsn), schema=schema, timeout=5)
        await endure(ledger, make_driver, cut)
    assert proxy.accepted > 4 * ROUNDS


@only_full
@both
async def test_cut_directions(
    library: Library, server: PostgresServer, schema: str, proxy: ChaosProxy
) -> None:
    async def cut(number: int) -> None:
        proxy.cut("up" if number % 2 else "down")

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, proxy.before(server.dsn), schema=schema, timeout=5)
        await endure(ledger, make_driver, cut)


@one_or_both
async def test_frozen_and_slow_connections(
    library: Library, server: PostgresServer, schema: str, proxy: ChaosProxy
) -> None:
    async def freeze(number: int) -> None:
        proxy.freeze(WAYS[number % 3])
        await asyncio.sleep(1.0)
        proxy.thaw()
        proxy.delay(0.05, "down" if number % 2 else "up")

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, proxy.before(server.dsn), schema=schema, timeout=5)
        await endure(ledger, make_driver, freeze)


@only_full
@both
async def test_a_server_that_cannot_be_reached(
    library: Library, server: PostgresServer, schema: str, proxy: ChaosProxy
) -> None:
    async def part(_: int) -> None:
        proxy.refuse()
        proxy.cut()
        await asyncio.sleep(1.0)
        proxy.admit()

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, proxy.before(server.dsn), schema=schema, timeout=5)
        await endure(ledger, make_driver, part)


@one_or_both
async def test_a_pool_that_is_frozen_for_longer_than_its_lease(
    library: Library, server: PostgresServer, schema: str, proxy: ChaosProxy
) -> None:
    frozen_driver = partial(library, proxy.before(server.dsn), schema=schema, timeout=5)
    async with (
        open_ledger(server, schema) as ledger,
        start_workers(frozen_driver, 1, "pool", lease=SHORT) as frozen,
        start_workers(partial(library, server.dsn, schema=schema), 1, "pool", lease=SHORT) as other,
    ):
        workers = [*frozen, *other]
        for worker in workers:
            await worker.until("ready")
        for _ in range(5 if FULL else 1):
            async with ledger.load():
                await frozen[0].until("ran", len(frozen[0].words("ran")) + BATCH)
                proxy.freeze()
                await asyncio.sleep(2 * SHORT)
            # What it held is taken back and finished by the other one, while it is still frozen.
            await ledger.done()
            proxy.thaw()
            await all_go_on(ledger, workers)
        for worker in workers:
            await worker.stop()
        await ledger.balances(workers, repeats=True)


# ---------------------------------------------------------------- the server


@one_or_both
async def test_a_server_that_crashes(library: Library, server: PostgresServer, schema: str) -> None:
    async def crash(_: int) -> None:
        await asyncio.to_thread(server.stop, "immediate")
        await asyncio.to_thread(server.start)

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, server.dsn, schema=schema, timeout=5)
        await endure(ledger, make_driver, crash, calm=1.0)


@only_full
@both
async def test_a_server_that_is_restarted(
    library: Library, server: PostgresServer, schema: str
) -> None:
    async def restart(_: int) -> None:
        await asyncio.to_thread(server.stop, "fast")
        await asyncio.to_thread(server.start)

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, server.dsn, schema=schema, timeout=5)
        await endure(ledger, make_driver, restart, calm=1.0)


@either
async def test_terminated_backends(library: Library, server: PostgresServer, schema: str) -> None:
    query = """
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE usename = 'postgres' AND pid <> pg_backend_pid()
        """

    async def terminate(_: int) -> None:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(query)

    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, server.dsn, schema=schema, timeout=5)
        await endure(ledger, make_driver, terminate)


@only_full  # connecting has its time-out, too: it rests on the machine's speed
@both
async def test_locks_time_outs_and_a_pool_that_is_too_small(
    library: Library, server: PostgresServer, schema: str
) -> None:
    async def lock(_: int) -> None:
        async with await psycopg.AsyncConnection.connect(server.dsn) as connection:
            query = f'LOCK TABLE "{schema}".job IN ACCESS EXCLUSIVE MODE'
            await connection.execute(query.encode())
            await asyncio.sleep(1.5)

    options = "options=-c%20lock_timeout%3D800%20-c%20statement_timeout%3D1000"
    dsn = f"{server.dsn}{'&' if '?' in server.dsn else '?'}{options}"
    async with open_ledger(server, schema) as ledger:
        make_driver = partial(library, dsn, schema=schema, pool_size=1, timeout=1)
        await endure(ledger, make_driver, lock)


# ---------------------------------------------------------------- the workers


@one_or_both
async def test_killed_workers_and_cut_connections(
    library: Library, server: PostgresServer, schema: str, proxy: ChaosProxy
) -> None:
    make_driver = partial(library, proxy.before(server.dsn), schema=schema, timeout=5)
    async with (
        open_ledger(server, schema) as ledger,
        start_workers(make_driver, 1, "pool", lease=SHORT) as steady,
    ):
        workers = list(steady)
        await steady[0].until("ready")  # the kit's workers do not start a second time
        async with ledger.load():
            for _ in range(10 if FULL else 2):
                async with start_workers(make_driver, 1, "pool", lease=SHORT) as (worker,):
                    workers.append(worker)
                    await worker.until("ran", BATCH)
                    proxy.cut()
                    await worker.until("ran", 2 * BATCH)
                    await worker.kill()
        await ledger.done()
        await all_go_on(ledger, steady)
        for worker in steady:
            await worker.stop()
        await ledger.balances(workers, repeats=True)
