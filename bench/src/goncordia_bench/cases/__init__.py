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
from goncordia_bench.cases.postgres import backlog as postgres_backlog
from goncordia_bench.cases.postgres import costs, processes, steady
from goncordia_bench.cases.postgres import drain as postgres_drain
from goncordia_bench.cases.postgres import enqueue as postgres_enqueue
from goncordia_bench.cases.postgres import latency as postgres_latency
from goncordia_bench.cases.redis import backlog as redis_backlog
from goncordia_bench.cases.redis import drain as redis_drain
from goncordia_bench.cases.redis import enqueue as redis_enqueue
from goncordia_bench.cases.redis import killed as redis_killed
from goncordia_bench.cases.redis import latency as redis_latency
from goncordia_bench.cases.redis import memory as redis_memory
from goncordia_bench.harness.model import Case

__all__ = ["CASES", "case_named", "cases_named"]

CASES: Final = (
    engine.CASE,
    pieces.CASE,
    drain.CASE,
    enqueue.CASE,
    enqueue_many.CASE,
    latency.CASE,
    backlog.CASE,
    memory.CASE,
    postgres_drain.CASE,
    postgres_enqueue.ENQUEUE,
    postgres_enqueue.ENQUEUE_MANY,
    postgres_enqueue.PRODUCERS,
    postgres_latency.CASE,
    postgres_backlog.CASE,
    processes.CASE,
    steady.CASE,
    costs.STATEMENTS,
    costs.MEMORY,
    redis_drain.DRAIN,
    redis_drain.FILE,
    redis_drain.PROCESSES,
    redis_enqueue.ENQUEUE,
    redis_enqueue.ENQUEUE_MANY,
    redis_latency.CASE,
    redis_backlog.CASE,
    redis_memory.CASE,
    redis_killed.CASE,
)


def case_named(name: str) -> Case:
    """The case of that name."""
    return next(case for case in CASES if case.name == name)


def cases_named(name: str) -> list[Case]:
    """The case of that name, or all whose names begin with it: ``postgres`` is all of PostgreSQL.

    Raises:
        ValueError: there is none.
    """
    found = [case for case in CASES if case.name == name]
    found = found or [case for case in CASES if case.name.startswith(f"{name}-")]
    if not found:
        raise ValueError(name)
    return found
