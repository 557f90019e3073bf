"""Enqueueing on Redis: one by one, from a coroutine and from a plain function, and many at once."""

from __future__ import annotations

from typing import Final

from goncordia_bench.cases.redis.common import AT_ONCE, against_peers, emptied, subjects
from goncordia_bench.harness.children import child
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting
from goncordia_bench.systems_redis import FLOOR, OURS, PEERS, SYSTEMS

__all__ = ["ENQUEUE", "ENQUEUE_MANY"]

_BOTH: Final = frozenset({OURS, FLOOR})
_NAMES: Final = (OURS, FLOOR, *PEERS)


def _rate(name: str, url: str, jobs: int, *words: str) -> float:
    told = child(name, "produce", url, "--jobs", f"{jobs}", *words)
    return float(jobs / told["seconds"])


def _one_by_one(name: str, setting: Setting) -> Figures:
    jobs = setting.size(10_000, 200, 5_000)
    ways = ("async", "sync") if name in _BOTH else (SYSTEMS[name].way,)
    with emptied(setting, name) as server:
        rates = {f"{way} jobs/s": _rate(name, server.url, jobs, "--way", way) for way in ways}
    return {**rates, "jobs/s": rates[f"{SYSTEMS[name].way} jobs/s"]}


def _theirs(way: str) -> tuple[str, ...]:
    return tuple(name for name in PEERS if SYSTEMS[name].way == way)


ENQUEUE: Final = Case(
    "redis-enqueue",
    "Redis: enqueueing one by one",
    """
A loop that waits for each call. No worker runs. *async* from a coroutine on uvloop, *sync* from a
plain function; a peer has one or the other. The floor is one script call of bare redis-py, the args
encoded by msgspec. 10,000 jobs; in a brief run 5,000.
""",
    subjects(_one_by_one, _NAMES),
    tuple(
        measure
        for way in ("async", "sync")
        for measure in (
            Measure(
                f"enqueue, {way}, against one script call",
                Key(OURS, f"{way} jobs/s"),
                Key(FLOOR, f"{way} jobs/s"),
                unit="jobs/s",
                at_least=0.9,
            ),
            *against_peers(f"enqueue, {way}", Key(OURS, f"{way} jobs/s"), names=_theirs(way)),
        )
    ),
    needs_redis=True,
)


def _many(name: str, setting: Setting) -> Figures:
    full = setting.size(50_000, 2_000, 5_000 if name in PEERS else None)
    jobs = int(full * SYSTEMS[name].share)
    with emptied(setting, name) as server:
        return {"jobs/s": _rate(name, server.url, jobs, "--at-once", f"{AT_ONCE}")}


ENQUEUE_MANY: Final = Case(
    "redis-enqueue-many",
    "Redis: enqueueing many at once",
    f"""
{AT_ONCE:,} jobs at a time, in the fastest way that each system documents: RQ and streaQ by
`enqueue_many`; the other peers know no batch, so 20 calls at once from coroutines (SAQ: as many as
it lets through), or one after the other. The floor is one script call of bare redis-py. 50,000 jobs
(RQ: 5,000); in a brief run 5,000 for the peers (RQ: 500).
""",
    subjects(_many, _NAMES),
    (
        Measure(
            "enqueue_many, against one script call",
            Key(OURS, "jobs/s"),
            Key(FLOOR, "jobs/s"),
            unit="jobs/s",
            at_least=0.6,
        ),
        *against_peers("enqueue_many", Key(OURS, "jobs/s")),
    ),
    needs_redis=True,
)
