"""Ending claims and noting on them: rules 3 and 9 of the contract.

The jobs are read (and locked, where a database has row locks), what becomes of each is decided
here, and the decisions are written. Most claims end in the plainest way: completed, by their owner,
without a group. Those go in one statement, each dialect's in its own way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from goncordia.driver import MAX_ERRORS, Finish, JobState, Mark, Outcome
from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import LONGEST_SET, Topic, as_text, fits_set
from goncordia_sql.ops.groups import Groups
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op
from goncordia_sql.states import ENDS, REPORTED, Hold, Stored, reported

__all__ = ["COMPLETED", "FREE_KEY", "Finishing", "plain_completions"]

_DONE: Final = {state: Outcome("DONE", state) for state in JobState}
COMPLETED: Final = _DONE[JobState.COMPLETED]
"""What becomes of a claim that ends in the plainest way."""
_GONE: Final = Outcome("GONE")
_BUSY: Final = Outcome("BUSY")
FREE_KEY: Final = f"held_key = CASE WHEN unique_hold = {Hold.ACTIVE} THEN NULL ELSE held_key END"
"""Part of a statement that ends jobs."""


class _Held:
    """What is known of a job while its claim is being ended."""

    __slots__ = (
        "attempt", "cancel_requested", "ended_fetch_no", "ended_session", "errors", "failed",
        "fetch_no", "group", "run_at", "session", "started", "state",
    )  # fmt: skip

    def __init__(self, row: Sequence[Any]) -> None:
        (
            self.state, self.run_at, self.failed, self.attempt, self.started,
            self.cancel_requested, self.session, self.fetch_no, self.ended_session,
            self.ended_fetch_no, group, self.errors,
        ) = row  # fmt: skip
        self.group = None if group is None else as_text(group)

    def is_claim(self, session: Any, fetch_no: int) -> bool:
        """Whether this claim holds the job."""
        return bool(
            self.state == Stored.RUNNING and self.fetch_no == fetch_no and self.session == session
        )

    def was_claim(self, session: Any, fetch_no: int) -> bool:
        """Whether this claim was the last one that ended."""
        if self.state == Stored.RUNNING:
            return bool(self.ended_fetch_no == fetch_no and self.ended_session == session)
        return bool(self.fetch_no == fetch_no and self.session == session)

    def reported(self, now: Any) -> JobState:
        """The job's state."""
        return reported(self.state, self.run_at, self.failed, now)


