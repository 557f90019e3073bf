"""How hard the connections of a library really press their commits to the disk."""

from __future__ import annotations

import sqlite3
from typing import Any, Final, Literal, TypeAlias

__all__ = ["LEVELS", "Connections", "Synchronous"]

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]
LEVELS: Final[tuple[Synchronous, ...]] = ("FULL", "NORMAL")
_NUMBERS: Final = {1: "NORMAL", 2: "FULL"}


class Connections:
    """Notes every connection that anybody in this process makes, and asks each what it does.

    Nothing that a library says of itself is believed: the answer is SQLite's.
    """

    def __init__(self) -> None:
        self._made: list[sqlite3.Connection] = []
        connect = sqlite3.connect

        def noting(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*args, **kwargs)
            self._made.append(connection)
            return connection

        # For the life of the sample. Typed as Any, since it is not overloaded as the original is.
        replacement: Any = noting
        sqlite3.connect = replacement

    def check(self, synchronous: Synchronous) -> None:
        """Every open connection is in WAL mode and of this level; there is at least one.

        Raises:
            AssertionError: it is not so.
        """
        checked = 0
        for connection in self._made:
            try:
                (level,) = connection.execute("PRAGMA synchronous").fetchone()
                (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            except sqlite3.ProgrammingError:
                continue  # it was closed
            assert (_NUMBERS.get(level), mode) == (synchronous, "wal"), (level, mode)
            checked += 1
        assert checked, "there is no open connection to check"
