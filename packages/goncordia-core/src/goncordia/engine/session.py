"""The pool's session: its unbroken hold on its claims."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final
from uuid import UUID

from goncordia._words import counted
from goncordia.clock import Clock
from goncordia.driver import BaseExecutor, Beat, Claim
from goncordia.engine.calls import Calls
from goncordia.engine.events import Observers, SessionLost, SessionOpened
from goncordia.ids import new_session_id

__all__ = ["Session"]

_logger = logging.getLogger("goncordia.engine")

_CLOSE_TRIES: Final = 3


class Session:
    """Opens sessions, keeps count of the lease, and says when it was lost.

    Attributes:
        id: the current session.
        is_open: it was opened, and is not known to be lost.
        good_until: when its lease is over by our own clock, unless a beat is answered.

    Args:
        executor: the driver's.
        calls: how to call it.
        clock: the pool's.
        worker_id: the pool's name.
        lease: seconds.
        observe: told of sessions opened and lost.
    """

    def __init__(
        self,
        executor: BaseExecutor,
        calls: Calls,
        clock: Clock,
        *,
        worker_id: str,
        lease: float,
        observe: Observers,
    ) -> None:
        self._executor = executor
        self._calls = calls
        self._clock = clock
        self._observe = observe
        self.worker_id = worker_id
        self.lease = lease
        self.id: UUID = new_session_id()
        self.is_open = False
        self.good_until = float("-inf")
        self._fetch_no = 0
        # The engine sets these; they are called on the loop.
        self.on_lost: Callable[[UUID], int] = lambda _: 0
        self.on_cancels: Callable[[tuple[Claim, ...]], None] = lambda _: None
        self.on_good: Callable[[], None] = lambda: None
        self.on_open: Callable[[], None] = lambda: None

    def good(self) -> bool:
        """Whether a handler may be started: by our own clock the lease is not over."""
        return self.is_open and self._clock.monotonic() < self.good_until

    def next_fetch_no(self) -> int:
        """A number that no fetch of this session had before."""
        self._fetch_no += 1
        return self._fetch_no

    @property
    def last_fetch_no(self) -> int:
        """The number of the newest fetch."""
        return self._fetch_no

    async def open(self) -> None:
        """Open a session, for as long as it takes. An id is asked for once."""
        backoff = self._calls.backoff()
        while True:
            self.id, self._fetch_no = new_session_id(), 0
            sent = self._clock.monotonic()
            try:
                await self._calls.once(
                    self._executor.session_open(self.id, self.worker_id, self.lease)
                )
            except Exception as error:  # noqa: BLE001  # whatever it was: the pool does not stop
                await backoff.pause(error, "opening a session")
                continue
            self.good_until = sent + self.lease
            self.is_open = True
            self._observe(SessionOpened(self.id))
            self.on_open()
            self.on_good()
            return

    def renewed(self, session: UUID, sent: float) -> None:
        """A beat that was sent then was answered. Safe from the heartbeat thread."""
        if session == self.id and self.is_open:
            self.good_until = max(self.good_until, sent + self.lease)

    async def beaten(self, session: UUID, sent: float, beat: Beat) -> None:
        """The answer to a beat. Answers about older sessions say nothing."""
        if session != self.id or not self.is_open:
            return
        if not beat.held:
            await self.lost(session)
            return
        self.renewed(session, sent)
        if beat.cancels:
            self.on_cancels(beat.cancels)
        self.on_good()

    async def lost(self, session: UUID) -> None:
        """Drop everything that hangs on the session, and go on under a new one."""
        if session != self.id or not self.is_open:
            return
        self.is_open = False
        self.good_until = float("-inf")
        runs = self.on_lost(session)
        _logger.warning(
            "session %s of %s was lost, %s interrupted",
            session,
            self.worker_id,
            counted(runs, "run"),
        )
        self._observe(SessionLost(session, runs))
        await self.open()

    async def close(self) -> None:
        """Give the session back; if the backend is away its lease will end it."""
        self.is_open = False
        backoff = self._calls.backoff()
        for _ in range(_CLOSE_TRIES):
            try:
                await self._calls.once(self._executor.session_close(self.id))
            except Exception as error:  # noqa: BLE001  # closing is a courtesy
                await backoff.pause(error, "closing the session")
            else:
                return
