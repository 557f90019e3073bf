"""One of something for each event loop: a pool of connections is good on one loop only."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

__all__ = ["PerLoop"]

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Makes one for each event loop that asks, at its first call.

    Args:
        make: makes it.
        close: closes it, on its own loop.
    """

    def __init__(
        self, make: Callable[[], Awaitable[T]], close: Callable[[T], Awaitable[None]]
    ) -> None:
        self._make = make
        self._close = close
        self._made: dict[asyncio.AbstractEventLoop, T] = {}
        self._making: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}

    def here(self) -> T | None:
        """The one of the running loop, if there is one."""
        return self._made.get(asyncio.get_running_loop())

    async def get(self) -> T:
        """The one of the running loop."""
        loop = asyncio.get_running_loop()
        made = self._made.get(loop)
        if made is not None:
            return made
        async with self._making.setdefault(loop, asyncio.Lock()):
            if loop not in self._made:
                self._forget_closed()
                self._made[loop] = await self._make()
            return self._made[loop]

    def _forget_closed(self) -> None:
        for loop in [each for each in self._made if each.is_closed()]:
            del self._made[loop]
            self._making.pop(loop, None)

    async def aclose(self) -> None:
        """Close them all. Those of loops that have ended are gone with them."""
        here = asyncio.get_running_loop()
        made, self._made, self._making = self._made, {}, {}
        for loop, each in made.items():
            if loop is here:
                await self._close(each)
            elif loop.is_running():
                with contextlib.suppress(RuntimeError):  # it has just ended
                    await asyncio.wrap_future(
                        asyncio.run_coroutine_threadsafe(_closing(self._close, each), loop)
                    )


async def _closing(close: Callable[[T], Awaitable[None]], each: T) -> None:
    await close(each)
