"""What the operations of every topic share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from goncordia_sql.dialect import Dialect
from goncordia_sql.rows import ROW, RowCodec
from goncordia_sql.statement import Sql

__all__ = ["ROW_OF_J", "Topic", "as_text"]

ROW_OF_J: Final = ", ".join(f"j.{column}" for column in ROW)
"""The columns of a row, of a job table that the statement calls ``j``."""


class Topic:
    """The operations of one topic. Its statements are attributes, rendered once.

    Args:
        dialect: the database's.
        codec: reads and writes rows.
    """

    def __init__(self, dialect: Dialect, codec: RowCodec) -> None:
        self.dialect = dialect
        self.times = dialect.times
        self.codec = codec

    def statements(self) -> Iterator[tuple[str, Sql]]:
        """The name and the SQL of every statement, for the golden files."""
        for name, value in vars(self).items():
            if isinstance(value, Sql):
                yield name.removeprefix("_"), value


def as_text(raw: Any) -> str:
    """What :meth:`Dialect.bytes_of` gave, as text."""
    return raw.decode() if isinstance(raw, bytes) else str(raw)
