"""What bare asyncpg does for the same durable effect, with the fewest statements.

The table is the driver's own, made by its migration: the same columns, the same indexes. An insert
names only the columns that have to be given. Nothing is checked, nobody is woken, no unique key or
group is known; a job is worked by decoding its args and awaiting the handler, without a task.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

import asyncpg
import msgspec

from goncordia_bench.harness.system import Finish, Handler, Producer, System, nothing_more
from goncordia_bench.ours.postgres import migrated
from goncordia_bench.payload import QUEUE, Email
from goncordia_sql.states import Hold, Stored

__all__ = ["FloorSystem"]

_COLUMNS: Final = """
    id, state, nice, unique_hold, run_at, created_at, payload_version, group_limit, queue, kind,
    content, args
    """
_REST: Final = f"""
    {Stored.READY}, 0, {Hold.ACTIVE}, now(), now(), 1, 0, '{QUEUE}', '{Email.kind}', 'json'
    """
_INSERT: Final = f"INSERT INTO goncordia.job ({_COLUMNS}) VALUES ($1, {_REST}, $2)"
_INSERT_MANY: Final = f"""
    INSERT INTO goncordia.job ({_COLUMNS})
    SELECT t.id, {_REST}, t.args FROM unnest($1::uuid[], $2::text[]) AS t (id, args)
    """
# Completes what the fetch before it claimed, and claims the next, in one statement and commit.
_EXCHANGE: Final = f"""
    WITH finished AS (
        UPDATE goncordia.job AS j SET state = {Stored.COMPLETED}, finished_at = now()
        FROM unnest($3::uuid[]) AS f (id)
        WHERE j.id = f.id AND j.state = {Stored.RUNNING} AND j.session = $1 AND j.fetch_no = $2 - 1
    ), found AS MATERIALIZED (
        SELECT id FROM goncordia.job
        WHERE state = {Stored.READY} AND queue = '{QUEUE}' AND run_at <= now() {{low_water}}
        ORDER BY nice, run_at, id LIMIT $4 FOR UPDATE SKIP LOCKED
    )
    UPDATE goncordia.job AS j SET state = {Stored.RUNNING}, attempt = attempt + 1, session = $1,
        fetch_no = $2, claimed_at = now()
    FROM found WHERE j.id = found.id
    RETURNING j.id, j.args, j.run_at
    """
_FROM_THE_START: Final = _EXCHANGE.format(low_water="")
# Where the claim before began, less a slack: not over all the dead entries that lie before it.
_FROM_LOW_WATER: Final = _EXCHANGE.format(low_water="AND nice = 0 AND run_at >= $5")
_SLACK: Final = timedelta(seconds=0.5)
_LOOK_EVERYWHERE: Final = 50
_FETCHERS: Final = 2
_BATCH: Final = 100
_PAUSE: Final = 0.002

_encode = msgspec.json.Encoder().encode


def _ids() -> Iterator[UUID]:
    """Ids that grow with time, as UUIDv7 does."""
    last = time.time_ns() << 64
    while True:
        last += 1
        yield UUID(int=last)


class _FloorProducer(Producer):
    def __init__(self, connections: Sequence[asyncpg.Connection]) -> None:
        self._first = connections[0]
        self._free = list(connections)
        self._ids = _ids()

    async def enqueue(self, args: Email) -> None:
        connection = self._free.pop()
        await connection.execute(_INSERT, next(self._ids), _encode(args).decode())
        self._free.append(connection)

    async def enqueue_tx(self, args: Email) -> None:
        async with self._first.transaction():
            await self._first.execute("INSERT INTO orders (n) VALUES ($1)", args.n)
            await self._first.execute(_INSERT, next(self._ids), _encode(args).decode())

    async def enqueue_many(self, jobs: Sequence[Email]) -> None:
        ids = [next(self._ids) for _ in jobs]
        await self._first.execute(_INSERT_MANY, ids, [_encode(args).decode() for args in jobs])


class FloorSystem(System):
    """Two fetchers, each with a connection, claim and complete 100 jobs at a time."""

    name = "floor"
    concurrency = _BATCH

    async def install(self) -> None:
        """Make the driver's tables."""
        await migrated(self.dsn)

    @asynccontextmanager
    async def producer(self, connections: int = 1) -> AsyncIterator[Producer]:
        """Over connections that are kept, so that no pool resets them."""
        held = [await asyncpg.connect(self.dsn) for _ in range(connections)]
        try:
            yield _FloorProducer(held)
        finally:
            for connection in held:
                await connection.close()

    @asynccontextmanager
    async def worker(
        self, handler: Handler, concurrency: int | None = None
    ) -> AsyncIterator[Finish]:
        """Fetchers; the last results are committed by the exchange that finds nothing."""
        batch = concurrency or self.concurrency
        fetchers = [asyncio.create_task(self._fetch(handler, batch)) for _ in range(_FETCHERS)]
        try:
            yield nothing_more
        finally:
            for fetcher in fetchers:
                fetcher.cancel()
            for ended in await asyncio.gather(*fetchers, return_exceptions=True):
                if not isinstance(ended, asyncio.CancelledError):
                    raise AssertionError("a fetcher broke") from ended

    async def _fetch(self, handler: Handler, batch: int) -> None:
        decode = msgspec.json.Decoder(Email).decode
        session, low, number = uuid4(), None, 0
        claimed: list[UUID] = []
        connection = await asyncpg.connect(self.dsn)
        try:
            everywhere = await connection.prepare(_FROM_THE_START)
            onwards = await connection.prepare(_FROM_LOW_WATER)
            while True:
                number += 1
                if low is None or number % _LOOK_EVERYWHERE == 0:
                    rows = await everywhere.fetch(session, number, claimed, batch)
                else:
                    rows = await onwards.fetch(session, number, claimed, batch, low)
                claimed = [row[0] for row in rows]
                for row in rows:
                    await handler(decode(row[1]).n)
                if rows:
                    low = min(row[2] for row in rows) - _SLACK
                else:
                    low = None
                    await asyncio.sleep(_PAUSE)
        finally:
            await connection.close()
