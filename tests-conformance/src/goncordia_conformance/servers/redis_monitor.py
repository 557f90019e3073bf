"""What a Redis server was asked to do, told by itself: each command, those in scripts included.

Needs redis-py, the kit's extra ``redis``.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from redis.connection import Connection

from goncordia_conformance.servers.prefixes import connect_redis

__all__ = ["Command", "Monitor"]

_LINE: Final = re.compile(rb"[\d.]+ \[\d+ (\S+)\] (.*)", re.DOTALL)
_WORD: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)

_RUN: Final = {b"EVAL", b"EVALSHA", b"FCALL", b"EVAL_RO", b"EVALSHA_RO", b"FCALL_RO"}

_SKIPS: Final = re.compile(rb"LIMIT", re.IGNORECASE)


@dataclass(frozen=True)
class Command:
    """One that a server ran.

    Attributes:
        words: its name and what came with it.
        in_script: whether a script ran it.
    """

    words: Sequence[bytes]
    in_script: bool

    @property
    def name(self) -> bytes:
        """Its name, in capitals."""
        return self.words[0].upper()

    @property
    def key(self) -> bytes:
        """The first key, where the first word is one."""
        return self.words[1]


class Monitor:
    """Looks at one server; nobody else may use it meanwhile.

    Args:
        url: the server's, without a password.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    async def commands_of(self, call: Callable[[], Awaitable[object]]) -> list[Command]:
        """Make a call, and tell all that the server did for it."""
        with connect_redis(self._url) as client:
            client.ping()  # connecting has commands of its own
            with self._listening() as read:
                return await self._heard(call, client, read)

    async def _heard(
        self, call: Callable[[], Awaitable[object]], client: Any, read: Callable[[], bytes]
    ) -> list[Command]:
        await call()
        end = os.urandom(8).hex().encode()
        client.echo(end)
        commands: list[Command] = []
        while not commands or end not in commands[-1].words:
            commands.append(_parsed(read()))
        return commands[:-1]

    async def commits_of(self, call: Callable[[], Awaitable[object]]) -> int:
        """Make a call, and tell in how many steps the server changed something for it."""
        commands = _without_loading(await self.commands_of(call))
        runs = [command.name in _RUN for command in commands if not command.in_script]
        assert all(runs), "not all of it was done by scripts"
        return sum(not one.in_script and other.in_script for one, other in pairwise(commands))

    async def cost_of(self, call: Callable[[], Awaitable[object]]) -> int:
        """Make a call, and tell what it cost: commands, and what those looked at.

        What a command looked at is asked for afterwards, by the same command: that leaves out what
        the call itself took away, and nothing else. Loading a script, once in a server's life, does
        not count.
        """
        commands = _without_loading(await self.commands_of(call))
        with connect_redis(self._url) as client:
            return sum(_looked_at(client, command) for command in commands)

    @contextmanager
    def _listening(self) -> Generator[Callable[[], bytes], None, None]:
        with connect_redis(self._url) as client:
            options = client.connection_pool.connection_kwargs
        connection: Any = Connection(  # type: ignore[no-untyped-call]  # redis-py's is not typed
            host=options["host"], port=options["port"], protocol=2, socket_timeout=10
        )
        try:
            connection.send_command("MONITOR")
            assert connection.read_response() == b"OK"
            yield connection.read_response
        finally:
            connection.disconnect()


def _parsed(line: bytes) -> Command:
    found = _LINE.fullmatch(line)
    assert found is not None, line
    words = [codecs.escape_decode(word)[0] for word in _WORD.findall(found[2])]
    return Command([bytes(word) for word in words], in_script=found[1] == b"lua")


def _without_loading(commands: Sequence[Command]) -> list[Command]:
    """The commands but for loading scripts, and for the calls of scripts that were not loaded."""
    loads = [command.name == b"SCRIPT" for command in commands] + [False]
    return [
        command
        for number, command in enumerate(commands)
        if not loads[number] and not (loads[number + 1] and command.name in _RUN)
    ]


# ---------------------------------------------------------------- what is looked at

_WHOLE: Final = {
    b"SMEMBERS": b"SCARD",
    b"HGETALL": b"HLEN",
    b"HKEYS": b"HLEN",
    b"HVALS": b"HLEN",
}
"""What looks at all that is at a key, and what counts it."""

_RANGES: Final = {
    b"LRANGE",
    b"ZRANGE",
    b"ZRANGEBYLEX",
    b"ZRANGEBYSCORE",
    b"ZREVRANGE",
    b"ZREVRANGEBYLEX",
    b"ZREVRANGEBYSCORE",
}

_SIMPLE: Final = {
    *(b"APPEND", b"DEL", b"EXISTS", b"EXPIRE", b"GET", b"GETDEL", b"GETRANGE", b"MGET", b"MSET"),
    *(b"PEXPIRE", b"PEXPIREAT", b"PUBLISH", b"SET", b"SETRANGE", b"SPUBLISH", b"STRLEN", b"UNLINK"),
    *(b"HDEL", b"HEXISTS", b"HGET", b"HINCRBY", b"HLEN", b"HMGET", b"HSET", b"HSETNX"),
    *(b"LLEN", b"LPOP", b"LPUSH", b"LTRIM", b"RPOP", b"RPUSH"),
    *(b"SADD", b"SCARD", b"SISMEMBER", b"SMISMEMBER", b"SREM"),
    *(b"ZADD", b"ZCARD", b"ZCOUNT", b"ZINCRBY", b"ZLEXCOUNT", b"ZMSCORE", b"ZPOPMAX", b"ZPOPMIN"),
    *(b"ZRANK", b"ZREM", b"ZSCORE", b"INCR", b"INCRBY", b"TIME", b"ECHO", b"TYPE", *_RUN),
}
"""What looks only at what it names, or knows where to look."""


def _looked_at(client: Any, command: Command) -> int:
    """How much a command looked at, and at least itself."""
    if command.name in _WHOLE:
        return 1 + int(client.execute_command(_WHOLE[command.name], command.key))
    if command.name in _RANGES:
        passed_over = 0
        for number, word in enumerate(command.words):
            if _SKIPS.fullmatch(word):
                passed_over = int(command.words[number + 1])
        return 1 + passed_over + len(client.execute_command(*command.words))
    assert command.name in _SIMPLE, f"what does {command.name!r} look at?"
    return len(command.words) - 1
