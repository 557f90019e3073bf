"""Whatever a script writes: if a key is of another type, it is refused whole, by that name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import pytest
import redis

from goncordia.driver import (
    After,
    At,
    AttemptError,
    Change,
    ChangeAction,
    Finish,
    Mark,
    PruneRequest,
    QueueFetch,
)
from goncordia.gontest import MockClock
from goncordia_conformance.servers.redis_monitor import Command, Monitor
from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations import Call, Op
from goncordia_driver_redis.operations.base import nothing

Act = Callable[[], object]
World = Callable[[Any], Act]

KEY = b"\x00key" * 8
ERROR = AttemptError(1, MockClock().now(), "E", "it failed")
ASKER = UUID(int=9)
READS = set(
    b"ECHO EXISTS GET GETRANGE HGET HGETALL HEXISTS HLEN HMGET HVALS LLEN LRANGE MGET SCARD"
    b" SISMEMBER SMEMBERS SSCAN STRLEN TIME TYPE ZCARD ZCOUNT ZMSCORE ZRANGE ZRANGEBYSCORE"
    b" ZREVRANGEBYLEX ZSCORE SPUBLISH".split()
)
OF_ONE_TYPE = set(b"APPEND HDEL HINCRBY HSET INCR LTRIM RPUSH SADD SETRANGE SREM ZADD ZREM".split())
OF_ANY_TYPE = {b"DEL", b"EXPIRE", b"SET", b"MSET", b"MSETNX"}


# ---------------------------------------------------------------- what is done


def _waits(bare: Any, **fields: Any) -> Any:
    """A job among others like it."""
    bare.add(**fields)
    return bare.add(**fields)


def _runs(bare: Any, **fields: Any) -> Any:
    """A job that runs, and others like it that wait."""
    bare.open()
    bare.add(**fields)
    (row,) = bare.claim()
    bare.add(**fields | ({"unique_key": None} if "unique_key" in fields else {}))
    return row


def _failed(bare: Any, **fields: Any) -> Any:
    """A job that waits after a failure."""
    row = _runs(bare, **fields)
    bare(bare.ops.finish_many([Finish(row.claim, "retry", error=ERROR, checkpoint=b"c")]))
    return row.id


def _finished(bare: Any, **fields: Any) -> Any:
    row = _runs(bare, **fields)
    bare(bare.ops.finish_many([Finish(row.claim, "complete", output=b"1")]))
    return row.id


def _first_of(operation: Op[Any], calls: int = 1) -> Op[None]:
    """Its first calls."""
    call = next(operation)
    for _ in range(1, calls):
        call = operation.send((yield call))
    yield call


def _inserting(**fields: Any) -> World:
    def world(bare: Any) -> Act:
        bare.add(queue="other")
        job = bare.job(**fields)
        return lambda: bare(bare.ops.insert_many([job]))

    return world


def _fetching(prepare: Callable[..., object], **fields: Any) -> World:
    def world(bare: Any) -> Act:
        bare.open()
        prepare(bare, **fields)
        request = bare.request(UUID(int=7), 5, [QueueFetch("default", 5)])
        return lambda: bare(bare.ops.fetch(request))

    return world


def _finishing(to: Any, more: dict[str, Any] | None = None, **fields: Any) -> World:
    def world(bare: Any) -> Act:
        row, other = _runs(bare, **fields), _runs(bare)
        finishes = [Finish(other.claim, "complete"), Finish(row.claim, to, **(more or {}))]
        return lambda: bare(bare.ops.finish_many(finishes))

    return world


def _changing(action: ChangeAction, prepare: Callable[..., Any], **fields: Any) -> World:
    def world(bare: Any) -> Act:
        found = prepare(bare, **fields)
        changes = [
            Change(bare.add(kind="first"), "cancel"),
            Change(getattr(found, "id", found), action, After(5)),
        ]
        return lambda: bare(bare.ops.change_many(changes))

    return world


def _cancelled_while_it_runs(bare: Any) -> Act:
    row = _runs(bare)
    bare(bare.ops.change_many([Change(row.id, "cancel")]))
    return lambda: bare(bare.ops.finish_many([Finish(row.claim, "retry")]))


def _beating(bare: Any) -> Act:
    row = _runs(bare)
    bare(bare.ops.change_many([Change(row.id, "cancel")]))
    bare.advance(40)
    return lambda: bare(bare.ops.session_beat(row.claim.session, 60))


def _closing(bare: Any) -> Act:
    _runs(bare, group="g", group_limit=1)
    _runs(bare)
    return lambda: bare(bare.ops.session_close(UUID(int=7)))


def _expiring(bare: Any) -> Act:
    row = _runs(bare)
    bare.client.delete(bare.key(b"j:" + row.id.bytes))
    bare.open(UUID(int=8), 1)
    bare.open(ASKER, 10)
    for _ in range(9):
        bare.advance(4)
        bare(bare.ops.session_beat(ASKER, 10))
    bare.advance(4)
    bare.client.zadd(bare.key(b"so"), {UUID(int=7).bytes: 0})
    return lambda: bare(bare.ops.expire(ASKER, 10))


def _marking(bare: Any) -> Act:
    rows = [_runs(bare), _runs(bare)]
    marks = [Mark(row.claim, started=True, checkpoint=b"c") for row in rows]
    return lambda: bare(bare.ops.mark_many(marks))


def _pruning(bare: Any) -> Act:
    _finished(bare, unique_key=KEY)
    _finished(bare)
    bare.advance(99)
    before = bare.clock.now()
    return lambda: bare(_first_of(bare.ops.prune(PruneRequest(completed=before))))


def _freeing(bare: Any) -> Act:
    _finished(bare, **HELD)
    bare.advance(100_000)
    request = PruneRequest(completed=bare.clock.now() - timedelta(days=9))
    return lambda: bare(_first_of(bare.ops.prune(request)))


def _forgetful(bare: Any) -> Act:
    bare.open()
    bare.add(queue="once")
    bare(bare.ops.change_many([Change(bare.add(queue="once"), "delete")]))
    (row,) = bare.ask(1, QueueFetch("once", 1)).jobs
    bare(bare.ops.finish_many([Finish(row.claim, "complete")]))
    bare.client.sadd(bare.key(b"told"), "once")
    return lambda: bare(bare.ops.prune(PruneRequest()))


def _adopting(bare: Any) -> Act:
    row = _runs(bare)
    bare.client.delete(bare.key(b"c:" + row.claim.session.bytes), bare.key(b"so"))
    return lambda: bare(_first_of(bare.ops.mend(), 3))


def _recounting(bare: Any) -> Act:
    ids = [_runs(bare, **GROUP).id, _runs(bare, queue="default").id]
    bare(bare.ops.change_many([Change(ids[1], "cancel")]))
    bare.client.delete(*[bare.key(b"j:" + each.bytes) for each in ids], bare.key(b"qs"))
    bare.client.hset(bare.key(b"r"), "default", 5)
    return _step(bare, "recount")


def _putting_back(bare: Any) -> Act:
    """Of each sort one that is missing, and one that is gone."""
    _runs(bare)
    held = {"unique_hold": HELD["unique_hold"]}
    for number, fields in enumerate([{}, held, {"unique_hold": "until_deleted"}]):
        _finished(bare, unique_key=b"%032d" % number, **fields)
    _failed(bare, priority=5)
    gone = [_failed(bare), _waits(bare, kind="gone", **GROUP)]
    _failed(bare, **GROUP, priority=5)
    _waits(bare)
    keys = bare.client.keys(b"*")
    lost = [b"d", b"dh", b"dk", b"h", b"hq", b"l", b"f", b"w", b"gl"]
    here = {key for key in keys if key[len(bare.keys.tag) :].split(b":")[0] in lost}
    here -= {
        bare.key(b"l:0:p:7:default:work"),
        bare.key(b"h:7:default:work"),
        bare.key(b"hq:default"),
    }
    bare.client.delete(*here, *[bare.key(b"j:" + each.bytes) for each in gone])
    return _step(bare, "put_back", b"+")


def _putting_back_the_last(bare: Any) -> Act:
    bare.client.set(bare.key(b"lost"), 1)
    return _step(bare, "put_back", b"+")


def _step(bare: Any, script: str, *arguments: bytes) -> Act:
    """This step alone of several."""

    def step() -> Op[None]:
        yield Call(load_script(script), bare.keys.tag, (b"", *arguments), nothing)

    return lambda: bare(step())


def _putting(value: bytes | None) -> World:
    def world(bare: Any) -> Act:
        version = bare(bare.ops.record_put("r", b"1", 0, b"a" * 16)).version
        return lambda: bare(bare.ops.record_put("r", value, version, b"b" * 16))

    return world


GROUP: dict[str, Any] = {"group": "g", "group_limit": 1}
HELD: dict[str, Any] = {"unique_key": KEY, "unique_hold": At(MockClock().now() + timedelta(days=1))}
KEPT: dict[str, Any] = {"unique_key": KEY, "unique_hold": "until_deleted"}

WORLDS: dict[str, World] = {
    "insert": _inserting(),
    "insert, of a priority": _inserting(priority=5),
    "insert, unique": _inserting(unique_key=KEY),
    "insert, of a group": _inserting(**GROUP, priority=5),
    "fetch": _fetching(_waits),
    "fetch, of a priority": _fetching(_waits, priority=-3),
    "fetch, after a failure": _fetching(_failed, priority=5),
    "fetch, of a group": _fetching(_waits, **GROUP, priority=5),
    "fetch, of a group, after a failure": _fetching(_failed, **GROUP),
    "complete": _finishing("complete"),
    "complete, with output": _finishing("complete", {"output": b"1", "checkpoint": b"2"}),
    "complete, unique": _finishing("complete", unique_key=KEY),
    "complete, held": _finishing("complete", **HELD),
    "complete, kept": _finishing("complete", **KEPT),
    "complete, of a group": _finishing("complete", **GROUP),
    "retry": _finishing("retry", {"error": ERROR, "when": After(9)}, priority=5),
    "retry, of a group": _finishing("retry", {"error": ERROR}, **GROUP, priority=5),
    "discard": _finishing("discard", {"error": ERROR}),
    "snooze": _finishing("snooze", {"when": After(1)}),
    "release": _finishing("release"),
    "cancelled while it runs": _cancelled_while_it_runs,
    "cancel": _changing("cancel", _waits, priority=5),
    "cancel, after a failure": _changing("cancel", _failed),
    "cancel, unique": _changing("cancel", _failed, unique_key=KEY),
    "cancel, of a group": _changing("cancel", _waits, **GROUP),
    "cancel, running": _changing("cancel", _runs),
    "reschedule": _changing("reschedule", _waits),
    "reschedule, of a group": _changing("reschedule", _failed, **GROUP),
    "retry, of a finished one": _changing("retry", _finished, unique_key=KEY),
    "retry, of a held one": _changing("retry", _finished, **HELD),
    "retry, of a group, finished": _changing("retry", _finished, **GROUP, priority=5),
    "delete": _changing("delete", _waits, unique_key=None),
    "delete, finished": _changing("delete", _finished, **KEPT),
    "delete, after a failure": _changing("delete", _failed, **GROUP),
    "mark": _marking,
    "beat": _beating,
    "close": _closing,
    "expire": _expiring,
    "open": lambda bare: bare.open,
    "prune": _pruning,
    "prune, holds that are over": _freeing,
    "forget queues": _forgetful,
    "adopt": _adopting,
    "recount": _recounting,
    "put back": _putting_back,
    "put back, the end": _putting_back_the_last,
    "pause": lambda bare: lambda: bare(bare.ops.queue_pause("q")),
    "put": _putting(b"2"),
    "put, delete": _putting(None),
    "listen": lambda bare: lambda: bare(bare.ops.listen()),
    "migrate": lambda bare: lambda: bare(bare.ops.schema_write()),
}


# ---------------------------------------------------------------- what it comes to


def _writes(commands: list[Command]) -> dict[bytes, set[bytes]]:
    """The keys that were written, and by which commands."""
    written: dict[bytes, set[bytes]] = {}
    for command in commands:
        name = command.name
        if not command.in_script or name in READS:
            continue
        assert name in OF_ONE_TYPE | OF_ANY_TYPE, name
        step = 2 if name.startswith(b"MSET") else 1 if name == b"DEL" else len(command.words)
        for key in command.words[1::step]:
            written.setdefault(key, set()).add(name)
    return written


Spoilt = Callable[..., Awaitable[None]]


@pytest.fixture
def spoilt(own_url: str) -> Spoilt:
    """Does something again and again, each time with another of the keys that it writes spoilt.

    Then it raises, and nothing has changed, or what has changed is what a part of it does; or it
    wrote over that key, or did nothing.
    """

    async def spoilt(bare: Any, act: Act, part: Act = lambda: None) -> None:
        async def once() -> None:
            act()

        before = bare.packed()
        written = _writes(await Monitor(own_url).commands_of(once))
        assert written
        for key, commands in written.items():

            def spoil(key: bytes = key) -> dict[bytes, bytes]:
                bare.bring_back(before)
                bare.client.delete(key)
                bare.client.xadd(key, {"a": "b"}, id="1-1")
                return cast("dict[bytes, bytes]", bare.packed())

            there, said = spoil(), ""
            try:
                act()
            except redis.ResponseError as error:
                said = str(error)
            after = bare.packed()
            if not said:
                assert commands <= OF_ANY_TYPE or after == there, (key, commands)
                continue
            assert f"WRONGTYPE {bare.named(key)} holds a stream" in said
            if after != there:
                spoil()
                part()
                assert after == bare.packed(), key

    return spoilt


@pytest.mark.parametrize("name", WORLDS)
async def test_a_step_is_taken_whole_or_not(bare: Any, spoilt: Spoilt, name: str) -> None:
    await spoilt(bare, WORLDS[name](bare))


@pytest.mark.parametrize("fields", [{"priority": 5}, GROUP], ids=["plain", "group"])
async def test_what_has_ended_stays_so(bare: Any, spoilt: Spoilt, fields: Any) -> None:
    """If what it is exchanged for is refused."""
    _failed(bare, **fields)
    finish = Finish(_runs(bare, kind="other").claim, "complete")
    request = bare.request(UUID(int=7), 5, [QueueFetch("default", 5)])
    await spoilt(
        bare,
        lambda: bare(bare.ops.exchange([finish], request)),
        lambda: bare(bare.ops.finish_many([finish])),
    )


async def test_if_the_oldest_cannot_go_the_newest_comes(
    make_bare: Callable[..., Any], spoilt: Spoilt
) -> None:
    keeping, bare = make_bare(keep_finished=1), make_bare()
    _finished(keeping)
    _finished(keeping, unique_key=KEY)
    finish = Finish(_runs(keeping).claim, "complete")
    await spoilt(
        bare,
        lambda: keeping(keeping.ops.finish_many([finish])),
        lambda: bare(bare.ops.finish_many([finish])),
    )


async def test_that_is_every_key(bare: Any, own_url: str) -> None:
    names: set[bytes] = set()
    for world in WORLDS.values():
        bare.client.flushdb()
        act = world(bare)

        async def once(act: Act = act) -> None:
            act()

        written = _writes(await Monitor(own_url).commands_of(once))
        names |= {key[len(bare.keys.tag) :].split(b":")[0] for key in written}
    every = set(b"j e x l h hq gl w hg gq gr f r qs u d dh dk s so se c cr k kn kv i in".split())
    assert names == every | {b"told", b"p", b"schema", b"lost"}
