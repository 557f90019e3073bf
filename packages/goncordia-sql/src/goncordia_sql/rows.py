"""A job's row: its columns, and how it becomes a :class:`JobRow`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from goncordia.driver import At, AttemptError, Claim, JobRow, JobState, NewJob, UniqueHold
from goncordia_sql.dialect import Dialect
from goncordia_sql.states import Hold, Stored, reported

__all__ = ["INSERTED", "READY_ROW", "ROW", "RowCodec"]

ROW: Final = (
    "id", "kind", "queue", "nice", "run_at", "args", "content", "payload_version", "max_attempts",
    "timeout", "tags", "meta", "unique_key", "unique_hold", "unique_until", "group_name",
    "group_limit", "state", "attempt", "worker_id", "session", "fetch_no", "started",
    "cancel_requested", "failed", "created_at", "claimed_at", "finished_at", "errors",
    "checkpoint", "output",
)  # fmt: skip
"""The columns that a job is read from, in the order in which :class:`RowCodec` takes them."""

READY_ROW: Final = (
    "id", "kind", "queue", "nice", "run_at", "args", "content", "payload_version", "max_attempts",
    "timeout", "tags", "meta", "unique_key", "unique_hold", "unique_until", "group_name",
    "group_limit", "attempt", "created_at", "errors", "checkpoint",
)  # fmt: skip
"""The columns that a fetch reads. The others are empty in a job that waits, or the claim sets them.

