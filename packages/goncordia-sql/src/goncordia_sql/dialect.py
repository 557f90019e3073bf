"""What a database understands: the fragments in which dialects differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from goncordia_sql.statement import Op, ParamStyle, Sql
from goncordia_sql.states import Stored
from goncordia_sql.times import Times

__all__ = ["Dialect"]


class Dialect(ABC):
    """The differences between databases, as far as they are fragments of a statement.

    Where the shape of an operation differs, its class is overridden instead. Fragments take names
    of parameters and give SQL; the methods beside them make the values of those parameters.

    Args:
        style: how the library wants its parameters.
        times: how times are stored.
        prefix: what the tables' names begin with, such as ``goncordia_`` or ``"my jobs".``.
    """

    first_place: tuple[Any, Any, Any]
    """What comes before every job's ``nice``, ``run_at`` and ``id``: a walk begins after it."""

    now_literal: str
    """The stored form of the time now, as SQL, for printed migrations."""

    def __init__(self, style: ParamStyle, times: Times, prefix: str = "goncordia_") -> None:
        self.style = style
        self.times = times
        self.job = f"{prefix}job"
        self.session = f"{prefix}session"
        self.queue = f"{prefix}queue"
        self.record = f"{prefix}record"
        self.migration = f"{prefix}migration"

    def sql(self, template: str) -> Sql:
        """The SQL, rendered for the library; runs of white space become one blank."""
        return Sql(" ".join(template.split()), self.style)

    # ---------------------------------------------------------------- time

    @abstractmethod
    def now(self) -> Op[Any]:
        """The stored form of the backend's time now."""

    # ---------------------------------------------------------------- values

    @abstractmethod
    def id_in(self, value: UUID, /) -> Any:
        """An id as a parameter."""

    @abstractmethod
    def id_out(self, raw: Any, /) -> UUID:
        """An id from a column."""

    @abstractmethod
    def text_in(self, value: bytes, /) -> Any:
        """JSON as a parameter for a text column."""

    @abstractmethod
    def text_out(self, raw: Any, /) -> bytes:
        """The bytes of a text column, or of one for payloads."""

    @abstractmethod
    def payload_in(self, value: bytes, content: str, /) -> Any:
        """Encoded args as a parameter: readable text for JSON, else bytes."""

    # ---------------------------------------------------------------- fragments

    def columns(self, table: str, names: Iterable[str], /) -> str:
        """What a query of whole jobs selects: these columns of a job table of this name."""
        return ", ".join(f"{table}.{name}" for name in names)

    def is_ready_of_kind(self, table: str, /) -> str:
        """A condition: the job is ready. Said so that the index by kind is used, and no other."""
        return f"{table}.state = {Stored.READY}"

    def lock(self, table: str, /) -> str:
        """What ends a query whose rows of this table are changed next in the same transaction.

        The query says in which order: always by id, so that nobody waits in a circle.
        """
        return ""

    def lock_free(self, table: str, /) -> str:
        """As ``lock``, and leaves out what others have locked: it waits for nobody."""
        return ""

    def not_left_out(self, table: str, /) -> str:
        """A condition, with AND before it: the job is of none of the classes ``:left_out``.

        Those are texts of a group and a limit. Nothing where a fetch parks what it cannot take.
        """
        return ""

    # ---------------------------------------------------------------- many values at once

    @abstractmethod
    def each_id(self, ids: str, /) -> str:
        """A table ``(n, id)`` of the ids in a parameter; ``n`` counts from 0."""

    @abstractmethod
    def each_number(self, ids: str, numbers: str, /) -> str:
        """A table ``(n, id, value)`` of ids and whole numbers, from two parameters."""

    @abstractmethod
    def each_pair(self, ids: str, texts: str, /) -> str:
        """A table ``(n, id, value)`` of ids and texts, from two parameters."""

    @abstractmethod
    def each_text(self, texts: str, /) -> str:
        """A table ``(value)`` of the texts in a parameter."""

    @abstractmethod
    def ids(self, values: Iterable[UUID], /) -> Any:
        """The parameter of ``each_id``, from ids."""

    @abstractmethod
    def raw_ids(self, values: Sequence[Any], /) -> Any:
        """The parameter of ``each_id``, from what columns gave."""

    @abstractmethod
    def numbers(self, values: Sequence[int], /) -> Any:
        """The second parameter of ``each_number``, from whole numbers."""

    @abstractmethod
    def texts(self, values: Iterable[str], /) -> Any:
        """The parameter of ``each_text``, and the second of ``each_pair``, from texts."""

    def bytes_of(self, column: str, /) -> str:
        """A text column, as bytes where a caller's connection may change how texts are read."""
        return column

    def picked(self, query: str, /) -> str:
        """A query of ids as what stands behind ``IN`` when rows of the same table are changed.

        What others have locked may be left out: it is picked another time.
        """
        return f"({query})"

    def unindexed(self, column: str, /) -> str:
        """A column, such that no index on it is used."""
        return column

    @abstractmethod
    def has_tag(self, column: str, tag: str, /) -> str:
        """A condition: the JSON array in the column holds the text in the parameter."""
