"""What was evicted, or deleted by somebody else, is found and mended as far as it can be.

A job whose string is gone while it ran is gone, and must not keep its slot. A running job that no
session holds would run for ever.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations.base import Topic, as_it_is, nothing
from goncordia_driver_redis.operations.call import Op

__all__ = ["Mending", "Running"]

_SUMS: Final = load_script("running_sums")
_STRAYS: Final = load_script("strays")
_ADOPT: Final = load_script("adopt")
_RECOUNT: Final = load_script("recount")
_ID_BYTES: Final = 16


class Running(NamedTuple):
    """How many jobs run.

    Attributes:
        counted: as the queues count them.
        held: by sessions; the same, unless keys were lost.
    """

    counted: int
    held: int


class Mending(Topic):
    """It costs next to nothing as long as nothing is missing."""

    def running(self) -> Op[Running]:
        """How many jobs run, counted in two ways."""
        sums: Running = yield self._call(_SUMS, lambda answer: Running(*answer))
        return sums

    def strays(self, limit: int) -> Op[list[UUID]]:
        """Running jobs that no session holds, so many at most: a look at all jobs, in steps."""
        found: list[UUID] = []
        bound = b"+"
        while bound and len(found) < limit:
            start, ids = yield self._call(_STRAYS, as_it_is, bound)
            found += [UUID(bytes=ids[at : at + 16]) for at in range(0, len(ids), _ID_BYTES)]
            bound = start and b"(" + start
        return found[:limit]

    def mend(self) -> Op[None]:
        """Bring what runs, what is held and what is counted in step, where they differ."""
        sums = yield from self.running()
        if sums.counted == sums.held:
            return
        bound = b"+"
        while bound:
            start, ids = yield self._call(_STRAYS, as_it_is, bound)
            if ids:
                yield self._call(_ADOPT, nothing, ids)
            bound = start and b"(" + start
        yield self._call(_RECOUNT, nothing)
