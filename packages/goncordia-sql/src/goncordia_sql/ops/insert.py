"""Inserting jobs: rule 6 of the contract, by a unique index and not by a look first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from goncordia.driver import InsertResult, NewJob
from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import LONGEST_SET, Topic, fits_set
from goncordia_sql.rows import INSERTED, RowCodec
from goncordia_sql.statement import Op
from goncordia_sql.states import Hold, Stored

__all__ = ["Insert", "Inserting", "likeness"]

_SHARED: Final = INSERTED[2:]
likeness: Final = attrgetter(
    "kind", "queue", "priority", "run_at", "content", "payload_version", "max_attempts", "timeout",
    "tags", "group", "group_limit", "unique_hold", "meta",
)  # fmt: skip
"""Equal for jobs that differ in nothing but id, args and key."""


class Inserting(Topic, ABC):
    """What every dialect's insert does."""

    @abstractmethod
    def insert_many(self, jobs: Sequence[NewJob]) -> Op[list[InsertResult]]:
        """See :meth:`BaseExecutor.insert_many`."""

    def attempts(self, jobs: Sequence[NewJob]) -> Callable[[], Op[list[InsertResult]]]:
        """What makes the operation for each attempt, in a transaction of its own."""
        return lambda: self.insert_many(jobs)


class Insert(Inserting):
    """Inserts as if nothing were there already, and looks only when the index objects.

    Jobs that differ in nothing but id and args, as those of ``enqueue_many``, go into one
    statement. One with a unique key goes alone, in its turn, since an earlier job of the same
    request may take its key.
    """

    def __init__(self, dialect: Dialect, codec: RowCodec) -> None:
        super().__init__(dialect, codec)
        columns = ", ".join(INSERTED)
        values = ", ".join(f":{column}" for column in INSERTED)
        shared = ", ".join(f":{column}" for column in _SHARED)
        one = f"INSERT INTO {dialect.job} ({columns}) VALUES ({values})"
        alike = f"""
            INSERT INTO {dialect.job} ({columns})
            SELECT k.id, k.value, {shared} FROM {dialect.each_pair(":ids", ":args")} AS k
            """
        self._one = dialect.sql(one)
        self._alike = dialect.sql(alike)
        self._one_in_group = dialect.sql(
            one.replace(":state", _parked_if_full(dialect.job, ":id", "0"))
        )
        self._alike_in_group = dialect.sql(
            alike.replace(":state", _parked_if_full(dialect.job, ":first", "k.n"))
        )
        self._known = dialect.sql(f"SELECT 1 FROM {dialect.job} WHERE id = :id")
        self._holder = dialect.sql(f"""
            SELECT id, unique_hold, unique_until FROM {dialect.job} WHERE held_key = :key
            """)
        self._take_key = dialect.sql(f"UPDATE {dialect.job} SET held_key = NULL WHERE id = :id")

    def insert_many(self, jobs: Sequence[NewJob]) -> Op[list[InsertResult]]:
        """See :meth:`BaseExecutor.insert_many`."""
        now = yield from self.dialect.now()
        if len(jobs) == 1:
            return [(yield from self._insert(jobs[0], now))]
        results: dict[int, InsertResult] = {}
        for chunk in self._chunks(jobs):
            if len(chunk) > 1 and (yield from self._insert_alike([jobs[n] for n in chunk], now)):
                for n in chunk:
                    results[n] = InsertResult(jobs[n].id, "INSERTED")
            else:
                for n in chunk:
                    results[n] = yield from self._insert(jobs[n], now)
        return [results[n] for n in range(len(jobs))]

    def _chunks(self, jobs: Sequence[NewJob]) -> Iterator[list[int]]:
        """The numbers of the jobs: those that are alike together, each other one alone."""
        alike: dict[Any, list[int]] = {}
        alone: list[int] = []
        last: Any = None
        same: list[int] = []
        for n, job in enumerate(jobs):
            if job.unique_key is not None or job.content != "json" or not fits_set(job.args):
                alone.append(n)
                continue
            like = likeness(job)
            if like != last:
                last = like
                same = alike.setdefault((*like[:-1], *like[-1].items()), [])
            same.append(n)
        for same in alike.values():
            if jobs[same[0]].group is not None:
                # The places in the group are given out in this order.
                same.sort(key=lambda n: jobs[n].id.int)
            chunk: list[int] = []
            size = 0
            for n in same:
                size += len(jobs[n].args)
                if size > LONGEST_SET:
                    yield chunk
                    chunk, size = [], len(jobs[n].args)
                chunk.append(n)
            yield chunk
        for n in alone:
            yield [n]

    def _insert_alike(self, jobs: Sequence[NewJob], now: Any) -> Op[bool]:
        """Insert all, or nothing: False when one of them is known."""
        args = self.dialect.texts([job.args.decode() for job in jobs])
        shared = self.codec.shared_values(jobs[0], now)
        ids = self.dialect.ids([job.id for job in jobs])
        if jobs[0].group is None:
            answer = yield self._alike.bind((*shared, ids, args), conflict_allowed=True)
        else:
            values = dict(zip(_SHARED, shared, strict=True), ids=ids, args=args)
            values["first"] = self.dialect.id_in(jobs[0].id)
            answer = yield self._alike_in_group.with_conflict(**values)
        return not answer.conflict

    def _insert(self, job: NewJob, now: Any) -> Op[InsertResult]:
        values = self.codec.values(job, now)
        if job.group is None:
            statement = self._one.bind(values, conflict_allowed=True)
        else:
            by_name = dict(zip(INSERTED, values, strict=True))
            statement = self._one_in_group.with_conflict(**by_name)
        while (yield statement).conflict:
            raw_id = self.dialect.id_in(job.id)
            if (yield self._known(id=raw_id)).rows:
                return InsertResult(job.id, "REPLAYED")
            for holder, hold, until in (yield self._holder(key=job.unique_key)).rows:
                if hold != Hold.UNTIL_TIME or now < until:
                    return InsertResult(job.id, "DUPLICATE", self.dialect.id_out(holder))
                yield self._take_key(id=holder)
        return InsertResult(job.id, "INSERTED")


def _parked_if_full(job: str, first: str, number: str) -> str:
    """The state of a job with a group: parked, if those before it fill the group.

    Args:
        job: the table.
        first: the id of the first job that is inserted.
        number: how many are inserted before this one.
    """
    return f"""
        CASE WHEN :state = {Stored.READY} AND {number}
            + (SELECT count(*) FROM (SELECT 1 FROM {job} r
                WHERE r.group_name = :group_name AND r.state = {Stored.RUNNING}
                LIMIT :group_limit) AS running)
            + (SELECT count(*) FROM (SELECT 1 FROM {job} w
                WHERE w.group_name = :group_name AND w.state = {Stored.READY}
                AND w.queue = :queue AND w.kind = :kind AND w.group_limit = :group_limit
                AND (w.nice, w.run_at, w.id) < (:nice, :run_at, {first})
                LIMIT :group_limit) AS waiting)
            >= :group_limit THEN {Stored.PARKED}
        ELSE :state END
        """
