"""What a listener that hears nothing by itself looks at, when it knows that something changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import Topic
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op
from goncordia_sql.states import Stored

__all__ = ["Sight", "Watch"]


class Sight(NamedTuple):
    """What there was to see; small, whatever the number of jobs.

    Attributes:
        due: the queues, each with the seconds until its first job that waits is due: 0, or less.
        cancels: the running jobs of which a cancel is requested, as stored ids.
        paused: the queues that were ever paused, and whether they are.
    """

    due: Mapping[str, float]
    cancels: frozenset[Any]
    paused: Mapping[str, bool]


class Watch(Topic):
    """One look, at a few entries at the beginning of each index."""

    def __init__(self, dialect: Dialect, codec: RowCodec) -> None:
        super().__init__(dialect, codec)
        job = dialect.job
        self._ready = dialect.sql(_each_queue(job, Stored.READY))
        self._later = dialect.sql(f"""
            SELECT q.name, (SELECT min(run_at) FROM {job}
                            WHERE state = {Stored.LATER} AND queue = q.name)
            FROM ({_each_queue(job, Stored.LATER)}) AS q
            """)
        self._cancels = dialect.sql(f"""
            SELECT id FROM {job} WHERE state = {Stored.RUNNING} AND cancel_requested = 1
            """)
        self._paused = dialect.sql(f"SELECT name, paused FROM {dialect.queue}")

    def look(self) -> Op[Sight]:
        """Look once."""
        now = yield from self.dialect.now()
        due: dict[str, float] = {}
        for name, run_at in (yield self._later()).rows:
            due[name] = self.times.seconds(run_at, now)
        for (name,) in (yield self._ready()).rows:
            due[name] = 0.0
        cancels = frozenset(raw_id for (raw_id,) in (yield self._cancels()).rows)
        paused = {name: bool(value) for name, value in (yield self._paused()).rows}
        return Sight(due, cancels, paused)


def _each_queue(job: str, state: Stored) -> str:
    """The queues that hold jobs in this state, by a leap from one to the next."""
    return f"""
        WITH RECURSIVE q(name) AS (
            SELECT min(queue) FROM {job} WHERE state = {state}
            UNION ALL SELECT (SELECT min(queue) FROM {job} WHERE state = {state}
                              AND queue > q.name) FROM q WHERE q.name IS NOT NULL)
        SELECT name FROM q WHERE name IS NOT NULL
        """
