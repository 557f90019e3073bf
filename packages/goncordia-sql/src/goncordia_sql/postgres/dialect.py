"""PostgreSQL's dialect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from goncordia.clock import Clock
from goncordia.errors import ConfigurationError
from goncordia_sql.dialect import Dialect
from goncordia_sql.statement import Op, ParamStyle, Sql
from goncordia_sql.states import Stored
from goncordia_sql.times import NativeTimes

__all__ = ["PostgresDialect", "checked_schema", "quoted"]

_LONGEST_NAME: Final = 63
_ALL: Final = (1 << 31) - 1
"""More rows than are ever asked for."""


class PostgresDialect(Dialect):
    """Ids are ``uuid``, times ``timestamptz``, JSON is ``text``, many values are an array.

    Args in JSON are readable text in the column ``args``; bytes, or text that PostgreSQL refuses
    (a NUL), are in ``args_raw``.

    Args:
        style: how the library wants its parameters.
        schema: the schema with the tables; any name.
        clock: take time from here and not from the server; for tests.

    Raises:
        ConfigurationError: the schema's name is none.
    """

    # With it, a planner without statistics goes along the index, too, and sorts nothing.
    first_place = (-(1 << 31), datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))
    now_literal = "now()"

    def __init__(
        self, style: ParamStyle, schema: str = "goncordia", clock: Clock | None = None
    ) -> None:
        self.schema = checked_schema(schema)
        super().__init__(style, NativeTimes(), f"{quoted(schema)}.")
        self.group = f"{quoted(schema)}.job_group"
        self.jobs = f"{quoted(schema)}.jobs"
        self._clock = clock
        self._now = self.sql("SELECT clock_timestamp()")
        self.now_sql = "statement_timestamp()" if clock is None else ":now::timestamptz"
        """The time now inside a statement, to which :meth:`time` gives the value."""

    def now(self) -> Op[Any]:
        """The server's time, or the given clock's."""
        if self._clock is not None:
            yield from ()
            return self._clock.now()
        return (yield self._now.alone()).rows[0][0]

    def time(self) -> Any:
        """The parameter ``now`` of a statement with ``now_sql``; without a clock there is none."""
        return None if self._clock is None else self._clock.now()

    # ---------------------------------------------------------------- values

    def id_in(self, value: UUID, /) -> UUID:
        """See :meth:`Dialect.id_in`."""
        return value

    def id_out(self, raw: UUID, /) -> UUID:
        """See :meth:`Dialect.id_out`. asyncpg gives a subclass, which is quicker in every way."""
        return raw

    def text_in(self, value: bytes, /) -> str:
        """See :meth:`Dialect.text_in`."""
        return value.decode()

    def text_out(self, raw: str | bytes, /) -> bytes:
        """See :meth:`Dialect.text_out`."""
        return raw.encode() if isinstance(raw, str) else raw

    def payload_in(self, value: bytes, content: str, /) -> tuple[str | None, bytes | None]:
        """The values of ``args`` and ``args_raw``."""
        if content == "json" and b"\0" not in value:
            try:
                return value.decode(), None
            except UnicodeDecodeError:
                pass
        return None, value

    # ---------------------------------------------------------------- fragments

    def columns(self, table: str, names: Iterable[str], /) -> str:
        """See :meth:`Dialect.columns`."""
        args = f"coalesce({table}.args_raw, convert_to({table}.args, 'UTF8')) AS args"
        return ", ".join(args if name == "args" else f"{table}.{name}" for name in names)

    def is_ready_of_kind(self, table: str, /) -> str:
        """See :meth:`Dialect.is_ready_of_kind`. No other index's condition follows from this one.

        A planner without statistics takes the index in order for as good, and filters by kind.
        """
        return f"{table}.state >= {Stored.READY} AND {table}.state <= {Stored.READY}"

    def lock(self, table: str, /) -> str:
        """See :meth:`Dialect.lock`."""
        return f"FOR UPDATE OF {table}"

    def lock_free(self, table: str, /) -> str:
        """See :meth:`Dialect.lock_free`."""
        return f"FOR UPDATE OF {table} SKIP LOCKED"

    def picked(self, query: str, /) -> str:
        """See :meth:`Dialect.picked`.

        From an array, and with a LIMIT of which the planner knows nothing, it expects few rows, as
        :func:`_few` says.
        """
        array = f"ARRAY({query} FOR UPDATE SKIP LOCKED)"
        return f"(SELECT u.id FROM unnest({array}) AS u(id) LIMIT (SELECT {_ALL}))"

    def not_left_out(self, table: str, /) -> str:
        """See :meth:`Dialect.not_left_out`."""
        left_out = f"({table}.group_name || ' ' || {table}.group_limit = ANY(:left_out::text[]))"
        return f"AND {left_out} IS NOT TRUE"

    def has_tag(self, column: str, tag: str, /) -> str:
        """See :meth:`Dialect.has_tag`."""
        return f"jsonb_exists({column}::jsonb, {tag})"

    def unindexed(self, column: str, /) -> str:
        """See :meth:`Dialect.unindexed`. The smaller of itself and of nothing is itself."""
        return f"least({column}, NULL)"

    # ---------------------------------------------------------------- many values at once

    def each_id(self, ids: str, /) -> str:
        """See :meth:`Dialect.each_id`."""
        return f"""(SELECT u.number - 1 AS n, u.id
            FROM unnest({ids}::uuid[]) WITH ORDINALITY AS u(id, number) {_few(ids)})"""

    def each_number(self, ids: str, numbers: str, /) -> str:
        """See :meth:`Dialect.each_number`."""
        return f"""(SELECT u.number - 1 AS n, u.id, u.value
            FROM unnest({ids}::uuid[], {numbers}::bigint[])
            WITH ORDINALITY AS u(id, value, number) {_few(ids)})"""

    def each_pair(self, ids: str, texts: str, /) -> str:
        """See :meth:`Dialect.each_pair`."""
        return f"""(SELECT u.number - 1 AS n, u.id, u.value
            FROM unnest({ids}::uuid[], {texts}::text[])
            WITH ORDINALITY AS u(id, value, number) {_few(ids)})"""

    def each_text(self, texts: str, /) -> str:
        """See :meth:`Dialect.each_text`."""
        return f"""(SELECT u.value FROM unnest({texts}::text[]) AS u(value)
            LIMIT cardinality({texts}::text[]))"""

    def ids(self, values: Iterable[UUID], /) -> list[UUID]:
        """See :meth:`Dialect.ids`."""
        return list(values)

    def raw_ids(self, values: Sequence[UUID], /) -> list[UUID]:
        """See :meth:`Dialect.raw_ids`."""
        return list(values)

    def numbers(self, values: Sequence[int], /) -> list[int]:
        """See :meth:`Dialect.numbers`."""
        return list(values)

    def texts(self, values: Iterable[str], /) -> list[str]:
        """See :meth:`Dialect.texts`."""
        return list(values)

    def statement(self, template: str) -> Sql:
        """As :meth:`sql`, with ``{now}`` for the time now."""
        return self.sql(template.replace("{now}", self.now_sql))


def _few(ids: str) -> str:
    """Makes the planner expect few rows, and look each up by index, whatever it knows of the table.

    A statement is planned once, perhaps while the table is empty, and used when it holds millions.
    """
    return f"LIMIT cardinality({ids}::uuid[])"


def checked_schema(schema: object) -> str:
    """The name of a schema.

    Raises:
        ConfigurationError: it is not a name that PostgreSQL takes.
    """
    if not isinstance(schema, str):
        raise ConfigurationError(f"schema: {schema!r} is not a string")
    if not 0 < len(schema.encode(errors="replace")) <= _LONGEST_NAME or "\0" in schema:
        raise ConfigurationError(f"schema: {schema!r} is not a name of 1 to {_LONGEST_NAME} bytes")
    if schema.lower().startswith("pg_"):
        raise ConfigurationError(f"schema: {schema!r}: PostgreSQL keeps names with pg_ for itself")
    return schema


def quoted(name: str) -> str:
    """The name as an identifier, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'
