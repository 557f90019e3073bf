"""The version of the layout, and what a new listener needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations.base import Topic, nothing
from goncordia_driver_redis.operations.call import Op

__all__ = ["LAYOUT", "Layout", "LayoutTopic"]

LAYOUT: Final = 1
"""The version of the layout that this code writes."""

_OLDEST: Final = 1
_READ: Final = load_script("schema_read")
_WRITE: Final = load_script("schema_write")
_LISTEN: Final = load_script("listen")


@dataclass(frozen=True, slots=True)
class Layout:
    """What an installation says of itself.

    Attributes:
        version: of its layout.
        oldest: the version that code must know at least to work with it.
    """

    version: int
    oldest: int


class LayoutTopic(Topic):
    """Versions count up from 1."""

    def schema_read(self) -> Op[Layout | None]:
        """The layout of the installation; None: it was never migrated."""

        def parse(answer: Any) -> Layout | None:
            version, oldest = answer
            return None if version is None else Layout(int(version), int(oldest))

        layout: Layout | None = yield self._call(_READ, parse)
        return layout

    def schema_write(self) -> Op[int]:
        """Migrate to ``LAYOUT``; gives the version before, 0: none. Safe to race and to repeat."""
        before: int = yield self._call(_WRITE, int, LAYOUT, _OLDEST)
        return before

    def listen(self) -> Op[None]:
        """Say that somebody has begun to listen: until then, wake-ups may have gone unheard.

        Every listener calls it once it is subscribed, each time anew.
        """
        yield self._call(_LISTEN, nothing)
