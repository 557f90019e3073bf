"""Completing in one statement what another has found to be no exception."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from goncordia.driver import Finish, Outcome
from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.finish import COMPLETED, FREE_KEY, Finishing, plain_completions
from goncordia_sql.ops.groups import Groups
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op
from goncordia_sql.states import Stored

__all__ = ["CheckedFinishing"]

_FEW: Final = 2
"""Fewer plain ones go the way of all others, which is as short for them."""


class CheckedFinishing(Finishing):
    """Looks for exceptions among the plain ends, and completes the others all at once."""

    def __init__(self, dialect: Dialect, codec: RowCodec, groups: Groups) -> None:
        super().__init__(dialect, codec, groups)
        job, each_id = dialect.job, dialect.each_id(":ids")
        each_claim = dialect.each_number(":ids", ":fetch_nos")
        self._exceptions = dialect.sql(f"""
            SELECT k.n FROM {each_claim} AS k LEFT JOIN {job} j ON j.id = k.id
            WHERE j.id IS NULL OR j.state <> {Stored.RUNNING} OR j.fetch_no <> k.value
            OR j.session <> :session OR j.group_name IS NOT NULL
            """)
        self._complete = dialect.sql(f"""
            UPDATE {job} SET state = {Stored.COMPLETED}, finished_at = :now, failed = 0,
                output = NULL, {FREE_KEY}
            WHERE id IN (SELECT k.id FROM {each_id} AS k)
            """)
        self._complete_with_output = dialect.sql(f"""
            UPDATE {job} SET state = {Stored.COMPLETED}, finished_at = :now, failed = 0,
                output = k.value, {FREE_KEY}
            FROM {dialect.each_pair(":ids", ":outputs")} AS k WHERE {job}.id = k.id
            """)

    def finish_many(self, finishes: Sequence[Finish], *, wait: bool = True) -> Op[list[Outcome]]:
        """See :meth:`BaseExecutor.finish_many`.

        Args:
            finishes: what to end.
            wait: wait for transactions that hold the jobs; else those are ``BUSY``.
        """
        if not finishes:
            return []
        now = yield from self.dialect.now()
        outcomes: list[Outcome | None] = [None] * len(finishes)
        plain = plain_completions(finishes)
        if len(plain) >= _FEW:
            yield from self._finish_plain(finishes, plain, outcomes, now)
        left = [n for n, outcome in enumerate(outcomes) if outcome is None]
        if left:
            yield from self._finish_others(finishes, left, outcomes, now, wait=wait)
        return [outcome for outcome in outcomes if outcome is not None]

    def _finish_plain(
        self, finishes: Sequence[Finish], plain: list[int], outcomes: list[Outcome | None], now: Any
    ) -> Op[None]:
        """Complete those that are no exception; the outcomes of the others stay open."""
        dialect = self.dialect
        claims = [finishes[n].claim for n in plain]
        ids = dialect.ids([claim.job_id for claim in claims])
        exceptions = yield self._exceptions(
            ids=ids,
            fetch_nos=dialect.numbers([claim.fetch_no for claim in claims]),
            session=dialect.id_in(claims[0].session),
        )
        if exceptions.rows:
            left = {n for (n,) in exceptions.rows}
            plain = [n for position, n in enumerate(plain) if position not in left]
        silent = [n for n in plain if finishes[n].output is None]
        if silent:
            if len(silent) < len(claims):
                ids = dialect.ids([finishes[n].claim.job_id for n in silent])
            yield self._complete(now=now, ids=ids)
        if len(silent) < len(plain):
            telling = [finishes[n] for n in plain if finishes[n].output is not None]
            yield self._complete_with_output(
                now=now,
                ids=dialect.ids([finish.claim.job_id for finish in telling]),
                outputs=dialect.texts([(finish.output or b"").decode() for finish in telling]),
            )
        for n in plain:
            outcomes[n] = COMPLETED
