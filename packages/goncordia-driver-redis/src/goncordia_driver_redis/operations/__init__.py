"""The operations of the contract, without I/O: generators of calls, for a runner to drive."""

from __future__ import annotations

from goncordia_driver_redis.operations.call import Argument, Call, Op, Script
from goncordia_driver_redis.operations.changing import Changing
from goncordia_driver_redis.operations.claiming import MAX_FETCH, Claiming
from goncordia_driver_redis.operations.inserting import MAX_INSERT, MAX_PAYLOAD, Inserting
from goncordia_driver_redis.operations.reading import Reading
from goncordia_driver_redis.operations.records import Records
from goncordia_driver_redis.operations.schema import LAYOUT, Layout, LayoutTopic
from goncordia_driver_redis.operations.sessions import Sessions

__all__ = [
    "LAYOUT",
    "MAX_FETCH",
    "MAX_INSERT",
    "MAX_PAYLOAD",
    "Argument",
    "Call",
    "Layout",
    "Op",
    "Operations",
    "Script",
]


class Operations(Inserting, Claiming, Changing, Reading, Sessions, Records, LayoutTopic):
    """All of them for one installation.

    Args:
        keys: the installation's.
        clock: where time comes from; None: the server.
        keep_finished: keep at most so many finished jobs of each state, whenever workers send
            results; None: all, until they are pruned.
    """
