"""Beating a session from a thread of its own, on a connection of its own."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from goncordia.driver import Beat
from goncordia_driver_redis.clients.links import SyncLink
from goncordia_driver_redis.operations import Operations
from goncordia_driver_redis.runner import SyncRunner
from goncordia_driver_redis.schema import verify

__all__ = ["RedisHeartbeater"]

_BOUND: Final = 5.0
"""Seconds for connecting, and for an answer, at most."""


class RedisHeartbeater:
    """Beats on a synchronous connection.

    The first beat on a connection looks at the schema before it.

    Args:
        runner: runs operations.
        operations: the driver's.
        prefix: the installation's, for messages.
    """

    def __init__(self, runner: SyncRunner, operations: Operations, prefix: str) -> None:
        self._runner = runner
        self._operations = operations
        self._prefix = prefix
        self._link: SyncLink | None = None
        self._bound = 0.0

    def beat(self, session: UUID, lease: float, /) -> Beat:
        """See :meth:`Heartbeater.beat`."""
        bound = min(_BOUND, lease / 6)
        if bound != self._bound:
            self.close()
            self._bound = bound
        link, self._link = self._link, None
        if link is not None and not link.is_usable():
            link.close()
            link = None
        if link is None:
            link = self._connected()
        # It is kept only when the beat was answered.
        try:
            beat = self._runner.run_on(link, self._operations.session_beat(session, lease))
        except BaseException:
            link.close()
            raise
        self._link = link
        return beat

    def _connected(self) -> SyncLink:
        link = self._runner.connected(self._bound)
        try:
            self._runner.run_on(link, verify(self._operations, self._prefix))
        except BaseException:
            link.close()
            raise
        return link

    def close(self) -> None:
        """Close the connection."""
        link, self._link = self._link, None
        if link is not None:
            link.close()
