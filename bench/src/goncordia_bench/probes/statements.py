"""How many statements PostgreSQL was sent, and how many pages they read, by its own count."""

from __future__ import annotations

import asyncpg

__all__ = ["StatementCounter"]

# A connection reads the setting when it is opened: those of before, the counter's too, stay out.
_TURN_ON = """
    CREATE EXTENSION pg_stat_statements;
    DO $$ BEGIN EXECUTE format(
        'ALTER DATABASE %I SET pg_stat_statements.track = ''top''', current_database()
    ); END $$
    """
_SUM = """
    SELECT coalesce(sum({what}), 0)::bigint FROM pg_stat_statements
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    """
_CALLS = _SUM.format(what="calls")
_PAGES = _SUM.format(what="shared_blks_hit + shared_blks_read")


class StatementCounter:
    """Counts what clients send to this database over connections that are opened from now on."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    @classmethod
    async def of(cls, connection: asyncpg.Connection) -> StatementCounter:
        """Turn counting on.

        Raises:
            AssertionError: the server has not loaded ``pg_stat_statements``.
        """
        loaded = await connection.fetchval("SHOW shared_preload_libraries")
        assert "pg_stat_statements" in loaded, "load pg_stat_statements into the server first"
        await connection.execute(_TURN_ON)
        return cls(connection)

    async def count(self) -> int:
        """So many statements so far."""
        found: int = await self._connection.fetchval(_CALLS)
        return found

    async def pages(self) -> int:
        """So many buffers were asked for so far."""
        found: int = await self._connection.fetchval(_PAGES)
        return found
