"""PostgreSQL: its dialect, its schema, and the operations whose shape is its own."""

from goncordia_sql.postgres.dialect import PostgresDialect
from goncordia_sql.postgres.marks import LATE_FIND_BOUND
from goncordia_sql.postgres.migrations import PostgresMigrations, migrations
from goncordia_sql.postgres.operations import PostgresOperations

__all__ = [
    "LATE_FIND_BOUND",
    "PostgresDialect",
    "PostgresMigrations",
    "PostgresOperations",
    "migrations",
]
