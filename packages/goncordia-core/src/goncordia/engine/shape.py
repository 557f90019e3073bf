"""The shape of a fetch: how much room there is, in all, by queue and by kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from goncordia.driver import JobRow, QueueFetch
from goncordia.engine.claims import Claims
from goncordia.engine.limits import Limits
from goncordia.engine.tokens import TokenSource
from goncordia.engine.turns import Turns

__all__ = ["Shape"]

_ANY_NUMBER: Final = 2**31 - 1


class Shape:
    """Turns free room into the queues of a fetch request.

    Args:
        claims: what takes up room now.
        turns: the order of the queues.
        limits: the rates of queues and kinds.
        queue_limits: at most so many running jobs of these queues.
        kind_limits: at most so many running jobs of these kinds.
        kinds: the kinds that the registry knows.
        fetch_kinds: whether the driver can be asked for kinds.
    """

    def __init__(
        self,
        claims: Claims,
        *,
        turns: Turns,
        limits: Limits,
        queue_limits: Mapping[str, int],
        kind_limits: Mapping[str, int],
        kinds: Iterable[str],
        fetch_kinds: bool,
    ) -> None:
        self._claims = claims
        self._turns = turns
        self._queue_tokens = limits.queue_tokens
        self._kind_tokens = limits.kind_tokens if fetch_kinds else {}
        self._queue_limits = queue_limits
        self._kind_limits = kind_limits
        self._fetch_kinds = fetch_kinds
        self._all_kinds = dict.fromkeys(kinds, _ANY_NUMBER)
        # Requests in flight may bring this many jobs of a queue or a kind.
        self._asked_queues: dict[str, int] = dict.fromkeys((*queue_limits, *self._queue_tokens), 0)
        self._asked_kinds: dict[str, int] = dict.fromkeys((*kind_limits, *self._kind_tokens), 0)
        self._surplus: dict[str, int] = dict.fromkeys(kind_limits, 0)

    def queues(self, room: int) -> tuple[QueueFetch, ...]:
        """What to ask for; empty: there is no room for anything."""
        if room <= 0:
            return ()
        kinds = self._kinds(room)
        if kinds is not None and not kinds:
            return ()
        asked: list[QueueFetch] = []
        for name in self._turns.order():
            limit = min(room, self._queue_room(name, room))
            if limit > 0:
                asked.append(QueueFetch(name, limit, kinds))
        return tuple(asked)

    def reserve(self, queues: tuple[QueueFetch, ...], sign: int = 1) -> None:
        """Count a request in flight against the limits; ``sign=-1``: it was answered."""
        for queue in queues:
            if queue.name in self._asked_queues:
                self._asked_queues[queue.name] += sign * queue.limit
        if queues:
            self._turns.asked(queues[0].name, sign * queues[0].limit)
        if queues and queues[0].kinds is not None:
            for kind in self._asked_kinds:
                self._asked_kinds[kind] += sign * queues[0].kinds.get(kind, 0)

    def claimed(self, rows: Iterable[JobRow]) -> None:
        """These jobs were claimed."""
        self._turns.served(row.queue for row in rows)

    def surplus(self, kind: str) -> int:
        """Whether a job of this kind that was just claimed is one too many.

        0: it may be kept. Else how many it were since one was kept, this one included: the longer
        the kind is full, the longer its other jobs may stay away.
        """
        limit = self._kind_limits.get(kind)
        if limit is None:
            return 0
        full = self._claims.active_by_kind[kind] >= limit
        self._surplus[kind] = self._surplus[kind] + 1 if full else 0
        return self._surplus[kind]

    def has_room(self, queue: str) -> bool:
        """Whether one more job of this queue may be kept."""
        return self._queue_room(queue, 1) > 0

    def wait(self) -> float | None:
        """Seconds until a queue or kind that has no tokens has some; None: none is without."""
        if not (self._queue_tokens or self._kind_tokens):
            return None
        waits = [
            wait
            for sources in (*self._queue_tokens.values(), *self._kind_tokens.values())
            for source in sources
            if (wait := source.wait()) is not None
        ]
        return min(waits, default=None)

    def _queue_room(self, name: str, wanted: int) -> int:
        limit = self._queue_limits.get(name)
        free = _ANY_NUMBER
        if limit is not None:
            free = limit - self._claims.active_by_queue[name] - self._asked_queues[name]
        if free > 0 and (sources := self._queue_tokens.get(name)):
            free = min(free, _available(sources, wanted, self._asked_queues[name]))
        return free

    def _kinds(self, room: int) -> Mapping[str, int] | None:
        if not self._fetch_kinds:
            return None
        if not (self._kind_limits or self._kind_tokens):
            return self._all_kinds
        kinds = dict(self._all_kinds)
        for kind, limit in self._kind_limits.items():
            free = limit - self._claims.active_by_kind[kind] - self._asked_kinds[kind]
            if free > 0:
                kinds[kind] = min(free, room)
            else:
                kinds.pop(kind, None)
        for kind, sources in self._kind_tokens.items():
            if kind in kinds:
                free = _available(sources, room, self._asked_kinds[kind])
                if free > 0:
                    kinds[kind] = min(kinds[kind], free)
                else:
                    del kinds[kind]
        return kinds


def _available(sources: Iterable[TokenSource], wanted: int, asked: int) -> int:
    """Tokens that no request under way may use."""
    return min(source.available(wanted, asked) for source in sources)
