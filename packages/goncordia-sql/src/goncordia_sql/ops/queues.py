"""Queues: pauses and numbers. And what is deleted for age."""

from __future__ import annotations

from typing import Any, Final

from goncordia.driver import PruneRequest, QueueState, QueueStats
from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import Topic
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op, Sql
from goncordia_sql.states import WAITING, Hold, Stored

__all__ = ["Queues"]

_AVAILABLE, _SCHEDULED, _RETRYABLE, _RUNNING = range(4)
_PARTS: Final = (
    (Stored.LATER, _AVAILABLE, " AND run_at <= :now"),
    (Stored.LATER, _SCHEDULED, " AND run_at > :now AND failed = 0"),
    (Stored.LATER, _RETRYABLE, " AND run_at > :now AND failed = 1"),
    (Stored.READY, _AVAILABLE, ""),
    (Stored.PARKED, _AVAILABLE, ""),
    (Stored.RUNNING, _RUNNING, ""),
)
"""Stored state, place in the numbers, and what must hold besides."""


class Queues(Topic):
    """``queue_…`` and ``prune``."""

    def __init__(self, dialect: Dialect, codec: RowCodec) -> None:
        super().__init__(dialect, codec)
        job, queue = dialect.job, dialect.queue
        self._pause = dialect.sql(f"""
            INSERT INTO {queue} (name, paused) VALUES (:name, 1)
            ON CONFLICT (name) DO UPDATE SET paused = 1
            """)
        self._resume = dialect.sql(f"UPDATE {queue} SET paused = 0 WHERE name = :name")
        self._all = dialect.sql(f"SELECT name, paused FROM {queue}")
        # A part for each stored state, since each has an index of its own that tells all of this.
        self._stats = dialect.sql(
            " UNION ALL ".join(
                f"""SELECT queue, {number} AS number, count(*), min(run_at) FROM {job}
                WHERE state = {state}{condition} GROUP BY queue"""
                for state, number, condition in _PARTS
            )
        )
        self._names = dialect.sql(
            " UNION ".join(
                f"SELECT queue FROM {job} WHERE state = {state} GROUP BY queue"
                for state in (*WAITING, Stored.RUNNING)
            )
        )
        over = dialect.picked(f"""
            SELECT id FROM {job} WHERE held_key IS NOT NULL AND unique_hold = {Hold.UNTIL_TIME}
            AND unique_until <= :now ORDER BY unique_until LIMIT :most
            """)
        self._end_holds = dialect.sql(f"UPDATE {job} SET held_key = NULL WHERE id IN {over}")

        def prune(state: Stored) -> Sql:
            # The state is said twice for the index that holds all finished ones.
            old = dialect.picked(f"""
                SELECT id FROM {job} WHERE state = {state} AND finished_at < :before
                AND state >= {Stored.COMPLETED} AND held_key IS NULL
                ORDER BY finished_at LIMIT :most
                """)
            return dialect.sql(f"DELETE FROM {job} WHERE id IN {old}")

        self._prune_completed = prune(Stored.COMPLETED)
        self._prune_discarded = prune(Stored.DISCARDED)
        self._prune_cancelled = prune(Stored.CANCELLED)

    # ---------------------------------------------------------------- queues

    def queue_pause(self, name: str) -> Op[None]:
        """See :meth:`BaseExecutor.queue_pause`."""
        yield self._pause.alone(name=name)

    def queue_resume(self, name: str) -> Op[None]:
        """See :meth:`BaseExecutor.queue_resume`."""
        yield self._resume.alone(name=name)

    def queue_list(self) -> Op[list[QueueState]]:
        """See :meth:`BaseExecutor.queue_list`."""
        paused = {name: bool(value) for name, value in (yield self._all()).rows}
        names = {name for (name,) in (yield self._names()).rows}
        return [QueueState(name, paused.get(name, False)) for name in sorted(names | set(paused))]

    def queue_stats(self) -> Op[list[QueueStats]]:
        """See :meth:`BaseExecutor.queue_stats`."""
        now = yield from self.dialect.now()
        numbers: dict[str, list[int]] = {}
        oldest: dict[str, Any] = {}
        for queue, number, count, first in (yield self._stats(now=now)).rows:
            numbers.setdefault(queue, [0, 0, 0, 0])[number] += count
            if number == _AVAILABLE:
                oldest[queue] = min(first, oldest.get(queue, first))
        return [
            QueueStats(
                queue,
                available,
                scheduled,
                retryable,
                running,
                self.times.decode_optional(oldest.get(queue)),
            )
            for queue, (available, scheduled, retryable, running) in sorted(numbers.items())
        ]

    # ---------------------------------------------------------------- retention

    def prune(self, request: PruneRequest) -> Op[int]:
        """See :meth:`BaseExecutor.prune`."""
        now = yield from self.dialect.now()
        yield self._end_holds(now=now, most=request.limit)
        deleted = 0
        for before, sql in (
            (request.completed, self._prune_completed),
            (request.discarded, self._prune_discarded),
            (request.cancelled, self._prune_cancelled),
        ):
            most = request.limit - deleted
            if before is not None and most > 0:
                deleted += (yield sql(before=self.times.encode(before), most=most)).changed
        return deleted
