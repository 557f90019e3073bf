"""The cases: one module for each workload."""

from __future__ import annotations

from typing import Final

from goncordia_bench.cases import (
    backlog,
    drain,
    engine,
    enqueue,
    enqueue_many,
    latency,
    memory,
    pieces,
)
from goncordia_bench.harness.model import Case

__all__ = ["CASES", "case_named"]

CASES: Final = (
    engine.CASE,
    pieces.CASE,
    drain.CASE,
    enqueue.CASE,
    enqueue_many.CASE,
    latency.CASE,
    backlog.CASE,
    memory.CASE,
)


def case_named(name: str) -> Case:
    """The case of that name."""
    return next(case for case in CASES if case.name == name)
