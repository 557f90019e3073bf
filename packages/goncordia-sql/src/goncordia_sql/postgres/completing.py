"""Completing jobs in one statement: those that are held as they should be, and in no group.

The rows are looked up one by one and locked in the order of their ids, whatever the planner thinks
of the size of the table: what goes into a join has a LIMIT by parameter, which it takes for few
rows. They are written where they were locked, which saves looking them up again. One that somebody
else has written since the statement began is at a place that the statement does not see: it is
left, as all exceptions are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from goncordia.driver import Finish, Outcome
from goncordia_sql.ops.finish import COMPLETED, Finishing, plain_completions
from goncordia_sql.ops.groups import Groups
from goncordia_sql.postgres.dialect import PostgresDialect
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op
from goncordia_sql.states import Hold, Stored

__all__ = ["NONE", "NOTHING", "Completed", "PostgresFinishing", "completing"]


def completing(dialect: PostgresDialect, lock: str = "FOR UPDATE SKIP LOCKED") -> str:
    """The beginning of a statement: ``done`` has the ids of the jobs that it completes.

    Its parameters are the :meth:`Completed.values`. Jobs that others hold locked are left, unless
    the lock says otherwise.
    """
    return f"""
        given AS MATERIALIZED (
            SELECT u.id, u.fetch_no, u.output
            FROM unnest(:done_ids::uuid[], :fetch_nos::bigint[], :outputs::text[])
                AS u(id, fetch_no, output) LIMIT :done_most::bigint
        ), held AS MATERIALIZED (
            SELECT h.place, g.output FROM given g CROSS JOIN LATERAL (
                SELECT i.ctid AS place FROM {dialect.job} i
                WHERE i.id = g.id AND i.state = {Stored.RUNNING} AND i.session = :owner::uuid
                AND i.fetch_no = g.fetch_no AND i.group_name IS NULL {lock}) AS h
            LIMIT :done_most::bigint
        ), done AS (
            UPDATE {dialect.job} j SET state = {Stored.COMPLETED}, finished_at = {{now}},
                failed = 0, output = h.output, held_key =
                    CASE WHEN j.unique_hold = {Hold.ACTIVE} THEN NULL ELSE j.held_key END
            FROM held h WHERE j.ctid = h.place RETURNING j.id
        )"""


class Completed(NamedTuple):
    """Claims to complete, all of one session and of different jobs.

    Attributes:
        session: theirs.
        ids: the jobs, in the order of their ids.
        fetch_nos: the numbers of the fetches.
        outputs: JSON or None.
    """

    session: UUID | None
    ids: list[UUID]
    fetch_nos: list[int]
    outputs: list[str | None]

    @classmethod
    def of(cls, finishes: Iterable[Finish]) -> Completed:
        """Those that are all plain."""
        ordered = sorted(finishes, key=lambda finish: finish.claim.job_id.int)
        if not ordered:
            return NOTHING
        return cls(
            ordered[0].claim.session,
            [finish.claim.job_id for finish in ordered],
            [finish.claim.fetch_no for finish in ordered],
            [None if finish.output is None else finish.output.decode() for finish in ordered],
        )

    def values(self) -> dict[str, Any]:
        """The parameters of :func:`completing`."""
        return {
            "done_ids": self.ids,
            "fetch_nos": self.fetch_nos,
            "outputs": self.outputs,
            "done_most": len(self.ids),
            "owner": self.session,
        }

    def left(self, done: Sequence[Any] | None) -> frozenset[UUID]:
        """Those that are not completed, if these are; None: all are."""
        return NONE if done is None else frozenset(self.ids).difference(map(_as_id, done))


def _as_id(raw: UUID | str) -> UUID:
    return UUID(raw) if isinstance(raw, str) else raw


NOTHING: Final = Completed(None, [], [], [])
NONE: Final[frozenset[UUID]] = frozenset()


class PostgresFinishing(Finishing):
    """``finish_many`` and ``mark_many``: what is plain goes in one statement."""

    def __init__(self, dialect: PostgresDialect, codec: RowCodec, groups: Groups) -> None:
        super().__init__(dialect, codec, groups)
        self._time = dialect.time
        select = "SELECT id FROM done"
        self._complete_free = dialect.statement(f"WITH {completing(dialect)} {select}")
        self._complete_held = dialect.statement(
            f"WITH {completing(dialect, 'FOR UPDATE')} {select}"
        )

    def finish_many(self, finishes: Sequence[Finish], *, wait: bool = True) -> Op[list[Outcome]]:
        """See :meth:`Finishing.finish_many`."""
        complete = self._complete_held if wait else self._complete_free
        outcomes: list[Outcome | None] = [None] * len(finishes)
        plain = plain_completions(finishes)
        if plain:
            completed = Completed.of(finishes[n] for n in plain)
            values = {**completed.values(), "now": self._time()}
            if len(plain) == len(finishes):
                answer = yield complete.alone(**values)
            else:
                answer = yield complete(**values)
            rows = answer.rows
            left_out = completed.left(None if len(rows) == len(plain) else [row[0] for row in rows])
            for n in plain:
                if not left_out or finishes[n].claim.job_id not in left_out:
                    outcomes[n] = COMPLETED
        left = [n for n, outcome in enumerate(outcomes) if outcome is None]
        if left:
            now = yield from self.dialect.now()
            yield from self._finish_others(finishes, left, outcomes, now, wait=wait)
        return [outcome for outcome in outcomes if outcome is not None]
