"""The stand-in of the heartbeat thread: the real one, but for the thread.

It looks at the loop, beats and reports by the same code. What blocks in the real thread, the wait
and the beat, goes by timers and requests that a blocked event loop does not hold back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, cast

from goncordia.driver import Beat
from goncordia.engine import heart_thread
from goncordia.engine.events import LoopBlocked
from goncordia.engine.heart_thread import HeartThread
from goncordia.errors import DriverError

from .driver import SimHeartbeater

__all__ = ["SimHeart"]

_RETRY_SHARE = heart_thread._RETRY_SHARE
_LOOK = heart_thread._LOOK


class SimHeart(HeartThread):
    """Replaces `HeartThread` in the engine for the time of a simulation."""

    def start(self) -> None:
        heartbeater = cast("SimHeartbeater", self._make())
        self._driver = heartbeater.driver
        self._process = heartbeater.driver.process
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None
        self._wait()

    def beat_now(self) -> None:
        self._due = self._clock.monotonic()
        if self._timer is not None:
            self._timer.cancel()
            self._loop.call_soon(self._process.deliver_to_thread, self._turn_of_thread)

    async def stop(self) -> None:
        self._stopping.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()
        for answer in self._answers:
            answer.cancel()

    def _wait(self) -> None:
        if self._stopping.is_set() or self._process.dead:
            return
        nap = max(1e-6, min(_LOOK, self._due - self._clock.monotonic()))  # time must move
        self._timer = self._loop.call_later(
            nap, self._process.deliver_to_thread, self._turn_of_thread
        )

    def _turn_of_thread(self) -> None:
        """What the thread does between two waits."""
        self._timer = None
        if self._stopping.is_set():
            return
        self._watch_loop()
        if self._clock.monotonic() < self._due:
            self._wait()
        elif self._stalled or not self._session.is_open:
            self._due = self._clock.monotonic() + self._interval
            self._wait()
        else:
            self._asking = self._loop.create_task(self._ask())

    async def _ask(self) -> None:
        """`HeartThread._beat`, over the network."""
        session, sent = self._session.id, self._clock.monotonic()
        beat: Beat | None = None
        with contextlib.suppress(DriverError):  # a failed beat is repeated, soon
            beat = await self._driver.beat_from_thread(session, self._session.lease)
        if self._process.dead or self._stopping.is_set():
            return
        now = self._clock.monotonic()
        self._due = now + (self._interval * _RETRY_SHARE if beat is None else self._interval)
        if beat is not None:
            answer = beat
            if answer.held:
                self._session.renewed(session, sent)
            self._on_loop(lambda: self._answer(session, sent, answer))
        self._wait()

    def _report(self, blocked: float) -> None:
        event = LoopBlocked(blocked, None, None, "simulated")
        self._on_loop(lambda: self._observe(event))

    def _on_loop(self, call: Callable[[], Any]) -> None:
        self._loop.call_soon(self._process.deliver, call)
