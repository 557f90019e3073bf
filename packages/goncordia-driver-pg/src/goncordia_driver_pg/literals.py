"""Arrays as text, for connections that were taught other types for their elements.

asyncpg passes over a connection's own codecs when asked to, but not for what is in an array. As
text, cast to the array's type by the server, it does not look into them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, cast

__all__ = ["array_literal", "with_text", "with_text_arrays"]

_ARRAY: Final = re.compile(r"(\$\d+)::([a-z0-9]+)\[\]")


@functools.lru_cache(maxsize=1024)
def with_text_arrays(sql: str) -> str:
    """The statement, with every parameter that is an array taken as text."""
    return _ARRAY.sub(r"\1::text::\2[]", sql)


def with_text(value: Any) -> Any:
    """The parameter, as text if it is an array."""
    return array_literal(cast("list[object]", value)) if isinstance(value, list) else value


def array_literal(values: Sequence[object]) -> str:
    """The array in PostgreSQL's own notation."""
    return "{" + ",".join([_WRITERS.get(type(value), str)(value) for value in values]) + "}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _bytes(value: bytes) -> str:
    return f'"\\\\x{value.hex()}"'


def _time(value: datetime) -> str:
    return f'"{value.isoformat()}"'


_WRITERS: Final[dict[type, Callable[[Any], str]]] = {
    type(None): lambda _: "NULL",
    str: _quoted,
    bytes: _bytes,
    datetime: _time,
    float: repr,
}
"""Ids and whole numbers need no quotes."""
