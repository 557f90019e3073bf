"""Records: small durable values, changed by compare-and-swap."""

from __future__ import annotations

from abc import ABC, abstractmethod

from goncordia.driver import PutResult, Record
from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import Topic
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op

__all__ = ["LockedRecords", "Records"]


class Records(Topic, ABC):
    """A version is the number of a put among those of all names, so none ever comes again."""

    def __init__(self, dialect: Dialect, codec: RowCodec) -> None:
        super().__init__(dialect, codec)
        record = dialect.record
        self._get = dialect.sql(f"SELECT name, value, version FROM {record} WHERE name = :name")
        self._list = dialect.sql(f"""
            SELECT name, value, version FROM {record}
            WHERE substr(name, 1, length(:prefix)) = :prefix ORDER BY name
            """)

    def record_get(self, name: str) -> Op[Record | None]:
        """See :meth:`BaseExecutor.record_get`."""
        rows = (yield self._get(name=name)).rows
        return Record(*rows[0]) if rows else None

    def record_list(self, prefix: str) -> Op[list[Record]]:
        """See :meth:`BaseExecutor.record_list`."""
        return [Record(*row) for row in (yield self._list(prefix=prefix)).rows]

    @abstractmethod
    def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes
    ) -> Op[PutResult]:
        """See :meth:`BaseExecutor.record_put`."""


class LockedRecords(Records):
    """Looks, with a lock where a database has row locks, and writes then."""

    def __init__(self, dialect: Dialect, codec: RowCodec) -> None:
        super().__init__(dialect, codec)
        record = dialect.record
        self._lock = dialect.sql(f"""
            SELECT r.version, r.token FROM {record} r WHERE r.name = :name {dialect.lock("r")}
            """)
        self._delete = dialect.sql(f"DELETE FROM {record} WHERE name = :name")
        self._insert = dialect.sql(f"""
            INSERT INTO {record} (name, value, token) VALUES (:name, :value, :token)
            """)

    def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes
    ) -> Op[PutResult]:
        """See :meth:`BaseExecutor.record_put`."""
        found = (yield self._lock(name=name)).rows
        version, last_token = found[0] if found else (0, None)
        if last_token == token:
            return PutResult(done=True, version=version)
        if not found and value is None:
            return PutResult(done=True, version=0)
        if version != expected_version:
            return PutResult(done=False, version=version)
        if found:
            yield self._delete(name=name)
        if value is None:
            return PutResult(done=True, version=0)
        yield self._insert(name=name, value=value, token=token)
        (written,) = (yield self._lock(name=name)).rows
        return PutResult(done=True, version=written[0])
