"""Sessions on PostgreSQL: who looks for dead ones looks after the groups as well."""

from __future__ import annotations

from uuid import UUID

from goncordia.driver import JobRow
from goncordia_sql.ops.sessions import Sessions
from goncordia_sql.postgres.groups import PostgresGroups
from goncordia_sql.statement import Op

__all__ = ["PostgresSessions"]


class PostgresSessions(Sessions):
    """See :class:`Sessions`."""

    _groups: PostgresGroups

    def expire(self, session: UUID, limit: int) -> Op[list[JobRow]]:
        """See :meth:`BaseExecutor.expire`."""
        jobs = yield from super().expire(session, limit)
        yield from self._groups.sweep()
        return jobs
