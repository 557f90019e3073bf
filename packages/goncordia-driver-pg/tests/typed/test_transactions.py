"""Checked by mypy and pyright, not run.

Each ``# type: ignore[code]`` is an error that both must find.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any, ClassVar, assert_type

import asyncpg
import psycopg
import psycopg_pool
from asyncpg.pool import PoolConnectionProxy

from goncordia import Client, JobHandle, SyncClient
from goncordia_driver_pg import AsyncpgDriver, AsyncpgTx, PsycopgDriver


@dataclass
class Note:
    kind: ClassVar[str] = "note"
    text: str


async def asyncpg_takes_its_connections(
    pool: asyncpg.Pool,
    plain: asyncpg.Connection,
    pooled: PoolConnectionProxy,
    other: psycopg.AsyncConnection[Any],
    file: sqlite3.Connection,
) -> None:
    driver = AsyncpgDriver(pool)
    client = Client(driver)
    assert_type(client, Client[AsyncpgTx])
    assert_type(await client.enqueue_tx(plain, Note("a")), JobHandle[Note])
    await client.enqueue_tx(pooled, Note("a"))
    async with pool.acquire() as connection, connection.transaction():
        await client.enqueue_tx(connection, Note("a"))
    await client.enqueue_tx(other, Note("a"))  # type: ignore[arg-type]
    await client.enqueue_tx(file, Note("a"))  # type: ignore[arg-type]
    await client.enqueue_tx(pool, Note("a"))  # type: ignore[arg-type]
    await client.enqueue_tx(plain.transaction(), Note("a"))  # type: ignore[arg-type]


def asyncpg_has_no_synchronous_transactions(
    driver: AsyncpgDriver, plain: asyncpg.Connection, sync: psycopg.Connection[Any]
) -> None:
    client = SyncClient(driver)
    client.enqueue(Note("a"))
    client.enqueue_tx(plain, Note("a"))  # type: ignore[arg-type]
    client.enqueue_tx(sync, Note("a"))  # type: ignore[arg-type]


async def psycopg_takes_its_connections(
    pool: psycopg_pool.AsyncConnectionPool[psycopg.AsyncConnection[Any]],
    plain: asyncpg.Connection,
    mine: psycopg.AsyncConnection[tuple[int, str]],
    sync: psycopg.Connection[dict[str, Any]],
) -> None:
    driver = PsycopgDriver(pool)
    client = Client(driver)
    await client.enqueue_tx(mine, Note("a"))
    async with pool.connection() as connection:
        await client.enqueue_tx(connection, Note("a"))
    await client.enqueue_tx(sync, Note("a"))  # type: ignore[arg-type]
    await client.enqueue_tx(plain, Note("a"))  # type: ignore[arg-type]
    blocking = SyncClient(driver)
    blocking.enqueue_tx(sync, Note("a"))
    blocking.enqueue_tx(mine, Note("a"))  # type: ignore[arg-type]


def what_the_drivers_are_made_of(
    pool: asyncpg.Pool,
    asynchronous: psycopg_pool.AsyncConnectionPool[psycopg.AsyncConnection[Any]],
    synchronous: psycopg_pool.ConnectionPool[psycopg.Connection[Any]],
    connection: asyncpg.Connection,
) -> None:
    AsyncpgDriver("postgresql://h/d", schema="my jobs", side="postgresql://s/d")
    AsyncpgDriver(pool)
    AsyncpgDriver(asynchronous)  # type: ignore[arg-type]
    AsyncpgDriver(connection)  # type: ignore[arg-type]
    PsycopgDriver("postgresql://h/d")
    PsycopgDriver(asynchronous)
    PsycopgDriver(synchronous)
    PsycopgDriver(pool)  # type: ignore[arg-type]
