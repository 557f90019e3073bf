"""The job systems on PostgreSQL, by name; imported when they are used: not each is everywhere."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from goncordia_bench.harness.system import System

__all__ = ["FLOOR", "ON_POOL", "OURS", "PEERS", "PYTHON", "SLOW", "system_of"]

OURS: Final = "goncordia"
ON_POOL: Final = "goncordia, your pool"
FLOOR: Final = "floor"
PEERS: Final = ("pgqueuer", "awa", "oban", "procrastinate")
SLOW: Final = frozenset({"procrastinate"})
"""So slow that they are given fewer jobs."""
PYTHON: Final = {"oban": (3, 12)}
"""The oldest Python, where it is not ours."""

_PLACES: Final = {
    OURS: "ours.postgres:GoncordiaSystem",
    ON_POOL: "ours.postgres:GoncordiaOnPoolSystem",
    FLOOR: "floor.postgres:FloorSystem",
    "pgqueuer": "peers.pgqueuer_peer:PgQueuerSystem",
    "awa": "peers.awa_peer:AwaSystem",
    "oban": "peers.oban_peer:ObanSystem",
    "procrastinate": "peers.procrastinate_peer:ProcrastinateSystem",
}


def system_of(name: str) -> type[System]:
    """The system of that name."""
    module, _, attribute = _PLACES[name].partition(":")
    found: type[System] = getattr(import_module(f"goncordia_bench.{module}"), attribute)
    return found
