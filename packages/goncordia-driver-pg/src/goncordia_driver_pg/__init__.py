"""Goncordia's PostgreSQL driver, over asyncpg or psycopg 3.

Jobs can be enqueued inside your own transaction, of either library.
"""

from goncordia_driver_pg.asyncpg_driver import AsyncpgDriver

__all__ = ["AsyncpgDriver"]