A tenth of a microsecond for each column of each job that is worked: it adds up.
"""

INSERTED: Final = (
    "id", "args", "state", "run_at", "created_at", "kind", "queue", "nice", "content",
    "payload_version", "max_attempts", "timeout", "tags", "meta", "unique_key", "held_key",
    "unique_hold", "unique_until", "group_name", "group_limit",
)  # fmt: skip
"""The columns that an insert writes, in the order of :meth:`RowCodec.values`."""

_encode: Final = msgspec.json.Encoder().encode
_decode_tags: Final = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_meta: Final = msgspec.json.Decoder(dict[str, str]).decode
_decode_errors: Final = msgspec.json.Decoder(tuple[AttemptError, ...]).decode

_HOLDS: Final = {"active": Hold.ACTIVE, "until_deleted": Hold.UNTIL_DELETED}
_RUNNING: Final = Stored.RUNNING
_ACTIVE: Final = Hold.ACTIVE
_CLAIMED: Final = JobState.RUNNING


class RowCodec:
    """Encodes and decodes rows for one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._times = dialect.times

    # ---------------------------------------------------------------- in

    def values(self, job: NewJob, now: Any) -> tuple[Any, ...]:
        """The values of the ``INSERTED`` columns."""
        return (
            self._dialect.id_in(job.id),
            self._dialect.payload_in(job.args, job.content),
            *self.shared_values(job, now),
        )

    def shared_values(self, job: NewJob, now: Any) -> tuple[Any, ...]:
        """The values of the ``INSERTED`` columns after id and args."""
        run_at = self._times.resolve(job.run_at, now)
        state = Stored.READY if run_at <= now else Stored.LATER
        return (
            state.value,
            run_at,
            now,
            *self.given_values(job),
            job.unique_key,
            job.unique_key,
            *self.hold_values(job),
        )

    def given_values(self, job: NewJob) -> tuple[Any, ...]:
        """The values of the columns from ``kind`` to ``meta``, in the order of ``INSERTED``."""
        text_in = self._dialect.text_in
        return (
            job.kind,
            job.queue,
            -job.priority,
            job.content,
            job.payload_version,
            job.max_attempts,
            job.timeout,
            text_in(_encode(job.tags)) if job.tags else None,
            text_in(_encode(job.meta)) if job.meta else None,
        )

    def hold_values(self, job: NewJob) -> tuple[Any, ...]:
        """The values of the columns from ``unique_hold`` on, in the order of ``INSERTED``."""
        until = None
        if isinstance(job.unique_hold, At):
            hold, until = Hold.UNTIL_TIME, self._times.encode(job.unique_hold.when)
        else:
            hold = _HOLDS[job.unique_hold]
        return (hold.value, until, job.group, job.group_limit)

    def errors_in(self, errors: Sequence[AttemptError]) -> Any:
        """The stored form of a job's errors."""
        return self._dialect.text_in(_encode(errors))

    # ---------------------------------------------------------------- out

    def errors_out(self, raw: Any) -> tuple[AttemptError, ...]:
        """A job's errors from their stored form."""
        return () if raw is None else _decode_errors(raw)

    def jobs(self, rows: Sequence[Sequence[Any]], now: Any) -> list[JobRow]:
        """As :meth:`job`, of many rows."""
        return [self.job(raw, now) for raw in rows]

    def claimed(
        self, rows: Sequence[Sequence[Any]], now: Any, session: UUID, fetch_no: int, worker_id: str
    ) -> list[JobRow]:
        """The jobs of rows of ``READY_ROW``, which were claimed since they were read.

        Args:
            rows: as they were read.
            now: the stored time of the claim.
            session: who claimed them.
            fetch_no: by which fetch.
            worker_id: under which name.
        """
        id_out, text_out = self._dialect.id_out, self._dialect.text_out
        decode = self._times.decode
        claimed_at = decode(now)
        # Jobs that came together have a time in common.
        time = at = None
        jobs: list[JobRow] = []
        for (
            raw_id, kind, queue, nice, run_at, args, content, payload_version, max_attempts,
            timeout, tags, meta, key, hold, until, group, group_limit, attempt, created_at,
            errors, checkpoint,
        ) in rows:  # fmt: skip
            job_id = id_out(raw_id)
            if created_at != time or at is None:
                time, at = created_at, decode(created_at)
            jobs.append(
                JobRow(
                    job_id,
                    kind,
                    queue,
                    -nice,
                    at if run_at == created_at else decode(run_at),
                    text_out(args),
                    content,
                    payload_version,
                    max_attempts,
                    timeout,
                    () if tags is None else _decode_tags(tags),
                    {} if meta is None else _decode_meta(meta),
                    key,
                    "active" if hold == _ACTIVE else self._hold(hold, until),
                    group,
                    group_limit,
                    _CLAIMED,
                    attempt + 1,
                    worker_id,
                    Claim(job_id, session, fetch_no),
                    False,
                    False,
                    at,
                    claimed_at,
                    None,
                    () if errors is None else _decode_errors(errors),
                    None if checkpoint is None else text_out(checkpoint),
                    None,
                )
            )
        return jobs

    def job(self, raw: Sequence[Any], now: Any) -> JobRow:
        """The job of a row of ``ROW``, as it is reported at this time."""
        (
            raw_id, kind, queue, nice, run_at, args, content, payload_version, max_attempts,
            timeout, tags, meta, key, hold, until, group, group_limit, state, attempt, worker_id,
            session, fetch_no, started, cancel_requested, failed, created_at, claimed_at,
            finished_at, errors, checkpoint, output,
        ) = raw  # fmt: skip
        dialect, decode = self._dialect, self._times.decode
        job_id = dialect.id_out(raw_id)
        claim: Claim | None = None
        if state == _RUNNING:
            claim = Claim(job_id, dialect.id_out(session), fetch_no)
        created = decode(created_at)
        return JobRow(
            job_id,
            kind,
            queue,
            -nice,
            created if run_at == created_at else decode(run_at),
            dialect.text_out(args),
            content,
            payload_version,
            max_attempts,
            timeout,
            () if tags is None else _decode_tags(tags),
            {} if meta is None else _decode_meta(meta),
            key,
            "active" if hold == Hold.ACTIVE else self._hold(hold, until),
            group,
            group_limit,
            reported(state, run_at, failed, now),
            attempt,
            worker_id,
            claim,
            started == 1,
            cancel_requested == 1,
            created,
            None if claimed_at is None else decode(claimed_at),
            None if finished_at is None else decode(finished_at),
            () if errors is None else _decode_errors(errors),
            None if checkpoint is None else dialect.text_out(checkpoint),
            None if output is None else dialect.text_out(output),
        )

    def _hold(self, hold: int, until: Any) -> UniqueHold:
        return "until_deleted" if hold == Hold.UNTIL_DELETED else At(self._times.decode(until))
