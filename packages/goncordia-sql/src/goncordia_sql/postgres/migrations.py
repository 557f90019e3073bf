"""Migrations of PostgreSQL: one process at a time, in a schema that may not be there yet."""

from __future__ import annotations

from goncordia_sql.migrations import Migrations
from goncordia_sql.postgres.dialect import PostgresDialect, quoted
from goncordia_sql.postgres.schema import ledger, steps
from goncordia_sql.statement import Op

__all__ = ["PostgresMigrations", "migrations"]


def migrations(dialect: PostgresDialect) -> PostgresMigrations:
    """The migrations of this schema."""
    return PostgresMigrations(dialect)


class PostgresMigrations(Migrations):
    """Waits for others that migrate the same schema, and creates it if it is not there."""

    def __init__(self, dialect: PostgresDialect) -> None:
        super().__init__(dialect, steps(dialect), ledger(dialect))
        self._schema = dialect.schema
        self._create = f"CREATE SCHEMA IF NOT EXISTS {quoted(dialect.schema)}"
        # Not by the schema's own lock: it may not be there. Held until the commit.
        self._lock = dialect.sql("""
            SELECT pg_advisory_xact_lock(hashtextextended('goncordia.migrate.' || :schema, 0))
            """)
        self._exists = dialect.sql("SELECT 1 FROM pg_namespace WHERE nspname = :schema")
        self._create_schema = dialect.sql(self._create)

    def script(self) -> str:
        """See :meth:`Migrations.script`."""
        return f"{self._create};\n{super().script()}"

    def migrate(self) -> Op[list[str]]:
        """See :meth:`Migrations.migrate`. In one transaction."""
        yield self._lock(schema=self._schema)
        # IF NOT EXISTS would ask for the right to create one, also where it is there.
        if not (yield self._exists(schema=self._schema)).rows:
            yield self._create_schema()
        return (yield from super().migrate())
