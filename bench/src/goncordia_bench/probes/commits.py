"""Counting the commits of an SQLite database, whoever made them, at no cost to them."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

__all__ = ["CommitCounter"]

# The header of the wal-index, with which the file begins: a version, padding, and the number of
# the last transaction (https://www.sqlite.org/walformat.html, "The WAL-Index Header").
_CHANGES_AT: Final = 8


class CommitCounter:
    """How many transactions wrote to a database in WAL mode.

    SQLite counts them in the file ``…-shm``, which all connections share and which goes with the
    last of them: make the counter, and read it, while there is one. A transaction that wrote
    nothing presses nothing to the disk, and is not counted by SQLite.

    The file is not closed again: closing one takes from this process every lock that SQLite holds
    on the same file.

    Args:
        path: the database; somebody has it open.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(f"{path}-shm", os.O_RDONLY)

    def __call__(self) -> int:
        """The count so far; only differences mean something."""
        (changes,) = struct.unpack("=I", os.pread(self._file, 4, _CHANGES_AT))
        return int(changes)
