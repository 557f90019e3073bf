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
        ready: the queues that hold jobs that are ready.
        later: the queues that hold jobs for later, each with the stored time of the first.
        now: the stored time of the look.
        cancels: the running jobs of which a cancel is requested, as stored ids.
        paused: the queues that were ever paused, and whether they are.
    """

    ready: frozenset[str]
    later: Mapping[str, Any]
    now: Any
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
        ready = frozenset(name for (name,) in (yield self._ready()).rows)
        later = {row[0]: row[1] for row in (yield self._later()).rows}
        cancels = frozenset(raw_id for (raw_id,) in (yield self._cancels()).rows)
        paused = {name: bool(value) for name, value in (yield self._paused()).rows}
        return Sight(ready, later, now, cancels, paused)

    def due_in(self, before: Sight | None, after: Sight) -> dict[str, float]:
        """Seconds until jobs are due, for each queue where there is something to tell.

        Of jobs that are due, after each change: some of them may be new. Of others, when the first
        of them is sooner than the one before.
        """
        seconds: dict[str, float] = {}
        for name, run_at in after.later.items():
            last = None if before is None else before.later.get(name)
            if last is None or run_at < last or run_at <= after.now:
                seconds[name] = max(0.0, self.times.seconds(run_at, after.now))
        seconds.update(dict.fromkeys(after.ready, 0.0))
        return seconds


def _each_queue(job: str, state: Stored) -> str:
    """The queues that hold jobs in this state, by a leap from one to the next."""
    return f"""
        WITH RECURSIVE q(name) AS (
            SELECT min(queue) FROM {job} WHERE state = {state}
            UNION ALL SELECT (SELECT min(queue) FROM {job} WHERE state = {state}
                              AND queue > q.name) FROM q WHERE q.name IS NOT NULL)
        SELECT name FROM q WHERE name IS NOT NULL
        """
