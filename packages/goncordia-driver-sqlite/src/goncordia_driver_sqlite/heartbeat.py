"""Beating a session from a thread of its own."""

from __future__ import annotations

from uuid import UUID

from goncordia.driver import Beat
from goncordia_driver_sqlite.core import Core

__all__ = ["SqliteHeartbeater"]


class SqliteHeartbeater:
    """Beats on a connection of its own, so that no request of the pool can hold a beat up."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lane = core.heart_lane()

    def beat(self, session: UUID, lease: float, /) -> Beat:
        """See :meth:`Heartbeater.beat`."""
        return self._lane.call(lambda: self._core.operations.sessions.session_beat(session, lease))

    def close(self) -> None:
        """Close the connection."""
        self._lane.close()
