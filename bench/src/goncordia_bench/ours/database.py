"""Databases as the SQLite cases want them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from goncordia_driver_sqlite import SqliteDriver

__all__ = ["migrated", "settled"]


def migrated(path: Path) -> Path:
    """An empty database with the driver's schema."""
    with SqliteDriver(path) as driver:
        driver.migrate_sync()
    return path


def settled(path: Path) -> None:
    """Copy the write-ahead log back and empty it, so that all begin alike."""
    with closing(sqlite3.connect(path)) as connection:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert not busy
