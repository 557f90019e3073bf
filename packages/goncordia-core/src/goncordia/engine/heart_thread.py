"""The heartbeat in a thread of its own, which also watches the event loop.

So a handler that blocks the loop costs latency and not the session, and is named. The thread
beats only while the loop has turned within the stall limit: a pool whose loop is dead for good
must lose its jobs to others.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Final

from goncordia.clock import Clock
from goncordia.driver import Beat, Heartbeater
from goncordia.engine.events import LoopBlocked, Observers
from goncordia.engine.logs import Failures
from goncordia.engine.run import Run
from goncordia.engine.session import Session
from goncordia.logs import fields_of

__all__ = ["HeartThread"]

_logger = logging.getLogger("goncordia.engine")

_LOOK: Final = 0.5
_BLOCKED: Final = 1.0
_RETRY_SHARE: Final = 0.1
_LAST: Final = 5.0
"""Seconds for which a beat under way is waited for when the thread is to end."""


class HeartThread:
    """Beats the session through ``driver.heartbeater()``.

    Args:
        first: the heartbeater to begin with; used in the thread alone.
        make: gives another one after a failure; called in the thread.
        session: what to beat.
        clock: the pool's.
        interval: seconds between beats.
        stall_limit: seconds without a turn of the loop after which it stops beating.
        observe: told, on the loop, when the loop was blocked.
        runs_in: the code object whose frames hold the blocking run in ``run``.
    """

    def __init__(
        self,
        first: Heartbeater,
        make: Callable[[], Heartbeater | None],
        session: Session,
        clock: Clock,
        *,
        interval: float,
        stall_limit: float,
        observe: Observers,
        runs_in: CodeType,
    ) -> None:
        self._make = make
        self._session = session
        self._clock = clock
        self._interval = interval
        self._stall_limit = stall_limit
        self._observe = observe
        self._runs_in = runs_in
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._turned = clock.monotonic()
        self._pinged = self._turned
        self._due = self._turned + interval
        self._reported = False
        self._stalled = False
        self._heartbeater: Heartbeater | None = first
        self._answers: set[asyncio.Task[None]] = set()
        self._failures = Failures("a beat")
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="goncordia-heart", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def beat_now(self) -> None:
        """Do not wait for the interval: a cancel was requested."""
        self._due = self._clock.monotonic()
        self._wake.set()

    async def stop(self) -> None:
        """End the thread, and wait until its connection is closed."""
        self._stopping.set()
        self._wake.set()
        # Not by the loop's executor: its threads may all be with what handlers have left behind.
        await asyncio.wait((self._ended,), timeout=_LAST)
        if self._ended.done():
            self._thread.join()  # it was its last word
        for answer in self._answers:
            answer.cancel()

    # ---------------------------------------------------------------- in the thread

    def _run(self) -> None:
        while not self._stopping.is_set():
            now = self._clock.monotonic()
            self._wake.wait(max(0.0, min(_LOOK, self._due - now)))
            self._wake.clear()
            self._watch_loop()
            if not self._stopping.is_set() and self._clock.monotonic() >= self._due:
                self._due = self._clock.monotonic() + self._interval
                if not self._beat():
                    soon = self._clock.monotonic() + self._interval * _RETRY_SHARE
                    self._due = min(self._due, soon)
        self._drop_heartbeater()
        self._on_loop(lambda: self._ended.set_result(None))

    def _beat(self) -> bool:
        """Beat once; False: try again soon."""
        if self._stalled or not self._session.is_open:
            return True
        session, sent = self._session.id, self._clock.monotonic()
        try:
            if self._heartbeater is None:
                self._heartbeater = self._make()
            if self._heartbeater is None:
                return False
            beat = self._heartbeater.beat(session, self._session.lease)
        except Exception as error:  # noqa: BLE001  # a failed beat is repeated, soon
            self._failures.failed(error)
            self._drop_heartbeater()
            return False
        self._failures.succeeded()
        if beat.held:
            self._session.renewed(session, sent)
        self._on_loop(lambda: self._answer(session, sent, beat))
        return True

    def _drop_heartbeater(self) -> None:
        if self._heartbeater is not None:
            try:
                self._heartbeater.close()
            except Exception as error:  # noqa: BLE001  # it was broken already
                _logger.debug("closing the heartbeater failed: %s", error)
            self._heartbeater = None

    def _watch_loop(self) -> None:
        now = self._clock.monotonic()
        if self._turned >= self._pinged:
            self._pinged, self._reported, self._stalled = now, False, False
            self._on_loop(self._turn)
            return
        blocked = now - self._pinged
        if blocked >= _BLOCKED and not self._reported:
            self._reported = True
            self._report(blocked)
        if blocked >= self._stall_limit and not self._stalled:
            self._stalled = True
            _logger.error(
                "the event loop has not turned for %.0f s: no more beats, others may take the jobs",
                blocked,
            )

    def _report(self, blocked: float) -> None:
        frame = sys._current_frames().get(self._loop_thread)  # pyright: ignore[reportPrivateUsage]  # documented; there is no other way to look at a thread
        run = self._run_in(frame)
        where = _place(frame)
        event = LoopBlocked(
            blocked, run.row.id if run else None, run.row.kind if run else None, where
        )
        _logger.warning(
            "the event loop is blocked for %.1f s%s at %s",
            blocked,
            f" by job {run.row.id} ({run.row.kind})" if run else "",
            where,
            extra=fields_of(run.row) if run else None,
        )
        self._on_loop(lambda: self._observe(event))

    def _run_in(self, frame: FrameType | None) -> Run | None:
        while frame is not None:
            if frame.f_code is self._runs_in:
                run = frame.f_locals.get("run")
                return run if isinstance(run, Run) else None
            frame = frame.f_back
        return None

    def _on_loop(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop is closed: the process ends
            self._stopping.set()

    # ---------------------------------------------------------------- on the loop

    def _turn(self) -> None:
        self._turned = self._clock.monotonic()

    def _answer(self, session: object, sent: float, beat: Beat) -> None:
        if session != self._session.id:
            return
        answer = self._loop.create_task(self._session.beaten(self._session.id, sent, beat))
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)


def _place(frame: FrameType | None) -> str:
    """Where the thread stands."""
    if frame is None:
        return "unknown"
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
