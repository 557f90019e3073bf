"""Which figures are drawn."""

from __future__ import annotations

from typing import Final

from goncordia_bench.harness.model import Key
from goncordia_bench.report.plot import Bar, Panel

__all__ = ["PANELS"]


def _trio(level: str) -> tuple[Bar, ...]:
    return (
        Bar(f"Goncordia, {level}", Key(f"goncordia, {level}", "jobs/s"), "ours"),
        Bar(f"huey, {level}", Key(f"huey, {level}", "jobs/s"), "peer"),
        Bar(f"sqlite3 alone, {level}", Key(f"floor, {level}", "jobs/s"), "floor"),
    )


PANELS: Final = (
    Panel(
        "The engine alone",
        "engine",
        "jobs/s",
        (
            Bar("a bare loop of tasks", Key("floor", "jobs/s"), "floor"),
            Bar("Goncordia, canned rows", Key("canned", "jobs/s"), "ours"),
            Bar("Goncordia, memory", Key("memory", "jobs/s"), "ours"),
            Bar("huey, memory", Key("huey", "jobs/s"), "peer"),
        ),
    ),
    Panel("SQLite: working jobs off", "drain", "jobs/s", (*_trio("FULL"), *_trio("NORMAL"))),
    Panel(
        "SQLite: enqueueing one by one, FULL",
        "enqueue",
        "jobs/s",
        (
            Bar("Goncordia, sync", Key("sync, FULL", "jobs/s"), "ours"),
            Bar("Goncordia, async", Key("async, FULL", "jobs/s"), "ours"),
            Bar("Goncordia, 16 producers", Key("16 producers, FULL", "jobs/s"), "ours"),
            Bar("huey", Key("huey, FULL", "jobs/s"), "peer"),
            Bar("sqlite3 alone", Key("floor, FULL", "jobs/s"), "floor"),
        ),
    ),
    Panel(
        "SQLite: enqueueing many at once, FULL",
        "enqueue_many",
        "jobs/s",
        (
            Bar("Goncordia, async", Key("async", "jobs/s"), "ours"),
            Bar("Goncordia, sync", Key("sync", "jobs/s"), "ours"),
            Bar("sqlite3 alone, executemany", Key("floor", "jobs/s"), "floor"),
        ),
    ),
    Panel(
        "SQLite: from enqueue to the handler in another process, median",
        "latency",
        "ms, less is better",
        (
            Bar("Goncordia", Key("goncordia", "p50 ms"), "ours"),
            Bar("huey, default", Key("huey", "p50 ms"), "peer"),
            Bar("huey, polling every 5 ms", Key("huey, polling every 5 ms", "p50 ms"), "peer"),
        ),
    ),
)
