"""Sessions, their leases, and who may end those of others. Rule 4 of the contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from goncordia.driver import Beat, Claim, JobRow, SessionInfo
from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import Topic
from goncordia_sql.ops.groups import Groups
from goncordia_sql.rows import ROW, RowCodec
from goncordia_sql.statement import Op
from goncordia_sql.states import Hold, Stored

__all__ = ["Sessions"]


class Sessions(Topic):
    """Every operation is one transaction: a beat and an expiry never overlap."""

    def __init__(self, dialect: Dialect, codec: RowCodec, groups: Groups) -> None:
        super().__init__(dialect, codec)
        self._groups = groups
        job, session = dialect.job, dialect.session
        self._find = dialect.sql(f"""
            SELECT s.lease, s.beat_at, s.since, s.is_open FROM {session} s WHERE s.id = :id
            {dialect.lock("s")}
            """)
        self._open = dialect.sql(f"""
            INSERT INTO {session} (id, worker_id, lease, is_open, opened_at, beat_at, since)
            VALUES (:id, :worker_id, :lease, 1, :now, :now, :now) ON CONFLICT (id) DO NOTHING
            """)
        self._beat = dialect.sql(f"""
            UPDATE {session} SET lease = :lease, beat_at = :now, since = :since WHERE id = :id
            """)
        self._cancels = dialect.sql(f"""
            SELECT id, fetch_no FROM {job}
            WHERE state = {Stored.RUNNING} AND cancel_requested = 1 AND session = :session
            """)
        self._forget = dialect.sql(f"DELETE FROM {session} WHERE id = :id")
        # Of sessions that were silent when they were looked at: unless they have beat since, or
        # are in the middle of it.
        silent = dialect.picked(f"SELECT id FROM {session} WHERE id = :id AND beat_at = :beat_at")
        self._end_silent = dialect.sql(f"UPDATE {session} SET is_open = 0 WHERE id IN {silent}")
        self._forget_silent = dialect.sql(f"DELETE FROM {session} WHERE id IN {silent}")
        self._all = dialect.sql(f"""
            SELECT s.id, s.worker_id, s.is_open, s.opened_at, s.beat_at, s.lease,
                   EXISTS (SELECT 1 FROM {job} j
                           WHERE j.state = {Stored.RUNNING} AND j.session = s.id)
            FROM {session} s ORDER BY s.opened_at, s.id
            """)
        self._groups_held = dialect.sql(f"""
            SELECT group_name, count(*) FROM {job}
            WHERE state = {Stored.RUNNING} AND session = :session AND group_name IS NOT NULL
            GROUP BY group_name
            """)
        self._lock_held = dialect.sql(f"""
            SELECT j.id FROM {job} j WHERE j.state = {Stored.RUNNING} AND j.session = :session
            ORDER BY j.id {dialect.lock("j")}
            """)
        self._cancel_held = dialect.sql(f"""
            UPDATE {job} SET state = {Stored.CANCELLED}, attempt = attempt - 1, failed = 0,
                finished_at = :now,
                held_key = CASE WHEN unique_hold = {Hold.ACTIVE} THEN NULL ELSE held_key END
            WHERE state = {Stored.RUNNING} AND session = :session AND cancel_requested = 1
            """)
        self._release_held = dialect.sql(f"""
            UPDATE {job} SET attempt = attempt - 1, failed = 0,
                state = CASE WHEN run_at <= :now THEN {Stored.READY} ELSE {Stored.LATER} END
            WHERE state = {Stored.RUNNING} AND session = :session
            """)
        self._next_holder = dialect.sql(f"""
            SELECT session FROM {job} WHERE state = {Stored.RUNNING} AND session > :after
            ORDER BY session LIMIT 1
            """)
        self._first_holder = dialect.sql(f"""
            SELECT session FROM {job} WHERE state = {Stored.RUNNING} ORDER BY session LIMIT 1
            """)
        self._held = dialect.sql(f"""
            SELECT {dialect.columns("j", ROW)} FROM {job} j
            WHERE j.state = {Stored.RUNNING} AND j.session = :session
            ORDER BY j.fetch_no, j.id LIMIT :most
            """)

    def session_open(self, session: UUID, worker_id: str, lease: float) -> Op[None]:
        """See :meth:`BaseExecutor.session_open`."""
        now = yield from self.dialect.now()
        raw_id = self.dialect.id_in(session)
        if not (yield self._find(id=raw_id)).rows:
            yield self._open(id=raw_id, worker_id=worker_id, lease=lease, now=now)

    def session_beat(self, session: UUID, lease: float) -> Op[Beat]:
        """See :meth:`BaseExecutor.session_beat`."""
        now = yield from self.dialect.now()
        raw_id = self.dialect.id_in(session)
        found = (yield self._find(id=raw_id)).rows
        if not found or not found[0][3]:
            return Beat(held=False)
        last_lease, beat_at, since, _ = found[0]
        if self.times.seconds(now, beat_at) > last_lease / 2:
            since = now
        yield self._beat(id=raw_id, lease=lease, now=now, since=since)
        cancels = (yield self._cancels(session=raw_id)).rows
        return Beat(
            held=True,
            cancels=tuple(Claim(self.dialect.id_out(each), session, no) for each, no in cancels),
        )

    def session_close(self, session: UUID) -> Op[None]:
        """See :meth:`BaseExecutor.session_close`."""
        raw_id = self.dialect.id_in(session)
        found = (yield self._find(id=raw_id)).rows
        if not found or not found[0][3]:
            return
        now = yield from self.dialect.now()
        yield self._lock_held(session=raw_id)
        freed = {row[0]: row[1] for row in (yield self._groups_held(session=raw_id)).rows}
        if freed:
            yield from self._groups.enter(freed)
        yield self._cancel_held(session=raw_id, now=now)
        yield self._release_held(session=raw_id, now=now)
        yield self._forget(id=raw_id)
        if freed:
            yield from self._groups.unpark(freed)

    def session_list(self) -> Op[list[SessionInfo]]:
        """See :meth:`BaseExecutor.session_list`."""
        sessions: list[SessionInfo] = []
        for raw_id, worker_id, is_open, opened_at, beat_at, lease, holds in (
            yield self._all()
        ).rows:
            if is_open or holds:
                sessions.append(
                    SessionInfo(
                        self.dialect.id_out(raw_id),
                        worker_id,
                        open=bool(is_open),
                        opened_at=self.times.decode(opened_at),
                        beat_at=self.times.decode(beat_at),
                        lease=lease,
                    )
                )
        return sessions

    # ---------------------------------------------------------------- expiry

    def expire(self, session: UUID, limit: int) -> Op[list[JobRow]]:
        """See :meth:`BaseExecutor.expire`."""
        now = yield from self.dialect.now()
        asker = (yield self._find(id=self.dialect.id_in(session))).rows
        if not asker or not self._may_expire(asker[0], now):
            return []
        open_now: set[Any] = set()
        for raw_id, _, is_open, _, beat_at, lease, holds in (yield self._all()).rows:
            if is_open and self.times.seconds(now, beat_at) <= lease:
                open_now.add(raw_id)
            else:
                silent = self._end_silent if holds else self._forget_silent
                if (is_open or not holds) and not (
                    yield silent(id=raw_id, beat_at=beat_at)
                ).changed:
                    open_now.add(raw_id)
        return (yield from self._orphans(open_now, limit, now))

    def _may_expire(self, asker: Sequence[Any], now: Any) -> bool:
        lease, beat_at, since, is_open = asker
        seconds = self.times.seconds
        return bool(is_open and seconds(now, beat_at) <= lease / 2 and seconds(now, since) >= lease)

    def _orphans(self, open_now: set[Any], limit: int, now: Any) -> Op[list[JobRow]]:
        """Running jobs of any session that is not open, also of one that was never opened."""
        jobs: list[JobRow] = []
        found = (yield self._first_holder()).rows
        while found and len(jobs) < limit:
            holder = found[0][0]
            if holder not in open_now:
                held = yield self._held(session=holder, most=limit - len(jobs))
                jobs += self.codec.jobs(held.rows, now)
            found = (yield self._next_holder(after=holder)).rows
        return jobs
