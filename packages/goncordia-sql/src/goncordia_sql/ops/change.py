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
from goncordia_sql.statement import Op, Sql
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


class _Writes:
    """What is to be written, in order; the same statement many times goes as one batch."""

    def __init__(self) -> None:
        self._pending: list[tuple[Sql, list[tuple[Any, ...]]]] = []

    def add(self, sql: Sql, *values: Any) -> None:
        """Write this later, the values in the order of the statement's parameters."""
        if not self._pending or self._pending[-1][0] is not sql:
            self._pending.append((sql, []))
        self._pending[-1][1].append(values)

    def flush(self) -> Op[None]:
        """Write now."""
        pending, self._pending = self._pending, []
        for sql, rows in pending:
            yield sql.batch(rows)


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
        # These are written together, the values in the order of the parameters.
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
        writes = _Writes()
        left: Counter[str] = Counter()
        for change in changes:
            job = jobs.get(change.id)
            if job is None:
                answers.append(_GONE)
                continue
            was_ready = job.state == Stored.READY
            answer = yield from self._change(change, job, now, writes)
            answers.append(answer)
            if answer.status == "CHANGED":
                if change.action == "delete":
                    del jobs[change.id]
                # Also when it is ready again: it has another place now.
                if was_ready and job.group is not None:
                    left[job.group] += 1
        yield from writes.flush()
        if left:
            yield from self._groups.unpark(left)
        return answers

    def _change(self, change: Change, job: _Job, now: Any, writes: _Writes) -> Op[Changed]:
        match change.action:
            case "cancel":
                return self._do_cancel(job, now, writes)
            case "retry":
                return (yield from self._do_retry(job, now, writes))
            case "reschedule":
                run_at = self.times.resolve(change.when, now)
                return self._do_reschedule(job, run_at, now, writes)
            case "delete":
                if job.state == Stored.RUNNING:
                    return Changed("CONFLICT", JobState.RUNNING)
                writes.add(self._delete, job.id)
                return Changed("CHANGED")

    def _do_cancel(self, job: _Job, now: Any, writes: _Writes) -> Changed:
        if job.state in WAITING:
            writes.add(self._cancel, now, job.id)
            job.state = Stored.CANCELLED.value
            return Changed("CHANGED", JobState.CANCELLED)
        if job.state == Stored.RUNNING:
            writes.add(self._request_cancel, job.id)
            return Changed("REQUESTED", JobState.RUNNING)
        return Changed(
            "ALREADY" if job.state == Stored.CANCELLED else "CONFLICT", job.reported(now)
        )

    def _do_retry(self, job: _Job, now: Any, writes: _Writes) -> Op[Changed]:
        if job.state == Stored.RUNNING:
            return Changed("CONFLICT", JobState.RUNNING)
        if job.state in WAITING:
            if job.run_at <= now:
                return Changed("ALREADY", JobState.AVAILABLE)
            self._do_move(job, now, now, writes)
            return Changed("CHANGED", JobState.AVAILABLE)
        if job.key is not None and job.hold == Hold.ACTIVE:
            # An earlier change of this request may have freed the key.
            yield from writes.flush()
            for holder, hold, until in (yield self._key_holder(key=job.key)).rows:
                if hold != Hold.UNTIL_TIME or now < until:
                    return Changed("CONFLICT", job.reported(now), self.dialect.id_out(holder))
                yield self._set_key(id=holder, key=None)
            yield self._set_key(id=job.id, key=job.key)
        if job.max_attempts is not None:
            job.max_attempts = max(job.max_attempts, job.attempt + 1)
        writes.add(self._revive, now, job.max_attempts, job.id)
        job.state, job.run_at = Stored.READY.value, now
        return Changed("CHANGED", JobState.AVAILABLE)

    def _do_reschedule(self, job: _Job, run_at: Any, now: Any, writes: _Writes) -> Changed:
        if job.state not in WAITING:
            return Changed("CONFLICT", job.reported(now))
        if job.run_at == run_at:
            return Changed("ALREADY", job.reported(now))
        self._do_move(job, run_at, now, writes)
        return Changed("CHANGED", job.reported(now))

    def _do_move(self, job: _Job, run_at: Any, now: Any, writes: _Writes) -> None:
        job.state = (Stored.READY if run_at <= now else Stored.LATER).value
        job.run_at = run_at
        writes.add(self._move, job.state, run_at, job.id)
