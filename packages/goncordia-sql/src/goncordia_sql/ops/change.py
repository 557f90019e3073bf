"""What an administrator asks of single jobs: cancel, retry, reschedule, delete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from goncordia.driver import Change, Changed, JobState
from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import Topic, as_text
from goncordia_sql.ops.groups import Groups
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op
from goncordia_sql.states import WAITING, Hold, Stored, reported

__all__ = ["Changing"]

_GONE = Changed("GONE")


class _Job:
    """What is known of a job while it is being changed."""

    __slots__ = (
        "attempt", "failed", "group", "hold", "id", "key", "max_attempts", "run_at", "state",
    )  # fmt: skip

    def __init__(self, row: Sequence[Any]) -> None:
        (
            self.id, self.state, self.run_at, self.failed, self.attempt, self.max_attempts,
            self.key, self.hold, group,
        ) = row  # fmt: skip
        self.group = None if group is None else as_text(group)

    def reported(self, now: Any) -> JobState:
        """The job's state."""
        return reported(self.state, self.run_at, self.failed, now)


class Changing(Topic):
    """``change_many`` and the cancel inside a transaction."""

    def __init__(self, dialect: Dialect, codec: RowCodec, groups: Groups) -> None:
        super().__init__(dialect, codec)
        self._groups = groups
        job = dialect.job
        # The columns in the order of _Job.
        self._jobs = dialect.sql(f"""
            SELECT k.n, j.id, j.state, j.run_at, j.failed, j.attempt, j.max_attempts, j.unique_key,
                j.unique_hold, {dialect.bytes_of("j.group_name")}
            FROM {dialect.each_id(":ids")} AS k JOIN {job} j ON j.id = k.id
            ORDER BY j.id {dialect.lock("j")}
            """)
        self._cancel = dialect.sql(f"""
            UPDATE {job} SET state = {Stored.CANCELLED}, finished_at = :now,
                held_key = CASE WHEN unique_hold = {Hold.ACTIVE} THEN NULL ELSE held_key END
            WHERE id = :id
            """)
        self._request_cancel = dialect.sql(f"UPDATE {job} SET cancel_requested = 1 WHERE id = :id")
        self._move = dialect.sql(
            f"UPDATE {job} SET state = :state, run_at = :run_at WHERE id = :id"
        )
        self._revive = dialect.sql(f"""
            UPDATE {job} SET state = {Stored.READY}, run_at = :now, finished_at = NULL,
                output = NULL, started = 0, cancel_requested = 0, max_attempts = :max_attempts
            WHERE id = :id
            """)
        self._delete = dialect.sql(f"DELETE FROM {job} WHERE id = :id")
        self._key_holder = dialect.sql(f"""
            SELECT id, unique_hold, unique_until FROM {job} WHERE held_key = :key
            """)
        self._set_key = dialect.sql(f"UPDATE {job} SET held_key = :key WHERE id = :id")

    def cancel_many(self, ids: Sequence[UUID]) -> Op[list[Changed]]:
        """See :meth:`TxExecutor.cancel_many`."""
        return (yield from self.change_many([Change(each, "cancel") for each in ids]))

    def change_many(self, changes: Sequence[Change]) -> Op[list[Changed]]:
        """See :meth:`BaseExecutor.change_many`."""
        if not changes:
            return []
        now = yield from self.dialect.now()
        ids = [change.id for change in changes]
        rows = (yield self._jobs(ids=self.dialect.ids(ids))).rows
        jobs: dict[UUID, _Job] = {ids[row[0]]: _Job(row[1:]) for row in rows}
        answers: list[Changed] = []
        left: Counter[str] = Counter()
        for change in changes:
            job = jobs.get(change.id)
            if job is None:
                answers.append(_GONE)
                continue
            was_ready = job.state == Stored.READY
            answer = yield from self._change(change, job, now)
            answers.append(answer)
            if answer.status == "CHANGED":
                if change.action == "delete":
                    del jobs[change.id]
                # Also when it is ready again: it has another place now.
                if was_ready and job.group is not None:
                    left[job.group] += 1
        if left:
            yield from self._groups.unpark(left)
        return answers

    def _change(self, change: Change, job: _Job, now: Any) -> Op[Changed]:
        match change.action:
            case "cancel":
                return (yield from self._do_cancel(job, now))
            case "retry":
                return (yield from self._do_retry(job, now))
            case "reschedule":
                run_at = self.times.resolve(change.when, now)
                return (yield from self._do_reschedule(job, run_at, now))
            case "delete":
                if job.state == Stored.RUNNING:
                    return Changed("CONFLICT", JobState.RUNNING)
                yield self._delete(id=job.id)
                return Changed("CHANGED")

    def _do_cancel(self, job: _Job, now: Any) -> Op[Changed]:
        if job.state in WAITING:
            yield self._cancel(id=job.id, now=now)
            job.state = Stored.CANCELLED.value
            return Changed("CHANGED", JobState.CANCELLED)
        if job.state == Stored.RUNNING:
            yield self._request_cancel(id=job.id)
            return Changed("REQUESTED", JobState.RUNNING)
        return Changed(
            "ALREADY" if job.state == Stored.CANCELLED else "CONFLICT", job.reported(now)
        )

    def _do_retry(self, job: _Job, now: Any) -> Op[Changed]:
        if job.state == Stored.RUNNING:
            return Changed("CONFLICT", JobState.RUNNING)
        if job.state in WAITING:
            if job.run_at <= now:
                return Changed("ALREADY", JobState.AVAILABLE)
            yield from self._do_move(job, now, now)
            return Changed("CHANGED", JobState.AVAILABLE)
        if job.key is not None and job.hold == Hold.ACTIVE:
            for holder, hold, until in (yield self._key_holder(key=job.key)).rows:
                if hold != Hold.UNTIL_TIME or now < until:
                    return Changed("CONFLICT", job.reported(now), self.dialect.id_out(holder))
                yield self._set_key(id=holder, key=None)
            yield self._set_key(id=job.id, key=job.key)
        if job.max_attempts is not None:
            job.max_attempts = max(job.max_attempts, job.attempt + 1)
        yield self._revive(id=job.id, now=now, max_attempts=job.max_attempts)
        job.state, job.run_at = Stored.READY.value, now
        return Changed("CHANGED", JobState.AVAILABLE)

    def _do_reschedule(self, job: _Job, run_at: Any, now: Any) -> Op[Changed]:
        if job.state not in WAITING:
            return Changed("CONFLICT", job.reported(now))
        if job.run_at == run_at:
            return Changed("ALREADY", job.reported(now))
        yield from self._do_move(job, run_at, now)
        return Changed("CHANGED", job.reported(now))

    def _do_move(self, job: _Job, run_at: Any, now: Any) -> Op[None]:
        job.state = (Stored.READY if run_at <= now else Stored.LATER).value
        job.run_at = run_at
        yield self._move(id=job.id, state=job.state, run_at=run_at)
