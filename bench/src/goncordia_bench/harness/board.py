"""When which job started, in memory that several processes share."""

from __future__ import annotations

import mmap
import time
from pathlib import Path
from typing import Final

__all__ = ["Board"]

_WIDTH: Final = 8


class Board:
    """A time for each of so many jobs, in nanoseconds on the clock of all processes; 0: not yet.

    Whatever runs a job (a thread, a forked child) writes to a place of its own: nothing is locked.

    Args:
        path: the file; each worker process is given one of its own.
        jobs: how many.
    """

    def __init__(self, path: Path, jobs: int) -> None:
        self.path = path
        self.jobs = jobs
        if not path.exists():
            path.write_bytes(bytes(jobs * _WIDTH))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), jobs * _WIDTH)
        self._times = memoryview(self._memory).cast("q")

    def note(self, n: int) -> None:
        """The job starts now."""
        self._times[n] = time.monotonic_ns()

    def starts(self) -> dict[int, int]:
        """The jobs that started, and when last."""
        return {n: at for n, at in enumerate(self._times) if at}

    def has(self, n: int) -> bool:
        """Whether that job started."""
        return self._times[n] != 0
