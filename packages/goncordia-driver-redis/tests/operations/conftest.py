"""The operations on a bare redis-py connection, and an audit of all that is stored."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, TypeVar
from uuid import UUID

import pytest
import redis

from goncordia.driver import FetchRequest, FetchResult, JobRow, JobState, NewJob, QueueFetch
from goncordia.gontest import MockClock
from goncordia.ids import JobIds
from goncordia_conformance.servers.redis import RedisServer
from goncordia_driver_redis.keys import Keys
from goncordia_driver_redis.operations import Op, Operations
from goncordia_driver_redis.wire.layout import NUMBERS

T = TypeVar("T")
SESSION = UUID(int=7)
_WORKED_OUT = set(b"l w h hq gl gq hg gr f r c cr d dh dk u".split())


@pytest.fixture(scope="session")
def own_url(a_server: Callable[..., AbstractContextManager[RedisServer]]) -> Iterator[str]:
    """A server of these tests alone: what it counts is ours."""
    with a_server() as server:
        yield server.url


class Bare:
    """The least that can run operations, under a clock that is moved by hand."""

    def __init__(self, url: str, **options: Any) -> None:
        self.client = redis.Redis.from_url(url)
        self.client.flushall()
        self.keys = Keys()
        self.clock = MockClock()
        self.new_id = JobIds(self.clock)
        self.calls = 0
        self.fetch_no = 0
        self.ops = Operations(self.keys, self.clock, **options)

    def __call__(self, operation: Op[T]) -> T:
        try:
            call = next(operation)
            while True:
                script = call.script
                self.calls += 1
                if not self.client.script_exists(script.sha)[0]:
                    self.client.script_load(script.text.decode())
                answer = self.client.evalsha(script.sha, 1, call.key, *call.arguments)
                call = operation.send(call.parse(answer))
        except StopIteration as done:
            result: T = done.value
            return result

    def advance(self, seconds: float) -> None:
        self.clock.set(self.clock.now() + timedelta(seconds=seconds))

    def key(self, name: bytes) -> bytes:
        return self.keys.tag + name

    @staticmethod
    def named(key: bytes) -> str:
        """A key as errors name it."""
        return re.sub(rb"[^ -~]", lambda found: b"\\x%02x" % found[0][0], key).decode()

    def job(self, **fields: Any) -> NewJob:
        return NewJob(**{"id": self.new_id(), "kind": "work", "args": b"{}", **fields})

    def add(self, **fields: Any) -> UUID:
        (result,) = self(self.ops.insert_many([self.job(**fields)]))
        assert result.status == "INSERTED"
        return result.id

    def open(self, session: UUID = SESSION, lease: float = 60) -> UUID:
        self(self.ops.session_open(session, "w", lease))
        return session

    def request(
        self, session: UUID, limit: int, queues: Sequence[QueueFetch], worker: str = "w"
    ) -> FetchRequest:
        self.fetch_no += 1
        return FetchRequest(session, self.fetch_no, limit, tuple(queues), worker_id=worker)

    def ask(
        self, limit: int, *queues: QueueFetch, session: UUID = SESSION, worker: str = "w"
    ) -> FetchResult:
        asked = queues or (QueueFetch("default", limit),)
        return self(self.ops.fetch(self.request(session, limit, asked, worker)))

    def claim(self, limit: int = 1, **options: Any) -> list[JobRow]:
        return self.ask(limit, **options).jobs

    def row(self, job_id: UUID) -> JobRow:
        (row,) = self(self.ops.get_many([job_id]))
        assert row is not None
        return row

    def dump(self) -> dict[bytes, Any]:
        """All keys with what they hold."""
        every: Any = self.client.keys(b"*")
        return {key: self._held(key) for key in every}

    def packed(self) -> dict[bytes, bytes]:
        """All keys, as the server packs them."""
        keys: Any = self.client.keys(b"*")
        pipeline = self.client.pipeline()
        for key in sorted(keys):
            pipeline.dump(key)
        return dict(zip(sorted(keys), pipeline.execute(), strict=True))

    def bring_back(self, packed: Mapping[bytes, bytes]) -> None:
        """Makes these all that there is."""
        pipeline = self.client.pipeline()
        pipeline.flushdb()
        for key, held in packed.items():
            pipeline.restore(key, 0, held)
        pipeline.execute()

    def _held(self, key: bytes) -> Any:
        client: Any = self.client
        readers: dict[bytes, Callable[[], Any]] = {
            b"string": lambda: client.get(key),
            b"hash": lambda: client.hgetall(key),
            b"set": lambda: client.smembers(key),
            b"zset": lambda: dict(client.zrange(key, 0, -1, withscores=True)),
            b"list": lambda: client.lrange(key, 0, -1),
        }
        return readers[client.type(key)]()

    def commands(self, operation: Op[Any]) -> int:
        """How many commands the scripts of an operation call."""

        def count() -> int:
            stats: Any = self.client.info("commandstats")
            own = {"cmdstat_evalsha", "cmdstat_info", "cmdstat_script|exists"}
            return sum(stat["calls"] for name, stat in stats.items() if name not in own)

        before = count()
        self(operation)
        return count() - before


@pytest.fixture
def make_bare(own_url: str) -> Iterator[Callable[..., Bare]]:
    made: list[Bare] = []

    def make(**options: Any) -> Bare:
        made.append(Bare(own_url, **options))
        return made[-1]

    yield make
    for bare in made:
        bare.client.close()


@pytest.fixture
def bare(make_bare: Callable[..., Bare]) -> Bare:
    return make_bare()


class Audit:
    """Works out from the jobs alone what every other key must hold, and compares."""

    def __init__(self, bare: Bare) -> None:
        self.bare = bare
        self.stored = {key[len(bare.keys.tag) :]: held for key, held in bare.dump().items()}
        ids = [key[2:] for key in self.stored if key[:2] == b"j:"]
        rows = bare(bare.ops.get_many([UUID(bytes=each) for each in ids]))
        self.jobs = [row for row in rows if row is not None]
        self.now = bare.clock.now()

    def check(self, *, gone: bool) -> None:
        expected = {
            key: held
            for parts in (self.lines(), self.claims(), self.ends(), self.keys())
            for key, held in parts.items()
            if held
        }
        kinds = {key.split(b":", 1)[0] for key in expected} | _WORKED_OUT
        found = {key: held for key, held in self.stored.items() if key.split(b":", 1)[0] in kinds}
        assert found == expected
        if not gone:
            self.index()
        queues = {row.queue.encode() for row in self.jobs if not row.state.finished}
        assert queues <= self.stored.get(b"qs", set())

    def lines(self) -> dict[bytes, Any]:
        keys: dict[bytes, dict[bytes, Any]] = defaultdict(dict)
        sets: dict[bytes, set[bytes]] = defaultdict(set)
        running = Counter(row.group for row in self.jobs if row.state is JobState.RUNNING)
        waiting = [
            row for row in self.jobs if not row.state.finished and row.state is not JobState.RUNNING
        ]
        for row in waiting:
            queue, kind, job_id = row.queue.encode(), row.kind.encode(), row.id.bytes
            due = _micros(row)
            place = b"%d:%%c:%d:%b:%b" % (row.priority, len(queue), queue, kind)
            if _failed(self, row):
                keys[b"f:" + queue][job_id] = due
            if row.group is None:
                keys[b"l:" + place.replace(b"%c", b"p")][job_id] = due
                continue
            group = row.group.encode()
            lane = b"%d:%d:%d:%b:%d:%b" % (
                row.group_limit, row.priority, len(queue), queue, len(kind), kind
            )  # fmt: skip
            sets[b"gl:" + group].add(lane)
            keys[b"w:" + lane + b":" + group][job_id] = due
            keys[b"gq:%d:%b:%b" % (len(queue), queue, kind)][job_id] = due
            sets[b"hg:" + queue].add(kind)
            first = min((other.run_at, other.id) for other in waiting if _lane(other) == _lane(row))
            if first == (row.run_at, row.id) and running[row.group] < row.group_limit:
                keys[b"l:" + place.replace(b"%c", b"g")][job_id] = due
        heads: dict[bytes, dict[bytes, Any]] = defaultdict(dict)
        for key, members in keys.items():
            if key[:2] == b"l:":
                size, rest = key.split(b":", 4)[3:]
                heads[b"h:" + size + b":" + rest][key[2:]] = min(members.values())
                if (priority := int(key.split(b":", 2)[1])) != 0:
                    heads[b"h:p:" + size + b":" + rest][key[2:]] = priority
                queue, kind = rest[: int(size)], rest[int(size) + 1 :]
                sets[b"hq:" + queue].add(kind)
        return {**keys, **sets, **heads}

    def claims(self) -> dict[bytes, Any]:
        held: dict[bytes, dict[bytes, Any]] = defaultdict(dict)
        asked: dict[bytes, set[bytes]] = defaultdict(set)
        queues: Counter[bytes] = Counter()
        groups: Counter[bytes] = Counter()
        for row in self.jobs:
            if row.claim is not None:
                session = row.claim.session.bytes
                held[b"c:" + session][row.id.bytes] = row.claim.fetch_no
                queues[row.queue.encode()] += 1
                if row.cancel_requested:
                    asked[b"cr:" + session].add(row.id.bytes)
                if row.group is not None:
                    groups[row.group.encode()] += 1
        return {**held, **asked, b"r": _numbers(queues), b"gr": _numbers(groups)}

    def ends(self) -> dict[bytes, Any]:
        """Held ones may stand among the free as soon as their hold is over, and not before."""
        found: dict[bytes, Any] = {}
        for state in ("completed", "discarded", "cancelled"):
            name = state.encode()
            rows = {row.id.bytes: row for row in self.jobs if row.state == state}
            timed, kept = self.stored.get(b"dh:" + name, {}), self.stored.get(b"dk:" + name, set())
            assert not timed.keys() & kept
            for job_id in timed.keys() | kept:
                assert rows[job_id].unique_hold != "active"
            for job_id, row in rows.items():
                if job_id not in timed and job_id not in kept:
                    assert not _holds(self, row)
            free = rows.keys() - timed.keys() - kept
            found[b"d:" + name] = {each: _micros(rows[each], "finished_at") for each in free}
            found[b"dh:" + name], found[b"dk:" + name] = timed, kept
        return found

    def keys(self) -> dict[bytes, Any]:
        """A key names a job that is there; and every active job that has it."""
        found = {key: held for key, held in self.stored.items() if key[:2] == b"u:"}
        named = {row.id.bytes: row for row in self.jobs}
        for key, job_id in found.items():
            assert named[job_id].unique_key == key[2:]
        for row in self.jobs:
            if row.unique_key and row.unique_hold == "active" and not row.state.finished:
                assert found[b"u:" + row.unique_key] == row.id.bytes
        return found

    def index(self) -> None:
        starts = sorted(self.stored.get(b"i", {}))
        chunks = {key[2:]: held for key, held in self.stored.items() if key[:2] == b"i:"}
        gone = self.stored.get(b"in", {})
        assert set(starts) == set(chunks)
        living = {row.id.bytes for row in self.jobs}
        seen: list[bytes] = []
        for start, end in pairwise([*starts, b"\xff" * 17]):
            ids = [chunks[start][at : at + 16] for at in range(0, len(chunks[start]), 16)]
            assert all(start <= each < end for each in ids)
            assert len(ids) - int(gone.get(start, 0)) == len(living & set(ids))
            seen += ids
        assert living <= set(seen)


def _numbers(counts: Counter[bytes]) -> dict[bytes, bytes]:
    return {name: b"%d" % count for name, count in counts.items()}


def _lane(row: JobRow) -> tuple[Any, ...]:
    return (row.group, row.group_limit, row.priority, row.queue, row.kind)


def _micros(row: JobRow, field: str = "run_at") -> float:
    time: datetime = getattr(row, field)
    return round(time.timestamp() * 1_000_000)


def _failed(audit: Audit, row: JobRow) -> bool:
    raw = audit.stored[b"j:" + row.id.bytes]
    return bool(raw[0] & NUMBERS["FULL"] and raw[20] & NUMBERS["FAILED"])


def _holds(audit: Audit, row: JobRow) -> bool:
    if row.unique_key is None or row.unique_hold == "active":
        return False
    if audit.stored.get(b"u:" + row.unique_key) != row.id.bytes:
        return False
    return row.unique_hold == "until_deleted" or row.unique_hold.when > audit.now


@pytest.fixture
def audit() -> Callable[..., None]:
    """Raises when anything that is stored does not fit the jobs.

    If strings of jobs were taken away, the index counts those still: ``gone``.
    """

    def audit(bare: Bare, *, gone: bool = False) -> None:
        Audit(bare).check(gone=gone)

    return audit
