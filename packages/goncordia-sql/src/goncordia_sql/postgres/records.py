"""Records on PostgreSQL: one statement compares and swaps."""

from __future__ import annotations

from goncordia.driver import PutResult
from goncordia_sql.ops.records import Records
from goncordia_sql.postgres.dialect import PostgresDialect
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op

__all__ = ["PostgresRecords"]


class PostgresRecords(Records):
    """The version comes of a sequence, so none ever comes again."""

    def __init__(self, dialect: PostgresDialect, codec: RowCodec) -> None:
        super().__init__(dialect, codec)
        record = dialect.record
        self._create = dialect.sql(f"""
            INSERT INTO {record} (name, value, token) VALUES (:name, :value, :token)
            ON CONFLICT DO NOTHING RETURNING version
            """)
        self._replace = dialect.sql(f"""
            UPDATE {record} SET value = :value, token = :token, version = DEFAULT
            WHERE name = :name AND version = :version RETURNING version
            """)
        self._remove = dialect.sql(f"""
            DELETE FROM {record} WHERE name = :name AND version = :version RETURNING version
            """)
        self._now_there = dialect.sql(
            f"SELECT r.version, r.token FROM {record} r WHERE r.name = :name"
        )

    def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes
    ) -> Op[PutResult]:
        """See :meth:`BaseExecutor.record_put`."""
        if value is not None and expected_version == 0:
            done = yield self._create.alone(name=name, value=value, token=token)
        elif value is not None:
            done = yield self._replace.alone(
                name=name, value=value, token=token, version=expected_version
            )
        else:
            done = yield self._remove.alone(name=name, version=expected_version)
        if done.rows:
            return PutResult(done=True, version=done.rows[0][0] if value is not None else 0)
        found = (yield self._now_there(name=name)).rows
        if not found:
            # A delete of what is not there is done.
            return PutResult(done=value is None, version=0)
        version, last_token = found[0]
        return PutResult(done=last_token == token, version=version)
