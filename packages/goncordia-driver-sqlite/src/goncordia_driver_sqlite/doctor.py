"""What ``goncordia doctor`` says of an SQLite database."""

from __future__ import annotations

import os
import sqlite3
from typing import Final

from goncordia.driver import Finding

__all__ = ["look"]

# https://www.sqlite.org/wal.html#walresetbug: fixed in 3.51.3, and in these older lines.
_WAL_RESET_FIXED: Final = (3, 51, 3)
_WAL_RESET_BACKPORTS: Final = {(3, 44): 6, (3, 50): 7}
_LARGE_LOG: Final = 256 << 20


def look(path: str, log: str, connection: sqlite3.Connection) -> list[Finding]:
    """What there is to say of a migrated database, given its log's path and a connection."""
    findings: list[Finding] = []
    if not _wal_reset_is_fixed(sqlite3.sqlite_version_info):
        findings.append(
            Finding(
                "warning",
                f"SQLite {sqlite3.sqlite_version} can, very rarely, damage a database in WAL mode "
                "that several connections write to (https://www.sqlite.org/wal.html#walresetbug): "
                "upgrade it to 3.51.3 or newer, and keep backups",
            )
        )
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    if mode != "wal":
        findings.append(
            Finding(
                "warning",
                f"{path} has the journal mode {mode!r}: something has taken it out of WAL mode, "
                "and readers and writers wait for each other until the driver puts it back",
            )
        )
    size = _size(log)
    if size > _LARGE_LOG:
        findings.append(
            Finding(
                "warning",
                f"{log} has {size >> 20} MiB: a connection that has been reading for long "
                "keeps it from being copied back into the database; end its transaction",
            )
        )
    return findings


def _wal_reset_is_fixed(version: tuple[int, ...]) -> bool:
    backport = _WAL_RESET_BACKPORTS.get((version[0], version[1]))
    return version >= _WAL_RESET_FIXED or (backport is not None and version[2] >= backport)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
