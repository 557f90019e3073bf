"""Listing and counting jobs by filter.

A list is by id, newest first. There are two ways to it: down the ids, which is right when much of
what is met passes the filter; or through the indexes of the stored states, and then sorted, which
is right when few jobs are in those states at all. A look at how many those are decides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal
from uuid import UUID

import msgspec

from goncordia.driver import JobState, ListFilter, Page
from goncordia.errors import InvalidCursorError
from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import Topic
from goncordia_sql.rows import ROW, RowCodec
from goncordia_sql.statement import Op, Sql
from goncordia_sql.states import WAITING, Stored

__all__ = ["Listing"]

_ID_BYTES: Final = 16
_DIGEST_BYTES: Final = 8
_MOST_SHAPES: Final = 200
_FEW: Final = 1000
"""Jobs that are quicker to sort than to look for."""

_DUE: Final = {
    JobState.AVAILABLE: "j.run_at <= :now",
    JobState.SCHEDULED: "(j.run_at > :now AND j.failed = 0)",
    JobState.RETRYABLE: "(j.run_at > :now AND j.failed = 1)",
}
_OTHERS: Final = {
    JobState.RUNNING: Stored.RUNNING,
    JobState.COMPLETED: Stored.COMPLETED,
    JobState.DISCARDED: Stored.DISCARDED,
    JobState.CANCELLED: Stored.CANCELLED,
}
# Said twice for an index that holds exactly these.
_DEAD: Final = {Stored.DISCARDED, Stored.CANCELLED}
_UNFINISHED: Final = (*WAITING, Stored.RUNNING)

_What = Literal["count", "by id", "by state"]


class Listing(Topic):
    """``list_jobs`` and ``count``."""

    def __init__(self, dialect: Dialect, codec: RowCodec) -> None:
        super().__init__(dialect, codec)
        self._how_many = dialect.sql(
            " UNION ALL ".join(
                f"""SELECT {state}, count(*) FROM (
                    SELECT 1 FROM {dialect.job} WHERE state = {state} LIMIT {_FEW}) AS j{state}"""
                for state in _UNFINISHED
            )
        )
        self._row = dialect.columns("j", ROW)
        self._shapes: dict[tuple[Any, ...], Sql] = {}

    def list_jobs(self, where: ListFilter, page: bytes | None, limit: int) -> Op[Page]:
        """See :meth:`BaseExecutor.list_jobs`."""
        digest = _digest(where)
        below = None if page is None else _position(page, digest)
        now = yield from self.dialect.now()
        what: _What = "by state" if (yield from self._are_few(where)) else "by id"
        values = self._values(where, now)
        if below is not None:
            values["below"] = self.dialect.id_in(below)
        sql = self.shape(what, where, paged=below is not None)
        rows = (yield sql(most=limit + 1, **values)).rows
        jobs = self.codec.jobs(rows[:limit], now)
        following = jobs[-1].id.bytes + digest if len(rows) > limit and jobs else None
        return Page(jobs, following)

    def count(self, where: ListFilter) -> Op[int]:
        """See :meth:`BaseExecutor.count`."""
        now = yield from self.dialect.now()
        rows = (yield self.shape("count", where)(**self._values(where, now))).rows
        return sum(count for (count,) in rows)

    def _are_few(self, where: ListFilter) -> Op[bool]:
        """Whether few jobs are in the states that the filter names, whatever else it says."""
        states = set(_stored(where.states))
        if not states or Stored.COMPLETED in states:
            return False
        if states <= _DEAD:
            return True
        counts = (yield self._how_many()).rows
        few: bool = sum(count for state, count in counts if state in states) < _FEW
        return few

    # ---------------------------------------------------------------- statements

    def shape(self, what: _What, where: ListFilter, *, paged: bool = False) -> Sql:
        """The statement for such a filter; there is one for every combination of its fields."""
        key = (
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
        sql = self._shapes.get(key)
        if sql is None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            sql = self._shapes[key] = self._render(what, where, paged=paged)
        return sql

    def _render(self, what: _What, where: ListFilter, *, paged: bool) -> Sql:
        rest = self._conditions(where)
        states = _stored(where.states)
        by_state = [
            [f"j.state = {state}", *([condition] if condition else []), *rest]
            for state, condition in states.items()
        ]
        if what == "count":
            parts = [
                f"SELECT count(*) FROM {self.dialect.job} j{_where(conditions)}"
                for conditions in by_state or [rest]
            ]
            return self.dialect.sql(" UNION ALL ".join(parts))
        if what == "by state":
            return self._render_by_state(by_state, paged=paged)
        if by_state:
            either = " OR ".join(
                f"(j.state = {state}{f' AND {condition}' if condition else ''})"
                for state, condition in states.items()
            )
            rest = [f"({either})", *rest]
        if paged:
            rest = ["j.id < :below", *rest]
        return self.dialect.sql(
            f"SELECT {self._row} FROM {self.dialect.job} j{_where(rest)} "
            "ORDER BY j.id DESC LIMIT :most"
        )

    def _render_by_state(self, by_state: list[list[str]], *, paged: bool) -> Sql:
        # By no index on the ids: that of the state has to find these.
        job_id = self.dialect.unindexed("j.id")
        parts: list[str] = []
        for number, conditions in enumerate(by_state):
            below = [f"{job_id} < :below"] if paged else []
            parts.append(
                f"SELECT * FROM (SELECT {self._row} FROM {self.dialect.job} j"
                f"{_where([*conditions, *below])} ORDER BY {job_id} DESC LIMIT :most) AS p{number}"
            )
        columns = ", ".join(ROW)
        return self.dialect.sql(
            f"SELECT {columns} FROM ({' UNION ALL '.join(parts)}) AS j ORDER BY id DESC LIMIT :most"
        )

    def _conditions(self, where: ListFilter) -> list[str]:
        dialect = self.dialect
        conditions: list[str] = []
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
        return conditions

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


def _where(conditions: list[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _stored(states: frozenset[JobState]) -> Mapping[Stored, str]:
    """The stored states behind reported ones, each with what must hold besides; none: any state."""
    found: dict[Stored, str] = {}
    due = [condition for state, condition in _DUE.items() if state in states]
    if due:
        condition = "" if len(due) == len(_DUE) else f"({' OR '.join(due)})"
        found.update(dict.fromkeys(WAITING, condition))
    for state, stored in _OTHERS.items():
        if state in states:
            found[stored] = f"j.state >= {Stored.DISCARDED}" if stored in _DEAD else ""
    return found


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
