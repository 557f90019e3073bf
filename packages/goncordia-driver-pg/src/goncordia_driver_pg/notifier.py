"""Saying what happened, after the commit and by the way.

NOTIFY takes a lock of the whole database for as long as its commit takes, so few inserts carry it.
What was committed without is collected; one statement at a time tells it, the first one at once.
While it is under way, and for a moment after it, everything that comes waits and goes as one
message.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from uuid import UUID

from goncordia.clock import Clock
from goncordia.driver import After, Change, Changed, Finish, InsertResult, NewJob, Outcome
from goncordia.errors import GoncordiaError
from goncordia_driver_pg.background import Background
from goncordia_driver_pg.gate import Gate
from goncordia_driver_pg.side import BOUND
from goncordia_sql.executors import Told
from goncordia_sql.postgres.notify import News

__all__ = ["Collector", "Notifier", "SyncNotifier"]

_logger = logging.getLogger("goncordia.postgresql")

_PAUSE: Final = 0.01
"""Seconds from one message to the next, at least."""


class Collector(Told):
    """Collects news of what is committed.

    Args:
        clock: tells when jobs for later are due.
        gate: knows which insert tells of itself; is told of the rest.
    """

    def __init__(self, clock: Clock, gate: Gate) -> None:
        self._clock = clock
        self._gate = gate
        self._lock = threading.Lock()
        self._news = News()

    @abstractmethod
    def say(self) -> None:
        """There is something to tell."""

    def carried(self, jobs: Sequence[NewJob]) -> str | None:
        """What the insert of these jobs is to tell by itself; None: :meth:`inserted` is."""
        if len(jobs) != 1 or not self._gate.passes():
            return None
        return News.of(jobs, self._clock.now().timestamp()).message()

    def take(self) -> News:
        """What there is to tell; from now on it is told."""
        with self._lock:
            news, self._news = self._news, News()
        return news

    # ---------------------------------------------------------------- what happened

    def inserted(self, jobs: Sequence[NewJob], results: Sequence[InsertResult], /) -> None:
        """See :meth:`Told.inserted`."""
        new = [
            job for job, result in zip(jobs, results, strict=True) if result.status == "INSERTED"
        ]
        if new:
            with self._lock:
                self._news.inserted(new, self._clock.now().timestamp())
            self.say()

    def finished(self, finishes: Sequence[Finish], outcomes: Sequence[Outcome], /) -> None:
        """See :meth:`Told.finished`."""
        back = [
            finish.when.seconds if isinstance(finish.when, After) else 0.0
            for finish, outcome in zip(finishes, outcomes, strict=True)
            if finish.to in _RETURNS and outcome.status == "DONE"
        ]
        if back:
            self._due(None, min(back))

    def changed(self, changes: Sequence[Change], answers: Sequence[Changed], /) -> None:
        """See :meth:`Told.changed`."""
        cancels: list[UUID] = []
        due = False
        for change, answer in zip(changes, answers, strict=True):
            if answer.status == "REQUESTED":
                cancels.append(change.id)
            due = due or (answer.status == "CHANGED" and change.action in _REVIVES)
        if cancels:
            with self._lock:
                self._news.cancels(cancels)
        if due:
            self._due(None, 0.0)
        elif cancels:
            self.say()

    def closed(self, session: UUID, /) -> None:
        """See :meth:`Told.closed`."""
        self._due(None, 0.0)

    def freed(self) -> None:
        """A place in a group was freed."""
        self._due(None, 0.0)

    def paused_or_resumed(self, queue: str, /) -> None:
        """See :meth:`Told.paused_or_resumed`."""
        with self._lock:
            self._news.queue(queue)
        self.say()

    def _due(self, queue: str | None, seconds: float) -> None:
        with self._lock:
            self._news.due(queue, seconds)
        self.say()


_RETURNS: Final = frozenset({"retry", "snooze", "release"})
_REVIVES: Final = frozenset({"retry", "reschedule"})


class Notifier(Collector):
    """Tells from a task of the event loop on which something happened.

    Args:
        clock: see :class:`Collector`.
        gate: see :class:`Collector`.
        send: tells it.
    """

    def __init__(self, clock: Clock, gate: Gate, send: Callable[[News], Awaitable[None]]) -> None:
        super().__init__(clock, gate)
        self._send = send
        self._background = Background(self._lock, lambda: bool(self._news), self._tell)

    def say(self) -> None:
        """See :meth:`Collector.say`."""
        self._background.start()

    async def _tell(self) -> None:
        try:
            async with asyncio.timeout(BOUND):
                await self._send(self.take())
            self._gate.told()
        except (GoncordiaError, TimeoutError) as error:  # a hint is lost: others find the jobs
            _logger.debug("a notification failed: %s", str(error) or "no answer in time")
        await asyncio.sleep(_PAUSE)

    async def flush(self) -> None:
        """Wait until all is told, for a moment at most."""
        await self._background.flush()


class SyncNotifier(Collector):
    """Tells on the calling thread; or another thread that is just telling does.

    Args:
        clock: see :class:`Collector`.
        gate: see :class:`Collector`.
        send: tells it.
    """

    def __init__(self, clock: Clock, gate: Gate, send: Callable[[News], None]) -> None:
        super().__init__(clock, gate)
        self._send = send
        self._telling = threading.Lock()

    def say(self) -> None:
        """See :meth:`Collector.say`."""
        while self._news and self._telling.acquire(blocking=False):
            try:
                self._send(self.take())
                self._gate.told()
            except GoncordiaError as error:  # a hint is lost: others will find the jobs
                _logger.debug("a notification failed: %s", error)
            finally:
                self._telling.release()
