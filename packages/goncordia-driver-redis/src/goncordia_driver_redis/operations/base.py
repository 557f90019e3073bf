"""What all operations share: the keys, the clock, and how a call is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from goncordia.clock import Clock
from goncordia_driver_redis.keys import Keys
from goncordia_driver_redis.operations.call import Argument, Call, Script
from goncordia_driver_redis.wire.times import micros

__all__ = ["Topic", "as_it_is", "nothing"]

T = TypeVar("T")


class Topic:
    """Makes calls.

    Args:
        keys: the installation's.
        clock: where time comes from; None: the server.
        keep_finished: keep at most so many finished jobs of each state; None: all, until they are
            pruned. What holds its unique key is kept beside them.
    """

    def __init__(self, keys: Keys, clock: Clock | None, keep_finished: int | None = None) -> None:
        self._keys = keys
        self._clock = clock
        self._keep_finished: Argument = b"" if keep_finished is None else keep_finished

    def _call(self, script: Script, parse: Callable[[Any], T], *arguments: Argument) -> Call[T]:
        return self._call_with(script, parse, arguments)

    def _call_with(
        self, script: Script, parse: Callable[[Any], T], arguments: Sequence[Argument]
    ) -> Call[T]:
        time: Argument = b"" if self._clock is None else micros(self._clock.now())
        return Call(script, self._keys.tag, (time, *arguments), parse)


def as_it_is(answer: Any) -> Any:
    """Of an answer that needs no reading."""
    return answer


def nothing(_: Any) -> None:
    """Of an answer that says nothing."""