class Finishing(Topic, ABC):
    """``finish_many`` and ``mark_many``: what every dialect's have in common."""

    def __init__(self, dialect: Dialect, codec: RowCodec, groups: Groups) -> None:
        super().__init__(dialect, codec)
        self._groups = groups
        job, each_id = dialect.job, dialect.each_id(":ids")
        # The columns in the order of _Held. Texts are read as bytes: the statement also runs on
        # connections of the user's, whose settings for texts are theirs.
        held = f"""
            SELECT k.n, j.state, j.run_at, j.failed, j.attempt, j.started, j.cancel_requested,
                j.session, j.fetch_no, j.ended_session, j.ended_fetch_no,
                {dialect.bytes_of("j.group_name")}, {dialect.bytes_of("j.errors")}
            FROM {each_id} AS k JOIN {job} j ON j.id = k.id ORDER BY j.id
            """
        self._held = dialect.sql(f"{held} {dialect.lock('j')}")
        self._held_free = dialect.sql(f"{held} {dialect.lock_free('j')}")
        self._there = dialect.sql(
            f"SELECT k.n FROM {each_id} AS k WHERE k.id IN (SELECT id FROM {job})"
        )
        # These three go in batches, the values in the order of the parameters.
        self._end = dialect.sql(f"""
            UPDATE {job} SET state = :state, failed = :failed, attempt = :attempt,
                errors = coalesce(:errors, errors), checkpoint = coalesce(:checkpoint, checkpoint),
                finished_at = :now, output = :output, {FREE_KEY}
            WHERE id = :id
            """)
        self._return = dialect.sql(f"""
            UPDATE {job} SET state = :state, failed = :failed, attempt = :attempt,
                errors = coalesce(:errors, errors), checkpoint = coalesce(:checkpoint, checkpoint),
                run_at = :run_at
            WHERE id = :id
            """)
        self._note = dialect.sql(f"""
            UPDATE {job} SET started = :started, checkpoint = coalesce(:checkpoint, checkpoint)
            WHERE id = :id
            """)

    # ---------------------------------------------------------------- finish

    @abstractmethod
    def finish_many(self, finishes: Sequence[Finish], *, wait: bool = True) -> Op[list[Outcome]]:
        """See :meth:`BaseExecutor.finish_many`.

        Args:
            finishes: what to end.
            wait: wait for transactions that hold the jobs; else those are ``BUSY``.
        """

    def _finish_others(
        self,
        finishes: Sequence[Finish],
        left: list[int],
        outcomes: list[Outcome | None],
        now: Any,
        *,
        wait: bool,
    ) -> Op[None]:
        """One by one, each as the ones before it left the job; then all is written."""
        ids = [finishes[n].claim.job_id for n in left]
        jobs, busy = yield from self._read(ids, wait=wait)
        groups = {held.group for held in jobs.values() if held.group is not None}
        if groups:
            yield from self._groups.enter(groups)
        freed: Counter[str] = Counter()
        ended: list[tuple[Any, ...]] = []
        returned: list[tuple[Any, ...]] = []
        for n in left:
            finish = finishes[n]
            held = jobs.get(finish.claim.job_id)
            if held is None:
                outcomes[n] = _BUSY if finish.claim.job_id in busy else _GONE
                continue
            outcome = self._refusal(finish, held, now)
            if outcome is None:
                outcome = self._finish(finish, held, now, ended, returned)
                if held.group is not None:
                    freed[held.group] += 1
            outcomes[n] = outcome
        if ended:
            yield self._end.batch(ended)
        if returned:
            yield self._return.batch(returned)
        if freed:
            yield from self._groups.unpark(freed)

    def _read(
        self, ids: Sequence[UUID], *, wait: bool
    ) -> Op[tuple[dict[UUID, _Held], frozenset[UUID]]]:
        """The jobs, and which of the others are there, but held by somebody."""
        held = self._held if wait else self._held_free
        rows = (yield held(ids=self.dialect.ids(ids))).rows
        jobs: dict[UUID, _Held] = {ids[row[0]]: _Held(row[1:]) for row in rows}
        if wait or len(jobs) == len(ids):
            return jobs, frozenset()
        there = yield self._there(ids=self.dialect.ids(ids))
        found = (ids[int(row[0])] for row in there.rows)
        return jobs, frozenset(each for each in found if each not in jobs)

    def _refusal(self, finish: Finish, held: _Held, now: Any) -> Outcome | None:
        """Why the claim cannot be ended; None: it can."""
        session, fetch_no = self.dialect.id_in(finish.claim.session), finish.claim.fetch_no
        if not held.is_claim(session, fetch_no):
            ended = held.was_claim(session, fetch_no)
            return Outcome("ALREADY" if ended else "STALE", held.reported(now))
        if finish.rescue and finish.to == "release" and held.started:
            return Outcome("STALE", JobState.RUNNING)
        return None

    def _finish(
        self,
        finish: Finish,
        held: _Held,
        now: Any,
        ended: list[tuple[Any, ...]],
        returned: list[tuple[Any, ...]],
    ) -> Outcome:
        """Decide, and add to what is written."""
        text_in = self.dialect.text_in
        job_id = self.dialect.id_in(finish.claim.job_id)
        held.failed = int(finish.to in {"retry", "discard"})
        if finish.to in {"release", "snooze"}:
            held.attempt -= 1
        errors = None
        if finish.error is not None:
            all_errors = (*self.codec.errors_out(held.errors), finish.error)[-MAX_ERRORS:]
            errors = held.errors = self.codec.errors_in(all_errors)
        checkpoint = None if finish.checkpoint is None else text_in(finish.checkpoint)
        end = ENDS.get(finish.to)
        if end is None and held.cancel_requested:
            end = Stored.CANCELLED
        if end is not None:
            completed = finish.to == "complete" and finish.output is not None
            output = text_in(finish.output) if completed and finish.output is not None else None
            held.state = end.value
            ended.append(
                (held.state, held.failed, held.attempt, errors, checkpoint, now, output, job_id)
            )
            return _DONE[REPORTED[end]]
        if finish.to != "release" or finish.when is not None:
            held.run_at = self.times.resolve(finish.when, now)
        held.state = (Stored.READY if held.run_at <= now else Stored.LATER).value
        returned.append(
            (held.state, held.failed, held.attempt, errors, checkpoint, held.run_at, job_id)
        )
        return _DONE[held.reported(now)]

    # ---------------------------------------------------------------- mark

    def mark_many(self, marks: Sequence[Mark]) -> Op[list[Outcome]]:
        """See :meth:`BaseExecutor.mark_many`."""
        if not marks:
            return []
        now = yield from self.dialect.now()
        jobs, busy = yield from self._read([mark.claim.job_id for mark in marks], wait=False)
        outcomes: list[Outcome] = []
        notes: list[tuple[Any, ...]] = []
        for mark in marks:
            held = jobs.get(mark.claim.job_id)
            if held is None:
                outcomes.append(_BUSY if mark.claim.job_id in busy else _GONE)
                continue
            session = self.dialect.id_in(mark.claim.session)
            if not held.is_claim(session, mark.claim.fetch_no):
                outcomes.append(Outcome("STALE", held.reported(now)))
                continue
            held.started = int(bool(held.started) or mark.started)
            checkpoint = mark.checkpoint
            stored = None if checkpoint is None else self.dialect.text_in(checkpoint)
            notes.append((held.started, stored, self.dialect.id_in(mark.claim.job_id)))
            outcomes.append(_DONE[JobState.RUNNING])
        if notes:
            yield self._note.batch(notes)
        return outcomes


def plain_completions(finishes: Sequence[Finish]) -> list[int]:
    """The numbers of those that only complete, all of one session; none if a job comes twice."""
    session: UUID | None = None
    plain: list[int] = []
    size = 0
    for n, finish in enumerate(finishes):
        if finish.to != "complete" or finish.error is not None or finish.checkpoint is not None:
            continue
        if finish.output is not None:
            size += len(finish.output)
            if size > LONGEST_SET or not fits_set(finish.output):
                continue
        if session is None:
            session = finish.claim.session
        elif finish.claim.session is not session and finish.claim.session != session:
            continue
        plain.append(n)
    # By the number in an id: its hash is ready made.
    twice = len({finish.claim.job_id.int for finish in finishes}) < len(finishes)
    return [] if twice else plain
