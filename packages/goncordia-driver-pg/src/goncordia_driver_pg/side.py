"""Connections that are not of a pool: the heartbeat's and the listener's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

from goncordia_driver_pg.connections import AsyncConnection

__all__ = ["BOUND", "Connect", "SideConnection"]

BOUND: Final = 5.0
"""Seconds for connecting, and for one statement."""


class SideConnection(AsyncConnection, Protocol):
    """A connection of its own, for one task at a time."""

    def renew(self) -> None:
        """See :meth:`Progress.renew`."""
        ...

    async def listen(self, channel: str, /) -> None:
        """Keep what is notified on this channel from now on."""
        ...

    async def hear(self, seconds: float, /) -> list[str]:
        """The messages that came; waits for the first one, for so long. Empty: it is quiet.

        Raises:
            Exception: the library's, when the connection is lost.
        """
        ...

    async def ping(self) -> None:
        """Ask the server for a sign of life."""
        ...

    async def aclose(self) -> None:
        """Close it, whatever its state. Bounded in time; raises nothing but a cancellation."""
        ...


Connect: TypeAlias = Callable[[], Awaitable[SideConnection]]
"""Makes one, bounded in time. Raises the library's errors."""
