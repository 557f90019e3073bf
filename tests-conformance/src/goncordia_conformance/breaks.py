"""The way between a driver and its backend, which breaks at the point that a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeAlias

from goncordia.driver import AnyDriver
from goncordia.errors import DriverUnavailableError
from goncordia_conformance.faults import Side
from goncordia_conformance.proxy import Break, ChaosProxy, Direction

__all__ = ["Breaks", "Link", "NetworkLink", "connected"]

_DIRECTIONS: dict[Side, Direction] = {"before": "up", "after": "down"}
_PATIENCE = 60.0
_TRIES = 20


class Link(Protocol):
    """A driver on the store under test, and its way to the backend, which breaks once."""

    @property
    def driver(self) -> AnyDriver:
        """The driver; whoever made it closes it."""
        ...

    @property
    def freezes(self) -> bool:
        """Whether its calls end soon by themselves, so that the way may freeze, too."""
        ...

    def plan(self, at: int, side: Side, how: Break) -> None:
        """Let the way break at one of the messages that are sent from now on.

        Args:
            at: at which of them, counted from 0.
            side: ``before``: at a request; ``after``: at an answer.
            how: ``cut``: the message is lost, and all connections with it. ``gone``: also, new
                ones cannot be made. ``frozen``: nothing goes on, and all comes late.
        """

    async def mend(self) -> bool:
        """Let everything through again, and what is late arrive; whether it had broken."""
        ...


Breaks: TypeAlias = Callable[[], AbstractAsyncContextManager[Link]]
"""``async with breaks() as link:`` a driver on the store, with a way that breaks."""


class NetworkLink:
    """:class:`Link` for a driver that reaches its backend by TCP.

    Args:
        proxy: before the backend.
        driver: a driver that knows the backend by the proxy's address alone.
        freezes: whether its calls end within a second or so when no answer comes.
    """

    def __init__(self, proxy: ChaosProxy, driver: AnyDriver, *, freezes: bool = False) -> None:
        self.proxy = proxy
        self.driver = driver
        self.freezes = freezes
        self._how: Break = "cut"

    @classmethod
    @asynccontextmanager
    async def of(
        cls, dsn: str, make: Callable[[str], AnyDriver], *, freezes: bool = False
    ) -> AsyncGenerator[NetworkLink, None]:
        """That of a driver, which is closed at the end.

        Args:
            dsn: where the backend is.
            make: makes the driver, for a DSN that leads through the proxy.
            freezes: as of the class.

        Raises:
            ConfigurationError: the DSN names no host or no port.
        """
        with ChaosProxy.of(dsn) as proxy:
            link = cls(proxy, make(proxy.before(dsn)), freezes=freezes)
            try:
                yield link
            finally:
                await link.close()

    async def close(self) -> None:
        """Close the driver."""
        await self.driver.aclose()
        await asyncio.to_thread(self.driver.close)

    def plan(self, at: int, side: Side, how: Break) -> None:
        """See :meth:`Link.plan`."""
        self._how = how
        self.proxy.break_at(at, _DIRECTIONS[side], how)

    async def mend(self) -> bool:
        """See :meth:`Link.mend`."""
        broke = self.proxy.spare()
        if broke and self._how == "frozen":
            # What was held up arrives now: the backend has done with it when it has hung up.
            await self.close()
            async with asyncio.timeout(_PATIENCE):
                while self.proxy.connections:  # noqa: ASYNC110 - the proxy tells nobody
                    await asyncio.sleep(0.01)
            await connected(self.driver)
        return broke


async def connected(driver: AnyDriver) -> None:
    """Let a driver that waits only for a moment get ready, on a machine that may be slow."""
    for _ in range(_TRIES):
        try:
            await driver.ready()
            return
        except DriverUnavailableError:
            pass
    raise AssertionError(f"not ready in {_TRIES} tries")
