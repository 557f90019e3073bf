"""A stopwatch."""

from __future__ import annotations

import time

from goncordia_bench.harness.model import Figures

__all__ = ["Stopwatch"]


class Stopwatch:
    """Runs from when it is made: the clock on the wall, and the processor time of this process."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._processor = time.process_time()

    def rates(self, jobs: int) -> Figures:
        """What so many jobs since then come to."""
        seconds = time.perf_counter() - self._wall
        processor = time.process_time() - self._processor
        return {
            "jobs/s": jobs / seconds,
            "µs/job": seconds / jobs * 1e6,
            "processor µs/job": processor / jobs * 1e6,
        }
