"""A worker in a process of its own, and what it tells of the jobs that it was sent."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from goncordia_bench.harness.model import Figures
from goncordia_bench.harness.stats import percentile

__all__ = ["LONGEST", "SHORTEST", "Told", "consumer", "latencies", "pauses"]

SHORTEST: Final = 0.03
LONGEST: Final = 0.12


class Told(NamedTuple):
    """What a consumer told: when which job started, and its share of a core while it was idle."""

    starts: dict[int, int]
    idle: float


@contextmanager
def consumer(module: str, *words: str) -> Iterator[Callable[[], Told]]:
    """A consumer in a process of its own; gives a function that ends it and says what it told."""
    command = [sys.executable, "-m", f"goncordia_bench.{module}", *words]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"

            def end() -> Told:
                text, _ = process.communicate("end\n", timeout=60)
                told = json.loads(text)
                starts = {int(n): started for n, started in told["starts"].items()}
                return Told(starts, told["idle"])

            yield end
        finally:
            process.kill()


def latencies(sent: Sequence[int], returned: Sequence[int], told: Told) -> Figures:
    """From before each call of enqueue to the start of its handler, on the clock of all processes.

    Args:
        sent: when the job of each ``n`` was sent, in nanoseconds.
        returned: when the call was over.
        told: by the consumer.
    """
    starts = told.starts
    assert len(starts) == len(sent), f"{len(sent)} were sent, {len(starts)} started"
    taken = [(starts[n] - at) / 1e6 for n, at in enumerate(sent)]
    return {
        "p50 ms": percentile(taken, 0.5),
        "p99 ms": percentile(taken, 0.99),
        "commit p99 ms": percentile(
            [(after - at) / 1e6 for at, after in zip(sent, returned, strict=True)], 0.99
        ),
        "idle %": told.idle * 100,
    }


def pauses(count: int) -> Iterator[float]:
    """How long to wait before each job, in seconds; always the same for so many."""
    rng = random.Random(count)
    return (rng.uniform(SHORTEST, LONGEST) for _ in range(count))
