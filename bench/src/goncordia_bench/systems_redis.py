"""The job systems on Redis, by name: where each is, and the environment that it runs in."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from goncordia_bench.harness.environment import pinned

__all__ = ["AFTER", "FLOOR", "OURS", "PEERS", "SYSTEMS", "System", "peer_versions"]

OURS: Final = "goncordia"
FLOOR: Final = "floor"


class System(NamedTuple):
    """One of them.

    Attributes:
        place: module and class.
        requirements: of its environment, a file in ``requirements/``; empty: this one.
        acknowledges: whether a worker that is killed loses what it had begun (``before``).
        way: how it enqueues: ``async`` or ``sync``.
        label: in plots.
        share: so slow that it is given a part of the jobs.
    """

    place: str
    requirements: str
    acknowledges: Literal["after", "before"]
    way: Literal["async", "sync"]
    label: str
    share: float = 1.0


SYSTEMS: Final = {
    OURS: System("ours.redis:GoncordiaPeer", "", "after", "async", "Goncordia"),
    FLOOR: System("floor.redis:FloorPeer", "", "after", "async", "redis-py alone"),
    "taskiq": System("peers.redis.taskiq_peer:TaskiqPeer", "newest", "after", "async", "Taskiq"),
    "dramatiq": System(
        "peers.redis.dramatiq_peer:DramatiqPeer", "newest", "after", "sync", "Dramatiq"
    ),
    "saq": System("peers.redis.saq_peer:SaqPeer", "saq", "after", "async", "SAQ"),
    "arq": System("peers.redis.arq_peer:ArqPeer", "arq", "after", "async", "arq"),
    "streaq": System("peers.redis.streaq_peer:StreaqPeer", "newest", "after", "async", "streaQ"),
    "celery": System("peers.redis.celery_peer:CeleryPeer", "newest", "after", "sync", "Celery"),
    "rq": System("peers.redis.rq_peer:RqPeer", "newest", "after", "sync", "RQ", share=0.1),
    "huey": System("peers.redis.huey_peer:HueyPeer", "newest", "before", "sync", "huey"),
}
PEERS: Final = tuple(name for name in SYSTEMS if name not in {OURS, FLOOR})
AFTER: Final = tuple(name for name in PEERS if SYSTEMS[name].acknowledges == "after")
"""Those that lose no job when a worker is killed."""


def peer_versions() -> dict[str, str]:
    """Of the peers, as their requirements fix them."""
    found: dict[str, str] = {}
    for name in PEERS:
        fixed = pinned(SYSTEMS[name].requirements)
        found[name] = fixed[name]
        if name == "taskiq":
            found["taskiq-redis"] = fixed["taskiq-redis"]
    return found
