"""What the operations of every topic share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from goncordia_sql.dialect import Dialect
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Sql

__all__ = ["LONGEST_SET", "Topic", "as_text", "fits_set"]

LONGEST_SET: Final = 8 << 20
"""Bytes of payloads in one statement that takes many, at most."""
_LARGE: Final = 64 << 10


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


def fits_set(value: bytes) -> bool:
    """Whether a payload can be one of many texts in one parameter: not long, and clean text."""
    if len(value) > _LARGE or b"\0" in value:
        return False
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def as_text(raw: Any) -> str:
    """What :meth:`Dialect.bytes_of` gave, as text."""
    return raw.decode() if isinstance(raw, bytes) else str(raw)
