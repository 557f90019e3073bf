"""SQLite's dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final
from uuid import UUID

import msgspec

from goncordia_sql.dialect import Dialect
from goncordia_sql.statement import Op, ParamStyle
from goncordia_sql.times import IntegerTimes

__all__ = ["SqliteDialect"]

_encode: Final = msgspec.json.Encoder().encode
_convert: Final = msgspec.convert
_ID: Final = 16


class SqliteDialect(Dialect):
    """Ids are blobs of 16 bytes, times are microseconds since 1970, JSON is text.

    Many ids are one blob, cut apart by a counter; many other values are a JSON array.

    Args:
        clock: the time now, in microseconds since 1970.
    """

    first_place = (-(1 << 31), -(1 << 63), b"")
    now_literal = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(ParamStyle.QMARK, IntegerTimes())
        self._clock = clock

    def now(self) -> Op[int]:
        """The machine's time: with one machine there is no other."""
        yield from ()
        return self._clock()

    # ---------------------------------------------------------------- values

    def id_in(self, value: UUID, /) -> bytes:
        """See :meth:`Dialect.id_in`."""
        return value.bytes

    def id_out(self, raw: bytes, /) -> UUID:
        """See :meth:`Dialect.id_out`."""
        return _convert(raw, UUID)

    def text_in(self, value: bytes, /) -> str | bytes:
        """Text if it is any, else the bytes as they are."""
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value

    def text_out(self, raw: str | bytes, /) -> bytes:
        """See :meth:`Dialect.text_out`."""
        return raw.encode() if isinstance(raw, str) else raw

    def payload_in(self, value: bytes, content: str, /) -> str | bytes:
        """See :meth:`Dialect.payload_in`."""
        return self.text_in(value) if content == "json" else value

    # ---------------------------------------------------------------- many values at once

    def each_id(self, ids: str, /) -> str:
        """See :meth:`Dialect.each_id`."""
        return f"""(WITH RECURSIVE c(n) AS (
            SELECT 0 WHERE length({ids}) > 0
            UNION ALL SELECT n + 1 FROM c WHERE n + 1 < length({ids}) / {_ID})
            SELECT n, substr({ids}, {_ID} * n + 1, {_ID}) AS id FROM c)"""

    def each_number(self, ids: str, numbers: str, /) -> str:
        """See :meth:`Dialect.each_number`."""
        return self.each_pair(ids, numbers)

    def each_pair(self, ids: str, texts: str, /) -> str:
        """See :meth:`Dialect.each_pair`."""
        return f"""(SELECT key AS n, substr({ids}, {_ID} * key + 1, {_ID}) AS id, value
            FROM json_each({texts}))"""

    def each_text(self, texts: str, /) -> str:
        """See :meth:`Dialect.each_text`."""
        return f"(SELECT value FROM json_each({texts}))"

    def ids(self, values: Iterable[UUID], /) -> bytes:
        """See :meth:`Dialect.ids`."""
        return b"".join([value.bytes for value in values])

    def raw_ids(self, values: Sequence[bytes], /) -> bytes:
        """See :meth:`Dialect.raw_ids`."""
        return b"".join(values)

    def numbers(self, values: Sequence[int], /) -> str:
        """See :meth:`Dialect.numbers`."""
        return _encode(values).decode()

    def texts(self, values: Iterable[str], /) -> str:
        """See :meth:`Dialect.texts`."""
        return _encode(list(values)).decode()

    def bytes_of(self, column: str, /) -> str:
        """See :meth:`Dialect.bytes_of`."""
        return f"CAST({column} AS BLOB)"

    def unindexed(self, column: str, /) -> str:
        """See :meth:`Dialect.unindexed`."""
        return f"+{column}"

    def has_tag(self, column: str, tag: str, /) -> str:
        """See :meth:`Dialect.has_tag`."""
        return f"EXISTS (SELECT 1 FROM json_each({column}) AS t WHERE t.value = {tag})"
