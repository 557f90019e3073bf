"""Saying what callers have committed.

A NOTIFY inside of each of many transactions makes their commits wait for one another, since it
takes a lock of the whole database until its commit is on the disk. So a transaction carries one
only when the gate lets it. Of the others the ids of jobs are kept; when a transaction is over,
or takes long, they are looked for: those that are there have been committed, and are told.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final
from uuid import UUID

from goncordia.errors import GoncordiaError
from goncordia_driver_pg.background import Background
from goncordia_driver_pg.gate import Gate
from goncordia_sql.postgres.notify import News

__all__ = ["SyncWatcher", "Watcher"]

_logger = logging.getLogger("goncordia.postgresql")

_NAP: Final = 0.001
"""Seconds from one glance at the callers' connections to the next: it asks no server."""
_PAUSE: Final = 0.01
"""Seconds from one question to the server to the next, at least."""
_FIRST_LOOK: Final = 0.05
_LONGEST: Final = 0.5
"""Seconds from one look for a job to the next, at most, while its transaction goes on."""
_OLDEST: Final = 600.0
"""Seconds after which a transaction is given up."""
_MOST: Final = 10_000
_FLUSH: Final = 2.0
"""Seconds that closing waits for the last things to be told, at most."""


class _Pending:
    """What was inserted on one connection, in a transaction that was not seen to end."""

    __slots__ = ("added", "ids", "is_over", "look_at", "nap", "news", "over")

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self.ids: list[UUID] = []
        self.news = News()
        self.is_over = is_over
        self.added = time.monotonic()
        self.nap = _FIRST_LOOK
        self.look_at = self.added + self.nap
        self.over = False

    def add(self, job_id: UUID, news: News) -> None:
        """Keep the first job and the last: a savepoint may have taken one of them back."""
        if len(self.ids) > 1:
            self.ids.pop()
        self.ids.append(job_id)
        self.news.merge(news)

    def is_due(self, now: float) -> bool:
        """Whether to look for the jobs."""
        self.over = self.is_over()
        return self.over or now >= self.look_at

    def seen(self, asked: Mapping[UUID, str], there: set[UUID], now: float) -> None:
        """Forget the jobs that are there, or that cannot come any more."""
        given_up = self.over or now - self.added > _OLDEST
        self.ids = [
            each for each in self.ids if each not in there and not (given_up and each in asked)
        ]
        self.nap = min(self.nap * 2, _LONGEST)
        self.look_at = now + self.nap


class _Watcher:
    """Watches the transactions of one driver's callers.

    Args:
        gate: is told of what was told.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._lock = threading.Lock()
        self._pending: dict[int, _Pending] = {}

    @abstractmethod
    def _start(self) -> None:
        """Look, from now on, as long as anything is pending."""

    def watch(
        self, connection: object, job_id: UUID, news: News, is_over: Callable[[], bool]
    ) -> None:
        """Tell the news once this job is there.

        Args:
            connection: where it was inserted, in a transaction that is not committed yet.
            job_id: the job.
            news: what to tell.
            is_over: whether the connection is in no transaction any more; holds the connection.
        """
        with self._lock:
            pending = self._pending.get(id(connection))
            if pending is None:
                if len(self._pending) >= _MOST:
                    return  # those who poll will find it
                pending = self._pending[id(connection)] = _Pending(is_over)
            pending.add(job_id, news)
        self._start()

    def _due(self, now: float) -> tuple[dict[int, _Pending], dict[UUID, str]]:
        """What to look for now, and what to tell of it."""
        with self._lock:
            due = {key: each for key, each in self._pending.items() if each.is_due(now)}
            return due, _messages(due.values())

    def _seen(
        self, due: dict[int, _Pending], messages: Mapping[UUID, str], there: set[UUID], now: float
    ) -> None:
        """These of them were there, and were told."""
        with self._lock:
            for key, each in due.items():
                each.seen(messages, there, now)
                if not each.ids:
                    self._pending.pop(key, None)

    def _take(self) -> dict[UUID, str]:
        """What to tell of all that is pending, which is watched no more."""
        with self._lock:
            pending, self._pending = self._pending, {}
        return _messages(pending.values())


class Watcher(_Watcher):
    """Watches in a task of an event loop.

    Args:
        send: tells the messages of those jobs that are there; their ids.
        gate: is told of it.
    """

    def __init__(
        self, send: Callable[[Mapping[UUID, str]], Awaitable[set[UUID]]], gate: Gate
    ) -> None:
        super().__init__(gate)
        self._send = send
        self._background = Background(self._lock, lambda: bool(self._pending), self._look)

    def _start(self) -> None:
        self._background.start()

    async def flush(self) -> None:
        """Tell what can be told now, for a moment at most, and watch no more."""
        messages = self._take()
        if messages:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH):
                    await self._tell(messages)
        await self._background.flush()

    async def _look(self) -> None:
        await asyncio.sleep(_NAP)
        now = time.monotonic()
        due, messages = self._due(now)
        if due:
            self._seen(due, messages, await self._tell(messages), now)
            await asyncio.sleep(_PAUSE)

    async def _tell(self, messages: Mapping[UUID, str]) -> set[UUID]:
        try:
            there = await self._send(messages)
        except GoncordiaError as error:  # a hint is lost: others will find the jobs
            _logger.debug("a notification failed: %s", error)
            return set()
        if there:
            self._gate.told()
        return there


class SyncWatcher(_Watcher):
    """Watches in a thread, which ends when there is nothing to watch.

    Args:
        send: tells the messages of those jobs that are there; their ids.
        gate: is told of it.
    """

    def __init__(self, send: Callable[[Mapping[UUID, str]], set[UUID]], gate: Gate) -> None:
        super().__init__(gate)
        self._send = send
        self._thread: threading.Thread | None = None
        self._ending = False

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                # A daemon: what it would tell, those who poll find.
                self._thread = threading.Thread(
                    target=self._run, name="goncordia-watcher", daemon=True
                )
                self._thread.start()

    @property
    def is_watching(self) -> bool:
        """Whether there is anything to watch."""
        return self._thread is not None

    def flush(self) -> None:
        """Tell what can be told now, for a moment at most, and watch no more."""
        with self._lock:
            self._ending, thread = True, self._thread
        if thread is not None:
            thread.join(_FLUSH)
        with self._lock:
            self._ending = False
            self._pending.clear()

    def _run(self) -> None:
        while True:
            with self._lock:
                ending = self._ending
                if not self._pending:
                    self._thread = None
                    return
            if ending:
                self._tell(self._take())
                continue
            time.sleep(_NAP)
            now = time.monotonic()
            due, messages = self._due(now)
            if due:
                self._seen(due, messages, self._tell(messages), now)
                time.sleep(_PAUSE)

    def _tell(self, messages: Mapping[UUID, str]) -> set[UUID]:
        try:
            there = self._send(messages)
        except GoncordiaError as error:  # a hint is lost: others will find the jobs
            _logger.debug("a notification failed: %s", error)
            return set()
        if there:
            self._gate.told()
        return there


def _messages(pending: Iterable[_Pending]) -> dict[UUID, str]:
    """What to tell of each job."""
    messages: dict[UUID, str] = {}
    for each in pending:
        messages.update(dict.fromkeys(each.ids, each.news.message()))
    return messages
