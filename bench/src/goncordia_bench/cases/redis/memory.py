"""What a waiting job takes of the server's memory."""

from __future__ import annotations

from typing import Final

from goncordia_bench.cases.redis.common import emptied, fill, marked, subjects
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting
from goncordia_bench.systems_redis import FLOOR, OURS, PEERS, SYSTEMS

__all__ = ["CASE"]

_SIX_DIGITS: Final = 100_000
_NAMES: Final = (OURS, *PEERS, FLOOR)


def _waiting(name: str, setting: Setting) -> Figures:
    full = setting.size(100_000, 2_000, 10_000 if name in PEERS else None)
    jobs = int(full * SYSTEMS[name].share)
    with emptied(setting, name) as server:
        before = server.memory()
        fill(name, server.url, jobs, _SIX_DIGITS)
        return {"bytes": (server.memory() - before) / jobs}


CASE: Final = Case(
    "redis-memory",
    "Redis: memory of a waiting job",
    """
What the server's `used_memory` grows by for each of 100,000 jobs that wait (RQ: 10,000; in a brief
run 10,000 of the peers, RQ: 1,000): args of 75 bytes as JSON, one queue, no tags; each system
serializes them as it does unless told.
""",
    subjects(_waiting, _NAMES),
    (
        Measure("a waiting job", Key(OURS, "bytes"), unit="bytes", at_most=400),
        *(
            Measure(f"a waiting job, {marked(name)}", Key(name, "bytes"), unit="bytes")
            for name in (*PEERS, FLOOR)
        ),
    ),
    once=True,
    needs_redis=True,
)
