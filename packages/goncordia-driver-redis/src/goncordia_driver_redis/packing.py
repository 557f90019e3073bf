"""A command as it goes over the wire. redis-py's own packing costs about as much as the rest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from goncordia_driver_redis.operations.call import Argument, Call, Script

__all__ = ["evalsha", "packed"]

_LENGTHS: Final = tuple(b"$%d\r\n" % size for size in range(256))
"""How short strings begin."""


def packed(command: Sequence[Argument]) -> bytes:
    """The command as an array of strings."""
    parts = [b"*%d\r\n" % len(command)]
    _append(parts, command)
    return b"".join(parts)


def evalsha(call: Call[Any]) -> bytes:
    """The call by the script's hash."""
    arguments = call.arguments
    parts = [b"*%d\r\n" % (len(arguments) + 4), _head(call.script, call.key)]
    _append(parts, arguments)
    return b"".join(parts)


@lru_cache(maxsize=256)
def _head(script: Script, key: bytes) -> bytes:
    parts: list[bytes] = []
    _append(parts, (b"EVALSHA", script.sha, b"1", key))
    return b"".join(parts)


def _append(parts: list[bytes], arguments: Sequence[Argument]) -> None:
    for argument in arguments:
        value = argument if type(argument) is bytes else _encoded(argument)
        size = len(value)
        parts += (_LENGTHS[size] if size < 256 else b"$%d\r\n" % size, value, b"\r\n")


def _encoded(argument: Argument) -> bytes:
    if isinstance(argument, bytes):
        return argument
    # The shortest text that reads back as the same float.
    return argument.encode() if isinstance(argument, str) else repr(argument).encode()
