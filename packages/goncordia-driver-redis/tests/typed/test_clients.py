"""Checked by mypy and pyright, not run.

Each ``# type: ignore[code]`` is an error that both must find.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, assert_type

import redis
import redis.asyncio

from goncordia import Client, JobHandle, SyncClient
from goncordia.driver import NoTransactions
from goncordia_driver_redis import RedisDriver


@dataclass
class Note:
    kind: ClassVar[str] = "note"
    text: str


def what_the_driver_is_made_of(
    asynchronous: redis.asyncio.Redis,
    cluster: redis.asyncio.RedisCluster,
    synchronous: redis.Redis,
    synchronous_cluster: redis.RedisCluster,
    pool: redis.asyncio.ConnectionPool,
) -> None:
    RedisDriver("redis://h", prefix="mine", keep_finished=1000, replicas=1, fsync=True)
    RedisDriver(asynchronous)
    RedisDriver(cluster, sync_client=synchronous_cluster)
    RedisDriver(synchronous)
    RedisDriver(synchronous_cluster)
    RedisDriver(asynchronous, sync_client=synchronous)
    RedisDriver(pool)  # type: ignore[arg-type]
    RedisDriver(asynchronous, sync_client=asynchronous)  # type: ignore[arg-type]
    RedisDriver(b"redis://h")  # type: ignore[arg-type]


async def it_has_no_transactions(
    driver: RedisDriver, client: redis.asyncio.Redis, synchronous: redis.Redis
) -> None:
    jobs = Client(driver)
    assert_type(jobs, Client[NoTransactions])
    assert_type(await jobs.enqueue(Note("a")), JobHandle[Note])
    await jobs.enqueue_tx(client, Note("a"))  # type: ignore[arg-type]
    await jobs.enqueue_tx(client.pipeline(), Note("a"))  # type: ignore[arg-type]
    SyncClient(driver).enqueue_tx(synchronous, Note("a"))  # type: ignore[arg-type]
