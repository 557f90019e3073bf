"""Inserting into PostgreSQL: one statement for one job, for many that are alike, or for others.

A unique conflict must not be an error: that would end the caller's transaction. So every insert
says ON CONFLICT DO NOTHING, and what was left out is looked at afterwards. Jobs with unique keys go
in the order of their keys, and so are holders looked at whose time is over: who waits for another's
key holds none that comes later, so nobody waits in a circle. No insert parks jobs of full groups,
or it would hold the group's row until the caller's commit; a fetch does that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

from goncordia.driver import At, InsertResult, NewJob
from goncordia_sql.ops.base import LONGEST_SET
from goncordia_sql.ops.insert import Inserting, likeness
from goncordia_sql.postgres.dialect import PostgresDialect
from goncordia_sql.postgres.notify import channel_of
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op, Statement
from goncordia_sql.states import Hold, Stored

__all__ = ["PostgresInsert"]

# Name and type of what a job is inserted from, in order; those from `kind` on are columns too.
_OWN: Final = (("id", "uuid"), ("args", "text"), ("args_raw", "bytea"), ("unique_key", "bytea"))
_SHARED: Final = (
    ("run_at", "timestamptz"), ("delay", "float8"), ("kind", "text"), ("queue", "text"),
    ("nice", "integer"), ("content", "text"), ("payload_version", "integer"),
    ("max_attempts", "integer"), ("timeout", "float8"), ("tags", "text"), ("meta", "text"),
    ("unique_hold", "smallint"), ("unique_until", "timestamptz"), ("group_name", "text"),
    ("group_limit", "integer"),
)  # fmt: skip
_COLUMNS: Final = ", ".join(
    ["id", "args", "args_raw", "unique_key", "held_key", "run_at", "state", "created_at"]
    + [name for name, _ in _SHARED[2:]]
)
_VALUES: Final = ", ".join(
    ["g.id", "g.args", "g.args_raw", "g.unique_key", "g.unique_key", "g.due"]
    + [f"CASE WHEN g.due <= g.now THEN {Stored.READY} ELSE {Stored.LATER} END", "g.now"]
    + [f"g.{name}" for name, _ in _SHARED[2:]]
)
_UNLESS_THERE: Final = "ON CONFLICT DO NOTHING RETURNING id"
_DUE: Final = "coalesce(g.run_at, {now} + make_interval(secs => g.delay)) AS due, {now} AS now"


class PostgresInsert(Inserting):
    """``insert_many``; the same on the driver's connections and in the caller's transaction."""

    def __init__(self, dialect: PostgresDialect, codec: RowCodec) -> None:
        super().__init__(dialect, codec)
        self._dialect = dialect
        job = dialect.job
        one = ", ".join(f":{name}::{kind} AS {name}" for name, kind in (*_OWN, *_SHARED))
        alike = ", ".join(f":{name}::{kind} AS {name}" for name, kind in _SHARED)
        names = ", ".join(name for name, _ in (*_OWN, *_SHARED))
        arrays = ", ".join(f":{name}::{kind}[]" for name, kind in (*_OWN, *_SHARED))

        insert = f"INSERT INTO {job} ({_COLUMNS}) SELECT {_VALUES} FROM (SELECT g.*, {_DUE} FROM"
        insert_one = f"{insert} (SELECT {one}) AS g) AS g ON CONFLICT DO NOTHING"
        self._one = dialect.statement(insert_one)
        self._one_told = dialect.statement(f"""
            WITH new AS ({insert_one} RETURNING id)
            SELECT pg_notify(:channel::text, :message::text) FROM new
            """)
        self._channel = channel_of(dialect.schema)
        insert_alike = f"""
            {insert} (SELECT u.id, u.args, NULL::bytea AS args_raw, NULL::bytea AS unique_key,
                      {alike} FROM unnest(:ids::uuid[], :texts::text[]) AS u(id, args)) AS g) AS g
            """
        insert_each = f"""
            {insert} unnest({arrays}) WITH ORDINALITY AS g({names}, number)) AS g
            ORDER BY g.number
            """
        self._alike = dialect.statement(f"{insert_alike} {_UNLESS_THERE}")
        self._alike_new = dialect.statement(insert_alike)
        self._each = dialect.statement(f"{insert_each} {_UNLESS_THERE}")
        self._each_new = dialect.statement(insert_each)
        self._known = dialect.sql(f"""
            SELECT k.n, EXISTS (SELECT 1 FROM {job} i WHERE i.id = k.id),
                h.id, h.unique_hold, h.unique_until
            FROM (SELECT u.number - 1 AS n, u.id, u.key
                  FROM unnest(:ids::uuid[], :keys::bytea[]) WITH ORDINALITY AS u(id, key, number)
                  LIMIT cardinality(:ids::uuid[])) AS k LEFT JOIN {job} h ON h.held_key = k.key
            """)
        self._take_key = dialect.sql(f"""
            UPDATE {job} SET held_key = NULL
            WHERE id = :id AND unique_hold = {Hold.UNTIL_TIME} AND unique_until <= :now
            """)

    def insert_many(
        self, jobs: Sequence[NewJob], message: str | None = None
    ) -> Op[list[InsertResult]]:
        """See :meth:`BaseExecutor.insert_many`.

        Args:
            jobs: what to insert.
            message: told if it is one job, and new, by the statement that inserts it.
        """
        # With keys it may be more than one change: that whose hold is over is taken away first.
        alone = len(jobs) == 1 or all(job.unique_key is None for job in jobs)
        if len(jobs) == 1:
            values = (*self._now(), *self._own(jobs[0]), *self._shared(jobs[0]))
            insert = self._one
            if message is not None:
                insert, values = self._one_told, (*values, self._channel, message)
            if (yield insert.bind(values, alone=alone)).changed:
                return [InsertResult(jobs[0].id, "INSERTED")]
            return (yield from self._look(jobs, message))
        inserted: set[Any] = set()
        chunks = list(self._chunks(jobs))
        for chunk in chunks:
            statement = self._insert(chunk, alone=alone and len(chunks) == 1)
            inserted.update(row[0] for row in (yield statement).rows)
        if len(inserted) == len(jobs):
            return [InsertResult(job.id, "INSERTED") for job in jobs]
        results: dict[int, InsertResult] = {}
        for n, job in enumerate(jobs):
            if job.id in inserted:
                inserted.discard(job.id)  # one that comes twice was inserted once
                results[n] = InsertResult(job.id, "INSERTED")
        rest = [n for n in range(len(jobs)) if n not in results]
        rest.sort(key=lambda n: jobs[n].unique_key or b"")
        if rest:
            looked = yield from self._look([jobs[n] for n in rest])
            results.update(zip(rest, looked, strict=True))
        return [results[n] for n in range(len(jobs))]

    def attempts(self, jobs: Sequence[NewJob]) -> Callable[[], Op[list[InsertResult]]]:
        """See :meth:`Inserting.attempts`.

        Many jobs without keys are hardly ever there already, and to look for each takes a fifth of
        the time. So they are inserted as new ones first. A conflict undoes that and is repeated.
        """
        if len(jobs) == 1 or any(job.unique_key is not None for job in jobs):
            return super().attempts(jobs)
        ways = itertools.chain([self._insert_new], itertools.repeat(self.insert_many))
        return lambda: next(ways)(jobs)

    def _insert_new(self, jobs: Sequence[NewJob]) -> Op[list[InsertResult]]:
        chunks = list(self._chunks(jobs))
        for chunk in chunks:
            yield self._insert(chunk, new=True, alone=len(chunks) == 1)
        return [InsertResult(job.id, "INSERTED") for job in jobs]

    # ---------------------------------------------------------------- statements

    def _chunks(self, jobs: Sequence[NewJob]) -> Iterator[list[NewJob]]:
        """The jobs in the order in which they are inserted, in parts that a statement can hold."""
        keyed = [job for job in jobs if job.unique_key is not None]
        if keyed:
            keyed.sort(key=lambda job: job.unique_key or b"")
            jobs = [*(job for job in jobs if job.unique_key is None), *keyed]
        chunk: list[NewJob] = []
        size = 0
        for job in jobs:
            size += len(job.args)
            if size > LONGEST_SET and chunk:
                yield chunk
                chunk, size = [], len(job.args)
            chunk.append(job)
        yield chunk

    def _insert(self, jobs: Sequence[NewJob], *, alone: bool, new: bool = False) -> Statement:
        texts = self._texts_of_alike(jobs)
        if texts is not None:
            ids = [job.id for job in jobs]
            sql = self._alike_new if new else self._alike
            return sql.bind((*self._now(), *self._shared(jobs[0]), ids, texts), alone=alone)
        rows = [(*self._own(job), *self._shared(job)) for job in jobs]
        columns = zip(*rows, strict=True)
        sql = self._each_new if new else self._each
        return sql.bind((*self._now(), *map(list, columns)), alone=alone)

    def _texts_of_alike(self, jobs: Sequence[NewJob]) -> list[str] | None:
        """The args of jobs that differ in nothing else but their ids; None: they do, or no text."""
        first = likeness(jobs[0])
        payload_in = self._dialect.payload_in
        texts: list[str] = []
        for job in jobs:
            text, _ = payload_in(job.args, job.content)
            if text is None or job.unique_key is not None or likeness(job) != first:
                return None
            texts.append(text)
        return texts

    def _shared(self, job: NewJob) -> tuple[Any, ...]:
        """The values of the ``_SHARED``, in order."""
        run_at = delay = None
        if isinstance(job.run_at, At):
            run_at = self.dialect.times.encode(job.run_at.when)
        else:
            delay = 0.0 if job.run_at is None else float(job.run_at.seconds)
        return (run_at, delay, *self.codec.given_values(job), *self.codec.hold_values(job))

    def _own(self, job: NewJob) -> tuple[Any, ...]:
        return (job.id, *self._dialect.payload_in(job.args, job.content), job.unique_key)

    def _now(self) -> tuple[Any, ...]:
        now = self._dialect.time()
        return () if now is None else (now,)

    # ---------------------------------------------------------------- conflicts

    def _look(self, jobs: Sequence[NewJob], message: str | None = None) -> Op[list[InsertResult]]:
        """What became of jobs, in the order of their keys, that met their id or their key."""
        now = yield from self.dialect.now()
        keys = [job.unique_key for job in jobs]
        found = yield self._known(ids=self.dialect.ids(job.id for job in jobs), keys=keys)
        results: dict[int, InsertResult] = {}
        for n, known, holder, hold, until in sorted(found.rows, key=itemgetter(0)):
            job_id = jobs[int(n)].id
            if known:
                results[n] = InsertResult(job_id, "REPLAYED")
            elif holder is not None and (hold != Hold.UNTIL_TIME or now < until):
                results[n] = InsertResult(job_id, "DUPLICATE", self.dialect.id_out(holder))
            elif holder is not None:
                yield self._take_key(id=holder, now=now)
        again = [n for n in range(len(jobs)) if n not in results]
        if again:
            # What was in the way is gone.
            others = yield from self.insert_many([jobs[n] for n in again], message)
            results.update(zip(again, others, strict=True))
        return [results[n] for n in range(len(jobs))]
