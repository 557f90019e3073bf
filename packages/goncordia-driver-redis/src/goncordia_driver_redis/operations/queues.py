"""Queues: pauses and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from goncordia.driver import QueueState, QueueStats
from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations.base import Topic, nothing
from goncordia_driver_redis.operations.call import Op
from goncordia_driver_redis.wire.times import from_micros

__all__ = ["Queues"]

_PAUSE: Final = load_script("queue_pause")
_LIST: Final = load_script("queue_list")
_STATS: Final = load_script("queue_stats")
_COUNTED: Final = 100


class Queues(Topic):
    """A pause is obeyed by every fetch that comes after it."""

    def queue_pause(self, name: str) -> Op[None]:
        """See :meth:`BaseExecutor.queue_pause`."""
        yield self._call(_PAUSE, nothing, name, 1)

    def queue_resume(self, name: str) -> Op[None]:
        """See :meth:`BaseExecutor.queue_resume`."""
        yield self._call(_PAUSE, nothing, name, 0)

    def queue_list(self) -> Op[list[QueueState]]:
        """See :meth:`BaseExecutor.queue_list`."""
        names, paused = yield from self._queues()
        every = sorted({*names, *paused})
        return [QueueState(name, paused.get(name, False)) for name in every]

    def _queues(self) -> Op[tuple[set[str], dict[str, bool]]]:
        """The queues that hold something, and those that were ever paused."""
        names: set[str] = set()
        paused: dict[str, bool] = {}
        cursor = b"0"
        while True:
            cursor, some, pauses = yield self._call(_LIST, _read_list, cursor)
            names |= some
            paused |= pauses
            if cursor == b"0":
                return names, paused

    def queue_stats(self) -> Op[list[QueueStats]]:
        """See :meth:`BaseExecutor.queue_stats`. Exact for each hundred queues."""
        stats: list[QueueStats] = []
        names, _ = yield from self._queues()
        every = sorted(names)
        for start in range(0, len(every), _COUNTED):
            some = every[start : start + _COUNTED]

            def parse(answer: Any, some: Sequence[str] = some) -> list[QueueStats]:
                return [_read_stats(name, *each) for name, each in zip(some, answer, strict=True)]

            stats += yield self._call_with(_STATS, parse, some)
        return [each for each in stats if _unfinished(each)]


def _unfinished(stats: QueueStats) -> int:
    return stats.available + stats.scheduled + stats.retryable + stats.running


def _read_list(answer: Any) -> tuple[bytes, set[str], dict[str, bool]]:
    cursor, names, pauses = answer
    # RESP3 does not change the shape of what a script hands through.
    flags = zip(pauses[::2], pauses[1::2], strict=True)
    paused = {name.decode(): on == b"1" for name, on in flags}
    return cursor, {each.decode() for each in names}, paused


def _read_stats(
    name: str, due: int, later: int, failed: int, running: int, oldest: int | None
) -> QueueStats:
    first = None if oldest is None else from_micros(oldest)
    return QueueStats(name, due, later - failed, failed, running, first)
