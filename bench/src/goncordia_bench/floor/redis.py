"""What bare redis-py does for the same effect: one script call for each step, packed strings.

A job is one string: when it was made, when it is due, its claim, its state, its args. A sorted set
has the waiting ones in order, one the running ones, one the finished ones. An insert makes the same
writes as ours. Nothing is checked but the claim; no kind, unique key or group is known; a job is
worked by decoding its args and calling the handler, without a task.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from hashlib import sha1
from typing import Any, Final
from uuid import uuid4

import msgspec
import redis
import redis.asyncio

from goncordia_bench.harness.peer import Args, Peer, Producer, SyncProducer, run

__all__ = ["FloorPeer"]

_NOW: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
"""
# Pairs of an id and args. An id that is known is left alone, so that a call may be repeated. The
# writes are those of ours: the job, the line, when the line is due, the queue's name, who is to be
# woken, and the index of all ids.
_INSERT: Final = (
    _NOW
    + """
local head = struct.pack('<Bddddc16', 0, now, now, 0, 0, string.rep('\\0', 16))
local waiting, ids = {}, {}
for i = 1, #ARGV, 2 do
    if redis.call('SET', 'floor:j:' .. ARGV[i], head .. ARGV[i + 1], 'NX') then
        waiting[#waiting + 1] = now
        waiting[#waiting + 1] = ARGV[i]
        ids[#ids + 1] = ARGV[i]
    end
end
if #ids == 0 then
    return 0
end
redis.call('ZADD', 'floor:waiting', unpack(waiting))
redis.call('ZADD', 'floor:due', 'LT', 'CH', now, 'floor:waiting')
redis.call('SADD', 'floor:queues', 'default')
if redis.call('SADD', 'floor:told', 'default') == 1 then
    redis.call('PUBLISH', 'floor:wake', 'default')
end
local chunk = redis.call('ZREVRANGEBYLEX', 'floor:index', '[' .. ids[1], '-', 'LIMIT', 0, 1)[1]
if not chunk or redis.call('STRLEN', 'floor:i:' .. chunk) > 8192 then
    chunk = ids[1]
    redis.call('ZADD', 'floor:index', 0, chunk)
end
redis.call('APPEND', 'floor:i:' .. chunk, table.concat(ids))
return #ids
"""
)
# A session, how many to fetch, ids that are finished. Every finish is fenced by the session.
_EXCHANGE: Final = (
    _NOW
    + """
local session, limit = ARGV[1], tonumber(ARGV[2])
for i = 3, #ARGV do
    local id = ARGV[i]
    if redis.call('ZREM', 'floor:running:' .. session, id) == 1 then
        redis.call('SETRANGE', 'floor:j:' .. id, 0, struct.pack('<B', 2))
        redis.call('SETRANGE', 'floor:j:' .. id, 25, struct.pack('<d', now))
        redis.call('ZADD', 'floor:finished', now, id)
    end
end
local ids = redis.call('ZRANGEBYSCORE', 'floor:waiting', '-inf', now, 'LIMIT', 0, limit)
if #ids == 0 then
    return {}
end
redis.call('ZREM', 'floor:waiting', unpack(ids))
if #ids < limit then
    redis.call('SREM', 'floor:told', 'default')
end
local claims, rows = {}, {}
for i, id in ipairs(ids) do
    local job = redis.call('GET', 'floor:j:' .. id)
    job = struct.pack('<B', 1) .. job:sub(2, 17) .. struct.pack('<ddc16', now, 0, session)
        .. job:sub(50)
    redis.call('SET', 'floor:j:' .. id, job)
    claims[2 * i - 1], claims[2 * i] = now, id
    rows[2 * i - 1], rows[2 * i] = id, job
end
redis.call('ZADD', 'floor:running:' .. session, unpack(claims))
return rows
"""
)
_INSERT_SHA: Final = sha1(_INSERT.encode(), usedforsecurity=False).hexdigest()
_EXCHANGE_SHA: Final = sha1(_EXCHANGE.encode(), usedforsecurity=False).hexdigest()
_HEAD: Final = 49
_KEY: Final = "floor:waiting"
_FETCHERS: Final = 2
_PAUSE: Final = 0.002


class _Given(msgspec.Struct):
    to: str
    subject: str
    n: int


_encode = msgspec.json.Encoder().encode


def _ids() -> Iterator[bytes]:
    """Ids that grow with time, as UUIDv7 does."""
    last = time.time_ns() << 64
    while True:
        last += 1
        yield last.to_bytes(16, "big")


def _pairs(ids: Iterator[bytes], jobs: Sequence[Args]) -> list[bytes]:
    words: list[bytes] = []
    for job in jobs:
        words += (next(ids), _encode(_Given(job.to, job.subject, job.n)))
    return words


class _FloorProducer(Producer):
    def __init__(self, client: Any) -> None:
        self._client = client
        self._ids = _ids()

    async def enqueue(self, job: Args) -> None:
        given = _encode(_Given(job.to, job.subject, job.n))
        await self._client.evalsha(_INSERT_SHA, 1, _KEY, next(self._ids), given)

    async def enqueue_many(self, jobs: Sequence[Args]) -> None:
        await self._client.evalsha(_INSERT_SHA, 1, _KEY, *_pairs(self._ids, jobs))


class _FloorSyncProducer(SyncProducer):
    def __init__(self, client: Any) -> None:
        self._client = client
        self._ids = _ids()

    def enqueue(self, job: Args) -> None:
        given = _encode(_Given(job.to, job.subject, job.n))
        self._client.evalsha(_INSERT_SHA, 1, _KEY, next(self._ids), given)

    def enqueue_many(self, jobs: Sequence[Args]) -> None:
        self._client.evalsha(_INSERT_SHA, 1, _KEY, *_pairs(self._ids, jobs))


class FloorPeer(Peer):
    """Two fetchers, each with a connection, finish and claim 100 jobs at a time."""

    ways = ("async", "sync")
    concurrency = 100

    def install(self) -> None:
        """Load the scripts."""
        with redis.Redis.from_url(self.url) as client:
            assert client.script_load(_INSERT) == _INSERT_SHA
            assert client.script_load(_EXCHANGE) == _EXCHANGE_SHA

    @asynccontextmanager
    async def producer(self) -> AsyncIterator[Producer]:
        async with redis.asyncio.Redis.from_url(self.url) as client:
            yield _FloorProducer(client)

    @contextmanager
    def sync_producer(self) -> Iterator[SyncProducer]:
        with redis.Redis.from_url(self.url) as client:
            yield _FloorSyncProducer(client)

    def work(self) -> None:
        async def main() -> None:
            async with redis.asyncio.Redis.from_url(self.url) as client:
                await asyncio.gather(*(self._fetch(client) for _ in range(_FETCHERS)))

        run(main())

    async def _fetch(self, client: Any) -> None:
        decode = msgspec.json.Decoder(_Given).decode
        session = uuid4().bytes
        finished: list[bytes] = []
        while True:
            rows = await client.evalsha(
                _EXCHANGE_SHA, 1, _KEY, session, self.concurrency, *finished
            )
            finished = rows[::2]
            for job in rows[1::2]:
                await self.async_job(decode(memoryview(job)[_HEAD:]).n)
            if not rows:
                await asyncio.sleep(_PAUSE)
