"""Reading jobs by id and by claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from goncordia.driver import JobRow
from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import Topic
from goncordia_sql.rows import ROW, RowCodec
from goncordia_sql.statement import Op
from goncordia_sql.states import Stored

__all__ = ["Read"]


class Read(Topic):
    """``get_many`` and ``held``."""

    def __init__(self, dialect: Dialect, codec: RowCodec) -> None:
        super().__init__(dialect, codec)
        row = dialect.columns("j", ROW)
        self._get = dialect.sql(f"""
            SELECT k.n, {row} FROM {dialect.each_id(":ids")} AS k
            JOIN {dialect.job} j ON j.id = k.id
            """)
        held = f"""
            SELECT {row} FROM {dialect.job} j
            WHERE j.state = {Stored.RUNNING} AND j.session = :session
            """
        self._held = dialect.sql(f"{held} ORDER BY j.fetch_no, j.id LIMIT :most")
        self._held_of_fetch = dialect.sql(
            f"{held} AND j.fetch_no = :fetch_no ORDER BY j.id LIMIT :most"
        )

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
