"""What was evicted, or deleted by somebody else, is found and mended as far as it can be.

A job whose string is gone while it ran is gone, and must not keep its slot. A running job that no
session holds would run for ever, and one that waits outside its line would never run.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations.base import Topic, as_it_is, nothing
from goncordia_driver_redis.operations.call import Op

__all__ = ["Mending", "Sums"]

_SUMS: Final = load_script("sums")
_STRAYS: Final = load_script("strays")
_ADOPT: Final = load_script("adopt")
_RECOUNT: Final = load_script("recount")
_PUT_BACK: Final = load_script("put_back")
_ID_BYTES: Final = 16
_ALL: Final = b"+"
"""The bound for the last chunk of the index."""


class Sums(NamedTuple):
    """How many jobs there are, counted in several ways: they agree, unless keys were lost.

    Attributes:
        counted: that run, as the queues count them.
        held: that run, as the sessions hold them.
        grouped: that run and have groups, as the groups count them.
        grouped_held: that run and have groups, as the sessions hold them.
        indexed: all, as the index counts them.
        placed: all, as they stand in lines and lists.
        lost: 1 when a line is known to be missing, else 0.
    """

    counted: int
    held: int
    grouped: int
    grouped_held: int
    indexed: int
    placed: int
    lost: int

    @property
    def slots_agree(self) -> bool:
        """Whether what runs is held, and what is held runs."""
        return self.counted == self.held and self.grouped == self.grouped_held

    @property
    def all_placed(self) -> bool:
        """Whether no job is known to stand outside the lines and lists.

        More may stand there than there are: of what is gone they are rid when its turn comes.
        """
        return self.indexed <= self.placed and not self.lost


class Mending(Topic):
    """It costs next to nothing as long as nothing is missing."""

    def sums(self) -> Op[Sums]:
        """How many jobs there are, in one step."""
        sums: Sums = yield self._call(_SUMS, lambda answer: Sums(*answer))
        return sums

    def strays(self, limit: int) -> Op[list[UUID]]:
        """Running jobs that no session holds, so many at most: a look at all jobs, in steps."""
        found: list[UUID] = []
        bound = _ALL
        while bound and len(found) < limit:
            start, ids = yield self._call(_STRAYS, as_it_is, bound)
            found += [UUID(bytes=ids[at : at + 16]) for at in range(0, len(ids), _ID_BYTES)]
            bound = _below(start)
        return found[:limit]

    def mend(self) -> Op[None]:
        """Bring what is counted, held and listed in step with the jobs, where they differ.

        First the slots: who is shown in a line goes by them.
        """
        sums = yield from self.sums()
        if sums.slots_agree and sums.all_placed:
            return
        bound = _ALL
        while bound:
            start, ids = yield self._call(_STRAYS, as_it_is, bound)
            if ids:
                yield self._call(_ADOPT, nothing, ids)
            bound = _below(start)
        yield self._call(_RECOUNT, nothing)
        bound = _ALL
        while bound:
            bound = _below((yield self._call(_PUT_BACK, as_it_is, bound)))


def _below(start: bytes) -> bytes:
    """The bound for the next chunk of the index, before this start; empty: there is none."""
    return start and b"(" + start
