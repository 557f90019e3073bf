"""Redis under load while the network fails, servers are killed, moved and full, and workers die.

Afterwards the ledger must balance: see ``goncordia_conformance.ledger``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from goncordia import Job
from goncordia.driver import Change, JobState, ListFilter, NewJob
from goncordia.errors import DriverBusyError
from goncordia_conformance import MakeDriver
from goncordia_conformance.backends import needed
from goncordia_conformance.ledger import (
    SHORT,
    Ledger,
    all_go_on,
    outlive_a_freeze,
    outlive_workers,
)
from goncordia_conformance.ledger import endure as endure_rounds
from goncordia_conformance.processes import start_workers
from goncordia_conformance.proxy import ChaosProxy, Direction
from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.redis import SAFE, TESTS, RedisBinary, RedisServer, find_here
from goncordia_conformance.servers.redis_cluster import RedisCluster
from goncordia_conformance.servers.redis_sentinel import RedisSentinel
from goncordia_conformance.workload import Work, pool
from goncordia_driver_redis import RedisDriver

FULL = os.environ.get("GONCORDIA_FULL") == "1"
ROUNDS = 20 if FULL else 3
"""How often each trouble comes."""
FEW = 5 if FULL else 1
"""How often a trouble comes that takes long."""

PREFIX = "chaos"
OURS = f"{{{PREFIX}}}:"
"""A key in the slot of our keys."""

only_full = pytest.mark.skipif(not FULL, reason="GONCORDIA_FULL is not set: it takes long")

WAYS: tuple[Direction | None, ...] = ("up", "down", None)

pytestmark = pytest.mark.timeout(600 if FULL else 180)

endure = partial(endure_rounds, rounds=ROUNDS)


@pytest.fixture(scope="module")
def binary(request: pytest.FixtureRequest) -> RedisBinary:
    """For servers of our own, since they are killed: no container, so not always every version."""
    return needed("redis", request.config, find_here)


@pytest.fixture
def server(binary: RedisBinary) -> Iterator[RedisServer]:
    """One that has on the disk all that it has answered to."""
    made = RedisServer.create(binary, SAFE)
    with guarded(made.run):
        yield made


@pytest.fixture
def proxy(server: RedisServer) -> Iterator[ChaosProxy]:
    with ChaosProxy.of(server.url) as proxy:
        yield proxy


def at(url: str) -> MakeDriver:
    return partial(RedisDriver, url, prefix=PREFIX)


@asynccontextmanager
async def open_ledger(url: str, **options: Any) -> AsyncIterator[Ledger]:
    """A ledger that sees the server itself."""
    async with RedisDriver(url, prefix=PREFIX, **options) as driver:
        await driver.migrate()
        yield Ledger(driver)


# ---------------------------------------------------------------- the network


async def test_cut_connections(server: RedisServer, proxy: ChaosProxy) -> None:
    async def cut(number: int) -> None:
        # At once, or after a time in which requests arrive and answers do not.
        if number % 2:
            proxy.freeze("down")
            await asyncio.sleep(0.1)
        proxy.cut()
        proxy.thaw()

    async with open_ledger(server.url) as ledger:
        await endure(ledger, at(proxy.before(server.url)), cut)
    assert proxy.accepted > 4 * ROUNDS


@only_full
async def test_cut_directions(server: RedisServer, proxy: ChaosProxy) -> None:
    async def cut(number: int) -> None:
        proxy.cut("up" if number % 2 else "down")

    async with open_ledger(server.url) as ledger:
        await endure(ledger, at(proxy.before(server.url)), cut)


@only_full
async def test_frozen_and_slow_connections(server: RedisServer, proxy: ChaosProxy) -> None:
    async def freeze(number: int) -> None:
        proxy.freeze(WAYS[number % 3])
        await asyncio.sleep(1.0)
        proxy.thaw()
        proxy.delay(0.05, "down" if number % 2 else "up")

    async with open_ledger(server.url) as ledger:
        await endure(ledger, at(proxy.before(server.url)), freeze)


@only_full
async def test_a_server_that_cannot_be_reached(server: RedisServer, proxy: ChaosProxy) -> None:
    async def part(_: int) -> None:
        proxy.refuse()
        proxy.cut()
        await asyncio.sleep(1.0)
        proxy.admit()

    async with open_ledger(server.url) as ledger:
        await endure(ledger, at(proxy.before(server.url)), part)


async def test_a_pool_that_is_frozen_for_longer_than_its_lease(
    server: RedisServer, proxy: ChaosProxy
) -> None:
    async with open_ledger(server.url) as ledger:
        frozen_driver = at(proxy.before(server.url))
        await outlive_a_freeze(ledger, frozen_driver, at(server.url), proxy, rounds=FEW)


# ---------------------------------------------------------------- the server


async def test_a_server_that_is_killed(server: RedisServer) -> None:
    async def kill(_: int) -> None:
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)

    async with open_ledger(server.url) as ledger:
        await endure(ledger, at(server.url), kill, calm=1.0)


@only_full
async def test_a_server_that_is_restarted(server: RedisServer) -> None:
    async def restart(_: int) -> None:
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)

    async with open_ledger(server.url) as ledger:
        await endure(ledger, at(server.url), restart, calm=1.0)


@only_full
async def test_a_server_that_stands_still(server: RedisServer) -> None:
    async def stand_still(_: int) -> None:
        server.freeze()
        await asyncio.sleep(2.0)
        server.thaw()

    async with open_ledger(server.url) as ledger:
        await endure(ledger, at(server.url), stand_still)


async def test_forgotten_scripts_and_closed_connections(server: RedisServer) -> None:
    async def trouble(number: int) -> None:
        server.ask("SCRIPT", "FLUSH")
        server.ask("CLIENT", "KILL", "TYPE", "pubsub" if number % 2 else "normal", "SKIPME", "yes")

    async with open_ledger(server.url) as ledger:
        await endure(ledger, at(server.url), trouble)


async def test_a_server_that_forgets_everything(binary: RedisBinary) -> None:
    """Without persistence all jobs are lost with it; but those that are enqueued then are run."""
    server = RedisServer.create(binary, TESTS)
    with guarded(server.run):
        make_driver = at(server.url)
        async with (
            open_ledger(server.url) as ledger,
            start_workers(make_driver, 2, "pool", lease=SHORT) as workers,
        ):
            for worker in workers:
                await worker.until("ready")
            await all_go_on(ledger, workers)
            server.kill()
            server.start()
            await all_go_on(ledger, workers)
            for worker in workers:
                await worker.stop()


async def test_a_server_whose_memory_is_full(binary: RedisBinary) -> None:
    server = RedisServer.create(binary, TESTS)
    payload = b'"%s"' % (b"x" * 50_000)

    async def handle(_: Job[Work]) -> None:
        """Nothing to do."""

    with guarded(server.run):
        async with open_ledger(server.url) as ledger:
            executor = ledger.driver.executor()
            await ledger.enqueue()
            enough = int(server.info("memory")["used_memory"]) + 20_000_000
            server.ask("CONFIG", "SET", "maxmemory", enough)
            big = [
                NewJob(id=new, kind="big", args=payload, queue="big")
                for new in ledger.ids.take(2000)
            ]
            with pytest.raises(DriverBusyError, match="memory") as refused:
                for job in big:
                    await executor.insert_many([job])
            assert refused.value.outcome == "not_applied"
            count = await executor.count(ListFilter(kinds=frozenset({"big"})))
            assert 100 < count < 2000
            # All that is not new goes on, however full it is, and makes room again.
            server.ask("CONFIG", "SET", "maxmemory", 1)
            async with pool(ledger.driver, handle) as working:
                await working.drain()
            rows = await executor.get_many(ledger.jobs)
            assert {row and row.state for row in rows} == {JobState.COMPLETED}
            await executor.change_many([Change(job.id, "delete") for job in big[:count]])
            with pytest.raises(DriverBusyError):
                await executor.insert_many(big[:1])
            server.ask("CONFIG", "SET", "maxmemory", enough)
            await ledger.enqueue()


# ---------------------------------------------------------------- replicas and nodes


async def test_a_replica_takes_over(binary: RedisBinary) -> None:
    """With ``replicas=1`` an enqueue that was answered outlives the primary.

    What else it was asked to do is on its way to the replica when it dies: a claim or a result of
    the last moment may be forgotten, and the job be run again.
    """
    watched = RedisSentinel.create(binary, sentinels=3, settle=3000)

    async def fail_over(_: int) -> None:
        await asyncio.to_thread(watched.fail_over)

    with guarded(watched.run) as url:
        async with open_ledger(url, replicas=1) as ledger:
            await endure(ledger, at(url), fail_over, rounds=FEW, calm=1.0, lease=60, forgets=True)


@only_full
async def test_a_primary_that_does_not_know_that_it_is_none(binary: RedisBinary) -> None:
    """For a while two take themselves for the primary; what the old one did is forgotten."""
    watched = RedisSentinel.create(binary, sentinels=3, settle=3000)

    async def fail_over(_: int) -> None:
        await asyncio.to_thread(watched.fail_over, frozen=True)

    with guarded(watched.run) as url:
        async with open_ledger(url, replicas=1) as ledger:
            await endure(ledger, at(url), fail_over, rounds=2, calm=1.0, lease=30, forgets=True)


async def test_a_slot_that_moves(binary: RedisBinary) -> None:
    cluster = RedisCluster.create(binary)

    async def move(_: int) -> None:
        owner = cluster.owner(OURS, cluster.nodes[0])
        to = next(node for node in cluster.nodes if node != owner)
        await asyncio.to_thread(cluster.move, OURS, to)

    with guarded(cluster.run) as url:
        async with open_ledger(url) as ledger:
            await endure(ledger, at(url), move)


@only_full
async def test_a_node_that_fails(binary: RedisBinary) -> None:
    cluster = RedisCluster.create(binary, replicas=1, node_timeout=2000)

    async def fail(_: int) -> None:
        await asyncio.to_thread(cluster.fail_over, OURS)

    with guarded(cluster.run) as url:
        async with open_ledger(url, replicas=1) as ledger:
            await endure(ledger, at(url), fail, rounds=FEW, calm=1.0, lease=60, forgets=True)


# ---------------------------------------------------------------- the workers


async def test_killed_workers_and_cut_connections(server: RedisServer, proxy: ChaosProxy) -> None:
    async with open_ledger(server.url) as ledger:
        make_driver = at(proxy.before(server.url))
        await outlive_workers(ledger, make_driver, proxy, rounds=10 if FULL else 2)
