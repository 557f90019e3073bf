"""Which figures are drawn."""

from __future__ import annotations

from typing import Final

from goncordia_bench.cases.postgres.steady import BEHIND, TIMES, at
from goncordia_bench.harness.model import Key
from goncordia_bench.report.curves import Curves, Line
from goncordia_bench.report.plot import Bar, Drawing, Panel
from goncordia_bench.systems import FLOOR, OURS, PEERS
from goncordia_bench.systems_redis import PEERS as REDIS_PEERS
from goncordia_bench.systems_redis import SYSTEMS as ON_REDIS

__all__ = ["PANELS", "POSTGRES_PANELS", "REDIS_PANELS"]

_LABELS: Final = {
    OURS: "Goncordia",
    FLOOR: "asyncpg alone",
    "pgqueuer": "PgQueuer",
    "awa": "awa",
    "oban": "Oban",
    "procrastinate": "procrastinate",
}
_ROLES: Final = {OURS: "ours", FLOOR: "floor"}


def _trio(level: str) -> tuple[Bar, ...]:
    return (
        Bar(f"Goncordia, {level}", Key(f"goncordia, {level}", "jobs/s"), "ours"),
        Bar(f"huey, {level}", Key(f"huey, {level}", "jobs/s"), "peer"),
        Bar(f"sqlite3 alone, {level}", Key(f"floor, {level}", "jobs/s"), "floor"),
    )


PANELS: Final[tuple[Drawing, ...]] = (
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


def _all(title: str, case: str, figure: str, unit: str, *, floor: bool = True) -> Panel:
    names = (OURS, *PEERS, *((FLOOR,) if floor else ()))
    return Panel(
        title,
        case,
        unit,
        tuple(Bar(_LABELS[n], Key(n, figure), _ROLES.get(n, "peer")) for n in names),
    )


def _steady(title: str, suffix: str) -> Curves:
    return Curves(
        title,
        "postgres-steady",
        "jobs/s, two minutes",
        tuple(
            Line(
                _LABELS[name],
                _ROLES.get(name, "peer"),
                {seconds: Key(name + suffix, at(seconds)) for seconds in TIMES},
            )
            for name in (OURS, *PEERS, FLOOR)
        ),
    )


POSTGRES_PANELS: Final[tuple[Drawing, ...]] = (
    _all("PostgreSQL: working jobs off", "postgres-drain", "jobs/s", "jobs/s"),
    _all("PostgreSQL: enqueueing one by one", "postgres-enqueue", "jobs/s", "jobs/s"),
    _all("PostgreSQL: … in your transaction", "postgres-enqueue", "tx jobs/s", "jobs/s"),
    _all("PostgreSQL: enqueueing many at once", "postgres-enqueue-many", "jobs/s", "jobs/s"),
    _all("PostgreSQL: 16 producers at once", "postgres-producers", "jobs/s", "jobs/s"),
    _all(
        "PostgreSQL: from enqueue to the handler in another process, median",
        "postgres-latency",
        "p50 ms",
        "ms, less is better",
        floor=False,
    ),
    _steady("PostgreSQL: steady load", ""),
    _steady("PostgreSQL: steady load behind an idle transaction", BEHIND),
)


def _on_redis(title: str, case: str, figure: str, unit: str, *, floor: bool = True) -> Panel:
    names = (OURS, *REDIS_PEERS, *((FLOOR,) if floor else ()))
    return Panel(
        f"Redis: {title}",
        f"redis-{case}",
        unit,
        tuple(Bar(_on_redis_label(n), Key(n, figure), _ROLES.get(n, "peer")) for n in names),
    )


def _on_redis_label(name: str) -> str:
    system = ON_REDIS[name]
    return system.label + (" (may lose jobs)" if system.acknowledges == "before" else "")


REDIS_PANELS: Final[tuple[Drawing, ...]] = (
    _on_redis("working jobs off", "drain", "jobs/s", "jobs/s"),
    _on_redis("… while writing to a file", "drain-file", "jobs/s", "jobs/s"),
    _on_redis("… by four processes", "processes", "jobs/s", "jobs/s"),
    _on_redis("enqueueing one by one", "enqueue", "jobs/s", "jobs/s"),
    _on_redis("enqueueing many at once", "enqueue-many", "jobs/s", "jobs/s"),
    _on_redis(
        "from enqueue to the job in another process, median", "latency", "p50 ms",
        "ms, less is better", floor=False,
    ),
    _on_redis("a waiting job", "memory", "bytes", "bytes, less is better"),
    Panel(
        "Redis: from kill -9 until all its jobs run elsewhere",
        "redis-killed",
        "s, less is better",
        tuple(
            Bar(_on_redis_label(n), Key("all", f"{n} s"), _ROLES.get(n, "peer"))
            for n in (OURS, *REDIS_PEERS)
        ),
    ),
)  # fmt: skip
