"""Hearing of new jobs, with another listener when one fails; polling goes on all the same."""

from __future__ import annotations

import logging
from collections.abc import Callable

from goncordia.driver import AnyDriver, DirectListener, Listener, Wake
from goncordia.engine.calls import Calls

__all__ = ["Listening"]

_logger = logging.getLogger("goncordia.engine")


class Listening:
    """Listens while the pool works.

    Args:
        driver: gives the listeners.
        calls: for the pauses between two of them.
        woken: told of each wake.
    """

    def __init__(self, driver: AnyDriver, calls: Calls, woken: Callable[[Wake], None]) -> None:
        self._driver = driver
        self._backoff = calls.backoff()
        self._woken = woken
        self._listener: Listener | None = None

    async def run(self) -> None:
        """Listen until the listener is closed, or at once not if the driver has none."""
        while True:
            try:
                self._listener = self._driver.listener()
                if self._listener is None:
                    return
                if isinstance(self._listener, DirectListener):
                    await self._listener.wakes_to(self._heard)
                    return
                async for wake in self._listener.wakes():
                    self._heard(wake)
            except Exception as error:  # noqa: BLE001  # whatever a driver raises
                await self.close()
                await self._backoff.pause(error, "listening for jobs")
                self._woken(Wake("gap"))
            else:
                return

    def _heard(self, wake: Wake) -> None:
        self._backoff.reset()
        self._woken(wake)

    async def close(self) -> None:
        """Stop listening."""
        listener, self._listener = self._listener, None
        if listener is None:
            return
        try:
            await listener.aclose()
        except Exception as error:  # noqa: BLE001  # it was broken already
            _logger.debug("closing a listener failed: %s", error)
