"""Goncordia's SQLite driver: a durable job queue in one file.

Jobs can be enqueued inside your own transaction, of ``sqlite3`` or of ``aiosqlite``.
"""

from goncordia_driver_sqlite.driver import SqliteDriver

__all__ = ["SqliteDriver"]
