"""SQLite: its dialect and its schema."""

from goncordia_sql.sqlite.dialect import SqliteDialect
from goncordia_sql.sqlite.schema import LEDGER, MIGRATIONS

__all__ = ["LEDGER", "MIGRATIONS", "SqliteDialect"]
