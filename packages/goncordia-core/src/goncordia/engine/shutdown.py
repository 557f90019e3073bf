"""The end of a pool that is told to stop: in order, and in bounded time.

A backend that is away must not keep the pool for ever. What it did not take in time is told, and
left to the lease: another pool takes these jobs back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

from goncordia.clock import Clock
from goncordia.engine.claims import Claims
from goncordia.engine.dispatch import Dispatcher
from goncordia.engine.lanes import Lanes
from goncordia.engine.run import Cause, Run
from goncordia.engine.signal import Signal
from goncordia.logs import fields_of

__all__ = ["Shutdown"]

_logger = logging.getLogger("goncordia.engine")

_INTERRUPT_GRACE: Final = 5.0
"""Seconds for which a shutdown waits for handlers that it interrupted."""

_STORE_GRACE: Final = 5.0
"""Seconds, at least, that results have to be stored once no handler runs any more."""

_CLOSE_GRACE: Final = 5.0
"""Seconds for what is only polite, such as closing the session."""


class Shutdown:
    """Ends the work of one pool.

    Args:
        claims: the pool's.
        lanes: send what is left.
        dispatcher: interrupts what runs.
        clock: the pool's.
        changed: set when a claim was answered, or nothing runs any more.
        timeout: seconds that running handlers have.
    """

    def __init__(
        self,
        claims: Claims,
        lanes: Lanes,
        dispatcher: Dispatcher,
        clock: Clock,
        changed: Signal,
        *,
        timeout: float,
    ) -> None:
        self._claims = claims
        self._lanes = lanes
        self._dispatcher = dispatcher
        self._clock = clock
        self._changed = changed
        self._timeout = timeout

    async def wind_down(self) -> bool:
        """Wait until nothing runs and every result is answered, or the time for it is over.

        Returns:
            False: a handler goes on in spite of all.
        """
        until = self._clock.monotonic() + self._timeout
        if not await self._settle(self._timeout):
            self.interrupt(f"shutdown_timeout ({self._timeout:g} s) is over")
            await self._settle(_INTERRUPT_GRACE)
        stubborn = list(self._claims.running)
        for run in stubborn:
            _logger.error(
                "job %s (%s) goes on after the shutdown; its session is left to its lease",
                run.row.id,
                run.row.kind,
                extra=fields_of(run.row),
            )
            self._claims.dropped(run)
        # One more lane: where the loop itself ends, the others were cancelled like every task.
        left = max(_STORE_GRACE, until - self._clock.monotonic())
        await self._within(left, self._lanes.run())
        return not stubborn

    def interrupt(self, why: str) -> None:
        """Interrupt all that runs, and say so."""
        for run in list(self._claims.running):
            if run.cause is None and run.job is not None:
                _logger.warning(
                    "job %s (%s) is interrupted: %s",
                    run.row.id,
                    run.row.kind,
                    why,
                    extra=fields_of(run.row),
                )
            self._dispatcher.interrupt(run, Cause.SHUTDOWN)

    def forget(self) -> int:
        """Give up the claims that were not answered, and say which; how many.

        To be called when nothing sends any more.
        """
        claims = self._claims
        claims.take(claims.unsent)
        unstored = list(claims)
        for run in unstored:
            _tell_unstored(run)
        claims.answered(*unstored)
        return len(unstored)

    async def politely(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what is only polite: not for long."""
        await self._within(_CLOSE_GRACE, work)

    async def _settle(self, seconds: float) -> bool:
        """Wait until nothing runs, for so long; whether that is so."""
        until = self._clock.monotonic() + seconds
        while self._claims.running:
            left = until - self._clock.monotonic()
            if left <= 0:
                return False
            await self._changed.wait(left)
        return True

    async def _within(self, seconds: float, work: Coroutine[Any, Any, None]) -> None:
        """Do the work, and give it up after so many seconds."""
        task = asyncio.get_running_loop().create_task(work)
        timer = self._clock.call_later(seconds, task.cancel)
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            raise
        finally:
            timer.cancel()
        if not task.cancelled():
            task.result()


def _tell_unstored(run: Run) -> None:
    to = "none" if run.finish is None else run.finish.to
    _logger.log(
        logging.WARNING if to == "release" else logging.ERROR,
        "job %s (%s): the shutdown was over before its result (%s) was stored; if it is not, "
        "the job is taken back when the lease is over",
        run.row.id,
        run.row.kind,
        to,
        extra=fields_of(run.row),
    )
