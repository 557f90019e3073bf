"""Reading jobs: by id, by claim, by filter."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from goncordia.driver import JobRow, JobState, ListFilter, Page
from goncordia.errors import InvalidCursorError
from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import ROW_OF_J, Topic
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op, Sql
from goncordia_sql.states import Stored

__all__ = ["Read"]

_ID_BYTES: Final = 16
_DIGEST_BYTES: Final = 8
_MOST_SHAPES: Final = 200
_WAITING_NOW: Final = f"j.state <= {Stored.PARKED} AND j.run_at <= :now"
_WAITING_LATER: Final = f"j.state <= {Stored.PARKED} AND j.run_at > :now AND j.failed ="
_STATES: Final = {
    JobState.AVAILABLE: f"({_WAITING_NOW})",
    JobState.SCHEDULED: f"({_WAITING_LATER} 0)",
    JobState.RETRYABLE: f"({_WAITING_LATER} 1)",
    JobState.RUNNING: f"j.state = {Stored.RUNNING}",
    JobState.COMPLETED: f"j.state = {Stored.COMPLETED}",
    JobState.DISCARDED: f"j.state = {Stored.DISCARDED}",
    JobState.CANCELLED: f"j.state = {Stored.CANCELLED}",
}


class Read(Topic):
    """Everything that only looks."""

    def __init__(self, dialect: Dialect, codec: RowCodec) -> None:
        super().__init__(dialect, codec)
        self._get = dialect.sql(f"""
            SELECT k.n, {ROW_OF_J} FROM {dialect.each_id(":ids")} AS k
            JOIN {dialect.job} j ON j.id = k.id
            """)
        held = f"""
            SELECT {ROW_OF_J} FROM {dialect.job} j
            WHERE j.state = {Stored.RUNNING} AND j.session = :session
            """
        self._held = dialect.sql(f"{held} ORDER BY j.fetch_no, j.id LIMIT :most")
        self._held_of_fetch = dialect.sql(
            f"{held} AND j.fetch_no = :fetch_no ORDER BY j.id LIMIT :most"
        )
        self._filtered: dict[tuple[Any, ...], Sql] = {}

    def get_many(self, ids: Sequence[UUID]) -> Op[list[JobRow | None]]:
        """See :meth:`BaseExecutor.get_many`."""
        now = yield from self.dialect.now()
        found: list[JobRow | None] = [None] * len(ids)
        for n, *raw in (yield self._get(ids=self.dialect.ids(ids))).rows:
            found[n] = self.codec.job(raw, now)
        return found

    def held(self, session: UUID, fetch_no: int | None, limit: int) -> Op[list[JobRow]]:
        """See :meth:`BaseExecutor.held`."""
        now = yield from self.dialect.now()
        values: dict[str, Any] = {"session": self.dialect.id_in(session), "most": limit}
        if fetch_no is None:
            found = yield self._held(**values)
        else:
            found = yield self._held_of_fetch(fetch_no=fetch_no, **values)
        return self.codec.jobs(found.rows, now)

    # ---------------------------------------------------------------- by filter

    def list_jobs(self, where: ListFilter, page: bytes | None, limit: int) -> Op[Page]:
        """See :meth:`BaseExecutor.list_jobs`."""
        digest = _digest(where)
        below = None if page is None else _position(page, digest)
        now = yield from self.dialect.now()
        values = self._values(where, now)
        if below is not None:
            values["below"] = self.dialect.id_in(below)
        sql = self._sql("list", where, paged=below is not None)
        rows = (yield sql(most=limit + 1, **values)).rows
        jobs = self.codec.jobs(rows[:limit], now)
        following = jobs[-1].id.bytes + digest if len(rows) > limit and jobs else None
        return Page(jobs, following)

    def count(self, where: ListFilter) -> Op[int]:
        """See :meth:`BaseExecutor.count`."""
        now = yield from self.dialect.now()
        rows = (yield self._sql("count", where)(**self._values(where, now))).rows
        return int(rows[0][0])

    def _sql(self, what: str, where: ListFilter, *, paged: bool = False) -> Sql:
        """The statement for this filter; one for every combination of its fields."""
        shape = (
            what,
            paged,
            where.states,
            bool(where.kinds),
            bool(where.queues),
            len(where.tags),
            where.group is not None,
            where.created_from is not None,
            where.created_until is not None,
        )
        sql = self._filtered.get(shape)
        if sql is None:
            if len(self._filtered) >= _MOST_SHAPES:
                self._filtered.clear()
            sql = self._filtered[shape] = self._render(what, where, paged=paged)
        return sql

    def _render(self, what: str, where: ListFilter, *, paged: bool) -> Sql:
        dialect = self.dialect
        conditions: list[str] = []
        if paged:
            conditions.append("j.id < :below")
        if where.states:
            states = " OR ".join(_STATES[state] for state in sorted(where.states))
            conditions.append(f"({states})")
        if where.kinds:
            conditions.append(f"j.kind IN (SELECT value FROM {dialect.each_text(':kinds')} AS k)")
        if where.queues:
            conditions.append(f"j.queue IN (SELECT value FROM {dialect.each_text(':queues')} AS q)")
        conditions += [
            dialect.has_tag("j.tags", f":tag{number}") for number in range(len(where.tags))
        ]
        if where.group is not None:
            conditions.append("j.group_name = :group_name")
        if where.created_from is not None:
            conditions.append("j.created_at >= :created_from")
        if where.created_until is not None:
            conditions.append("j.created_at < :created_until")
        filtered = f"FROM {dialect.job} j"
        if conditions:
            filtered += f" WHERE {' AND '.join(conditions)}"
        if what == "count":
            return dialect.sql(f"SELECT count(*) {filtered}")
        return dialect.sql(f"SELECT {ROW_OF_J} {filtered} ORDER BY j.id DESC LIMIT :most")

    def _values(self, where: ListFilter, now: Any) -> dict[str, Any]:
        values: dict[str, Any] = {
            "now": now,
            "kinds": self.dialect.texts(sorted(where.kinds)),
            "queues": self.dialect.texts(sorted(where.queues)),
            "group_name": where.group,
            "created_from": self.times.encode_optional(where.created_from),
            "created_until": self.times.encode_optional(where.created_until),
        }
        for number, tag in enumerate(sorted(where.tags)):
            values[f"tag{number}"] = tag
        return values


def _digest(where: ListFilter) -> bytes:
    """Tells one filter from another, so that a cursor is not used with a wrong one."""
    encoded = msgspec.json.encode(where, order="deterministic")
    return hashlib.blake2b(encoded, digest_size=_DIGEST_BYTES).digest()


def _position(page: bytes, digest: bytes) -> UUID:
    if len(page) != _ID_BYTES + _DIGEST_BYTES:
        raise InvalidCursorError("page: it was not given by this driver")
    if page[_ID_BYTES:] != digest:
        raise InvalidCursorError("page: it was given for a list with other filters")
    return UUID(bytes=page[:_ID_BYTES])
