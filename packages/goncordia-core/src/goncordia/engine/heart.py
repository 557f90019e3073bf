"""The heartbeat on the event loop, for drivers without a heartbeater and for given clocks."""

from __future__ import annotations

from typing import Final

from goncordia.clock import Clock
from goncordia.driver import BaseExecutor
from goncordia.engine.calls import Calls
from goncordia.engine.logs import Failures
from goncordia.engine.session import Session
from goncordia.engine.signal import Signal

__all__ = ["LoopHeart"]


_RETRY_SHARE: Final = 0.1


class LoopHeart:
    """Beats the session from the loop.

    Args:
        executor: the driver's.
        session: what to beat.
        calls: how to call the driver.
        clock: the pool's.
        interval: seconds between beats; after a failed one a tenth of it.
    """

    def __init__(
        self,
        executor: BaseExecutor,
        session: Session,
        calls: Calls,
        clock: Clock,
        *,
        interval: float,
    ) -> None:
        self._executor = executor
        self._session = session
        self._calls = calls
        self._interval = interval
        self._early = Signal(clock)
        self._failures = Failures("a beat")
        self._clock = clock

    def beat_now(self) -> None:
        """Do not wait for the interval: a cancel was requested."""
        self._early.set()

    async def run(self) -> None:
        """Beat for ever."""
        nap = self._interval
        while True:
            await self._early.wait(nap)
            nap = self._interval
            if not self._session.is_open:
                continue
            session, sent = self._session.id, self._clock.monotonic()
            try:
                beat = await self._calls.once(
                    self._executor.session_beat(session, self._session.lease)
                )
            except Exception as error:  # noqa: BLE001  # a failed beat is repeated, soon
                self._failures.failed(error)
                nap = self._interval * _RETRY_SHARE
                continue
            self._failures.succeeded()
            await self._session.beaten(session, sent, beat)
