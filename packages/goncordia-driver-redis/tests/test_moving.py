"""Primaries that move: a failover by Sentinel, a slot that goes to another node of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from redis.crc import key_slot

from goncordia.driver import NewJob
from goncordia.errors import DriverUnavailableError
from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.redis import RedisBinary, RedisServer
from goncordia_conformance.servers.redis_cluster import RedisCluster
from goncordia_conformance.servers.redis_sentinel import RedisSentinel
from goncordia_driver_redis import RedisDriver

NewJobs = Callable[..., NewJob]


async def insert(driver: RedisDriver, job: NewJob) -> Any:
    """Insert, as the client does: again as long as nobody is there."""
    async with asyncio.timeout(60):
        while True:
            try:
                return (await driver.executor().insert_many([job]))[0]
            except DriverUnavailableError:
                await asyncio.sleep(0.05)


async def test_a_failover(here: RedisBinary, new_job: NewJobs) -> None:
    servers = RedisSentinel.create(here, settle=1000)
    with guarded(servers.run) as url:
        async with RedisDriver(url) as driver:
            await driver.migrate()
            await driver.ready()
            ears = asyncio.ensure_future(anext(aiter(driver.listener().wakes())))
            await asyncio.gather(*[insert(driver, new_job()) for _ in range(5)])
            sync = driver.sync_executor()
            sync.insert_many([new_job()])
            before = servers.primary()
            before.kill()
            job = new_job()
            assert (await insert(driver, job)).status == "INSERTED"
            assert servers.primary().port != before.port
            (row,) = await asyncio.to_thread(sync.get_many, [job.id])
            assert row is not None
            assert (await ears).what in {"gap", "jobs"}


async def test_a_slot_that_goes_elsewhere(
    here: RedisBinary, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goncordia_driver_redis.runner._PAUSES", (0.01, 0.02, None))
    cluster = RedisCluster.create(here)
    with guarded(cluster.run) as url:
        async with RedisDriver(url, prefix="p") as driver:
            await driver.migrate()
            await driver.ready()
            executor, sync = driver.executor(), driver.sync_executor()
            jobs = [new_job() for _ in range(20)]
            await executor.insert_many(jobs)
            sync.insert_many([new_job()])
            slot = key_slot(b"{p}:")
            source = cluster.owner("{p}:", cluster.nodes[0])
            target = next(node for node in cluster.nodes if node is not source)
            names = {node.port: node.ask("CLUSTER", "MYID") for node in cluster.nodes}
            target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source.port])
            source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target.port])
            # Halfway nothing is done, neither here nor there.
            with pytest.raises(DriverUnavailableError, match="moving the slot") as failed:
                await executor.insert_many([new_job()])
            assert failed.value.outcome == "not_applied"
            with pytest.raises(DriverUnavailableError, match="moving the slot"):
                await asyncio.to_thread(sync.insert_many, [new_job()])
            waits = asyncio.ensure_future(insert(driver, new_job()))
            move(source, target, slot)
            for node in (target, source):
                node.ask("CLUSTER", "SETSLOT", slot, "NODE", names[target.port])
            assert (await waits).status == "INSERTED"
            rows = await executor.get_many([job.id for job in jobs])
            assert all(row is not None for row in rows)
            assert (await insert(driver, new_job())).status == "INSERTED"
            assert sync.insert_many([new_job()])[0].status == "INSERTED"


def move(source: RedisServer, target: RedisServer, slot: int) -> None:
    """Move the keys of the slot, as redis-cli does."""
    from redis.connection import Connection

    connect: Any = Connection  # redis-py's is not typed
    connection = connect(port=source.port, protocol=2)
    connection.send_command("CLUSTER", "GETKEYSINSLOT", slot, 100_000)
    for key in connection.read_response():
        connection.send_command("MIGRATE", "127.0.0.1", target.port, key, 0, 5000)
        assert connection.read_response() == b"OK"
    connection.disconnect()
