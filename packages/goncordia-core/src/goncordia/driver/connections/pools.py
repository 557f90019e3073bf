"""Connections that are kept for a while: for as long as a driver lives, or for a moment.

A pool of ours keeps its connections. Of a pool that was passed in, one that is in use again and
again is kept for the moment between two uses, as long as nobody else wants it: giving it back costs
a round trip each time. Taking a connection that is there and giving it back wait for nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Protocol, TypeVar

from goncordia.errors import DriverBusyError

__all__ = ["LONG", "MOMENT", "KeptConnection", "Pool", "within"]

T = TypeVar("T")

LONG: Final = 300.0
"""Seconds that a pool of ours keeps a connection without use."""
MOMENT: Final = 0.01
"""Seconds that one of a pool that was passed in is kept from one use to the next."""

_GRACE: Final = 1.0
"""Seconds more for making one: who makes it says better what was in the way."""
_CLOSING: Final = 5.0
"""Seconds that closing waits for connections that are being given up, at most."""
_ARRIVING: Final = 1.0
"""Seconds that it waits before that for those whose askers have gone; then they are cancelled."""


def within(seconds: float, make: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
    """The same, with a limit."""

    async def make_in_time() -> T:
        async with asyncio.timeout(seconds):
            return await make()

    return make_in_time


class KeptConnection(Protocol):
    """A connection that may be kept."""

    def renew(self) -> None:
        """Forget what was sent on it."""
        ...

    def is_usable(self) -> bool:
        """Whether it is open and in no transaction."""
        ...

    def is_wanted(self) -> bool:
        """Whether somebody else waits for it."""
        ...

    async def aclose(self) -> None:
        """Close it, or give it back, whatever its state. Bounded in time; raises nothing."""
        ...


C = TypeVar("C", bound=KeptConnection)


class Pool(Generic[C]):
    """Keeps connections, on one event loop.

    Args:
        make: makes one, or takes it from the caller's pool. Bounded in time.
        size: so many at most.
        timeout: seconds to wait for one.
        keep: seconds that one without use is kept.
    """

    def __init__(
        self, make: Callable[[], Awaitable[C]], *, size: int, timeout: float, keep: float
    ) -> None:
        self.size = size
        """How many it has at most."""
        self._make = make
        self._timeout = timeout
        self._keep = keep
        self._idle: list[C] = []
        self._since: list[float] = []
        self._count = 0
        self._waiters: deque[asyncio.Future[C | None]] = deque()
        self._sweeping: asyncio.TimerHandle | None = None
        self._arriving: set[asyncio.Task[C]] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def next(self) -> C | None:
        """The connection that :meth:`acquire` would give without waiting; None: it would wait."""
        return self._idle[-1] if self._idle and self._idle[-1].is_usable() else None

    async def acquire(self) -> C:
        """A connection, outside of any transaction.

        Raises:
            DriverBusyError: none became free in time.
        """
        while True:
            while self._idle:
                connection = self._idle.pop()
                self._since.pop()
                if connection.is_usable():
                    connection.renew()
                    return connection
                self._leave(connection)
            if self._count < self.size:
                return await self._another()
            connection_or_none = await self._wait()
            if connection_or_none is not None:
                return connection_or_none

    async def _another(self) -> C:
        """A new one. Who gives up waiting leaves it to whoever comes next.

        Else those who never wait for as long as connecting takes would never be connected.
        """
        self._count += 1
        making = asyncio.get_running_loop().create_task(self._made())
        try:
            await asyncio.wait((making,))
        except BaseException:
            self._arriving.add(making)
            making.add_done_callback(self._arrived)
            raise
        try:
            return making.result()
        except BaseException:
            self._gone()
            raise

    async def _made(self) -> C:
        async with asyncio.timeout(self._timeout + _GRACE):
            return await self._make()

    def _arrived(self, making: asyncio.Task[C]) -> None:
        """Nobody waits for it any more. If it failed, whoever comes next will see for himself."""
        self._arriving.discard(making)
        if making.cancelled() or making.exception() is not None:
            self._gone()
        else:
            self.release(making.result(), clean=True)

    async def _wait(self) -> C | None:
        """One that is given back; None: there is room for another."""
        waiter: asyncio.Future[C | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(self._timeout):
                return await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                self._pass_on(waiter.result())
            else:
                with contextlib.suppress(ValueError):
                    self._waiters.remove(waiter)
            if not isinstance(error, TimeoutError):
                raise
            raise DriverBusyError(
                f"none of the pool's {self.size} connections was free within {self._timeout:g} s",
                outcome="not_applied",
            ) from error

    def release(self, connection: C, *, clean: bool) -> None:
        """Give a connection back.

        Args:
            connection: one that was acquired.
            clean: False: something has gone wrong on it.
        """
        if self._closed or not clean or not connection.is_usable() or connection.is_wanted():
            self._leave(connection)
            return
        connection.renew()
        self._pass_on(connection)

    def _pass_on(self, connection: C | None) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        if connection is None:
            return
        loop = asyncio.get_running_loop()
        self._idle.append(connection)
        self._since.append(loop.time())
        if self._sweeping is None:
            self._sweeping = loop.call_later(self._keep, self._sweep)

    def _sweep(self) -> None:
        """Give up what nobody has used for a while: the oldest are at the bottom."""
        loop = asyncio.get_running_loop()
        self._sweeping = None
        until = loop.time() - self._keep
        old = 0
        while old < len(self._since) and self._since[old] <= until:
            old += 1
        leaving = self._idle[:old]
        del self._idle[:old], self._since[:old]
        for connection in leaving:
            self._leave(connection)
        if self._since:
            self._sweeping = loop.call_at(self._since[0] + self._keep, self._sweep)

    def _leave(self, connection: C) -> None:
        """Close it, or give it back, in the background."""
        task = asyncio.get_running_loop().create_task(connection.aclose())
        self._leaving.add(task)
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._leaving.discard(task)
        self._gone()

    def _gone(self) -> None:
        self._count -= 1
        self._pass_on(None)

    async def aclose(self) -> None:
        """Give up all connections that nobody holds; others are, when they are given back."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        idle, self._idle, self._since = self._idle, [], []
        for connection in idle:
            self._leave(connection)
        if self._arriving:
            _, late = await asyncio.wait(self._arriving, timeout=_ARRIVING)
            for making in late:
                making.cancel()
            if late:
                await asyncio.wait(late, timeout=_CLOSING)
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=_CLOSING)
