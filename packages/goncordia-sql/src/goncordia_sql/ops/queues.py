"""Queues: pauses and numbers. And what is deleted for age."""

from __future__ import annotations

from typing import Any, Final

from goncordia.driver import PruneRequest, QueueState, QueueStats
from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import Topic
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op
from goncordia_sql.states import Hold, Stored

__all__ = ["Queues"]

_UNFINISHED: Final = (Stored.LATER, Stored.READY, Stored.PARKED, Stored.RUNNING)


class Queues(Topic):
    """``queue_…`` and ``prune``."""

    def __init__(self, dialect: Dialect, codec: RowCodec) -> None:
        super().__init__(dialect, codec)
        job, queue = dialect.job, dialect.queue
        self._paused = dialect.sql(f"""
            SELECT paused FROM {queue} WHERE name = :name {dialect.for_update}
            """)
        self._add = dialect.sql(f"INSERT INTO {queue} (name, paused) VALUES (:name, :paused)")
        self._set = dialect.sql(f"UPDATE {queue} SET paused = :paused WHERE name = :name")
        self._all = dialect.sql(f"SELECT name, paused FROM {queue}")
        # A part for each stored state, since each has an index of its own.
        parts = " UNION ALL ".join(
            f"""SELECT queue, {state} AS state,
                CASE WHEN run_at <= :now THEN 0 WHEN failed = 1 THEN 2 ELSE 1 END AS due,
                count(*), min(run_at) FROM {job} WHERE state = {state} GROUP BY 1, 3"""
            for state in _UNFINISHED
        )
        self._stats = dialect.sql(parts)
        self._names = dialect.sql(
            " UNION ".join(
                f"SELECT queue FROM {job} WHERE state = {state}" for state in _UNFINISHED
            )
        )
        self._end_holds = dialect.sql(f"""
            UPDATE {job} SET held_key = NULL WHERE id IN (
                SELECT id FROM {job} WHERE held_key IS NOT NULL
                AND unique_hold = {Hold.UNTIL_TIME} AND unique_until <= :now
                ORDER BY unique_until LIMIT :most)
            """)
        prune = f"""
            DELETE FROM {job} WHERE id IN (
                SELECT id FROM {job} WHERE state = {{}} AND finished_at < :before
                AND held_key IS NULL ORDER BY finished_at LIMIT :most)
            """
        self._prune_completed = dialect.sql(prune.format(Stored.COMPLETED.value))
        self._prune_discarded = dialect.sql(prune.format(Stored.DISCARDED.value))
        self._prune_cancelled = dialect.sql(prune.format(Stored.CANCELLED.value))

    # ---------------------------------------------------------------- queues

    def queue_pause(self, name: str) -> Op[None]:
        """See :meth:`BaseExecutor.queue_pause`."""
        yield from self._set_paused(name, 1)

    def queue_resume(self, name: str) -> Op[None]:
        """See :meth:`BaseExecutor.queue_resume`."""
        yield from self._set_paused(name, 0)

    def _set_paused(self, name: str, paused: int) -> Op[None]:
        found = (yield self._paused(name=name)).rows
        if found:
            if found[0][0] != paused:
                yield self._set(name=name, paused=paused)
        elif paused:
            yield self._add(name=name, paused=paused)

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
        for queue, state, due, count, first in (yield self._stats(now=now)).rows:
            of_queue = numbers.setdefault(queue, [0, 0, 0, 0])
            of_queue[3 if state == Stored.RUNNING else due] += count
            if state != Stored.RUNNING and due == 0:
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
