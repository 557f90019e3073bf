"""Statements: what an operation yields, and the rows that it is sent back.

SQL is written once, with named parameters (``:name``), and rendered for the placeholders of a
library. A statement knows whether it gives rows, so that nobody asks a library for rows that are
not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from enum import Enum
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

__all__ = ["Batch", "Op", "ParamStyle", "Rows", "Sql", "Statement"]

# A colon that belongs to a cast (`::text`) introduces no parameter, nor does one in quotes.
_PARAMETER: Final = re.compile(r"""('[^']*'|"[^"]*")|(?<![:\w]):([a-z][a-z_0-9]*)""")
_GIVES_ROWS: Final = re.compile(r"\s*(SELECT|WITH|VALUES|PRAGMA|SHOW)\b|.*\bRETURNING\b", re.DOTALL)
_READS: Final = re.compile(r"\s*SELECT\b")


class ParamStyle(Enum):
    """How a library wants its parameters."""

    NUMBERED_DOLLAR = "${}"
    """``$1``: asyncpg."""
    QMARK = "?"
    """``?``, one value for every mark: sqlite3, aiosqlite."""
    FORMAT = "%s"
    """``%s``, one value for every mark: psycopg, the MySQL libraries, Django."""
    NAMED = ":"
    """``:name``, and a mapping of values: SQLAlchemy's ``text``."""


class Rows(NamedTuple):
    """What a statement gave.

    Attributes:
        rows: the rows, as tuples.
        changed: how many rows a change met; for a batch, in all.
        conflict: a unique index refused the change, and it had no effect at all; only answered
            to a statement that allows it.
    """

    rows: Sequence[Sequence[Any]]
    changed: int
    conflict: bool = False


class Statement(NamedTuple):
    """One statement with its values.

    Attributes:
        sql: the SQL.
        params: the values, in the form that the parameter style asks for.
        conflict_allowed: a unique conflict is an answer (``Rows.conflict``), not an error.
        alone: it may be a transaction of its own, as long as the operation has begun none.
    """

    sql: Sql
    params: Any
    conflict_allowed: bool = False
    alone: bool = False


class Batch(NamedTuple):
    """One statement, once for each of these sets of values; it gives no rows."""

    sql: Sql
    params: Sequence[Any]

    @property
    def alone(self) -> bool:
        """Many statements are never a transaction of their own."""
        return False


T = TypeVar("T")

Op: TypeAlias = Generator[Statement | Batch, Rows, T]
"""An operation: yields statements, receives their rows, returns its result. It does no I/O."""


class Sql:
    """A rendered SQL text that knows the names and the order of its parameters.

    Args:
        template: the SQL, with parameters as ``:name``.
        style: how the library wants them.
    """

    __slots__ = ("_arrange", "_positions", "names", "reads", "rows", "style", "text")

    def __init__(self, template: str, style: ParamStyle) -> None:
        marks = [match[2] for match in _PARAMETER.finditer(template) if match[2]]
        self.style = style
        self.names = tuple(dict.fromkeys(marks))
        """The parameters, in the order in which they first appear."""
        self.rows = _GIVES_ROWS.match(template) is not None
        """Whether it gives rows."""
        self.reads = _READS.match(template) is not None
        """Whether it changes nothing."""
        number = {name: position for position, name in enumerate(self.names, 1)}
        self._positions = tuple(number[name] - 1 for name in marks)
        if style is ParamStyle.NAMED:
            self.text = template
        else:
            # In the format style a literal percent sign is written twice.
            safe = template.replace("%", "%%") if style is ParamStyle.FORMAT else template
            self.text = _PARAMETER.sub(
                lambda match: match[1] or style.value.format(number[match[2]]), safe
            )
        self._arrange = self._arrangement()

    def _arrangement(self) -> Callable[[Sequence[Any]], Any] | None:
        if self.style is ParamStyle.NAMED:
            return lambda values: dict(zip(self.names, values, strict=True))
        by_mark = self.style in {ParamStyle.QMARK, ParamStyle.FORMAT}
        if by_mark and self._positions != tuple(range(len(self.names))):
            # Some name comes twice, so there are two values at least, and this gives a tuple.
            return cast("Callable[[Sequence[Any]], Any]", itemgetter(*self._positions))
        return None

    def __call__(self, **values: Any) -> Statement:
        """A statement with these values, by name."""
        return self.bind([values[name] for name in self.names])

    def with_conflict(self, **values: Any) -> Statement:
        """As a call; a unique conflict is an answer."""
        return self.bind([values[name] for name in self.names], conflict_allowed=True)

    def alone(self, **values: Any) -> Statement:
        """As a call; it may be a transaction of its own."""
        return self.bind([values[name] for name in self.names], alone=True)

    def bind(
        self, values: Sequence[Any], *, conflict_allowed: bool = False, alone: bool = False
    ) -> Statement:
        """A statement with these values, in the order of ``names``."""
        params = values if self._arrange is None else self._arrange(values)
        return Statement(self, params, conflict_allowed, alone)

    def batch(self, rows: Sequence[Sequence[Any]]) -> Batch:
        """A batch; the values of each row in the order of ``names``."""
        if self._arrange is not None:
            return Batch(self, [self._arrange(row) for row in rows])
        return Batch(self, rows)

    def __repr__(self) -> str:
        return f"Sql({self.text!r})"
