"""Saying what callers have committed.

A NOTIFY inside of each of many transactions makes their commits wait for one another, since it
takes a lock of the whole database until its commit is on the disk. So a transaction carries one
only when the gate lets it. Of the others the ids of jobs are kept; when a transaction is over,
or takes long, they are looked for: those that are there have been committed, and are told.

Whether it is over is asked of the connection only on the thread that uses it: libpq allows no
two on one connection. Elsewhere, and for all synchronous code, the jobs are looked for in the
database alone, less and less often.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from math import inf
from typing import Final
from uuid import UUID

from goncordia.errors import GoncordiaError
from goncordia_driver_pg.background import Background
from goncordia_driver_pg.gate import Gate
from goncordia_driver_pg.side import BOUND
from goncordia_sql.postgres.notify import News

__all__ = ["SyncWatcher", "Watcher"]

_logger = logging.getLogger("goncordia.postgresql")

_NAP: Final = 0.001
"""Seconds from one glance at the callers' connections to the next: it asks no server."""
_LONGEST_NAP: Final = 0.01
"""The same where none of the transactions is young."""
_PAUSE: Final = 0.01
"""Seconds from one question to the server to the next, at least."""
_FIRST_LOOK: Final = 0.05
_LONGEST: Final = 0.5
"""Seconds from one look for a job to the next, at most, while its transaction goes on."""
_LONGEST_UNSEEN: Final = 5.0
"""The same where its end cannot be seen, so that one rolled back is looked for in vain."""
_OLDEST: Final = 600.0
"""Seconds after which a transaction is given up."""
_OLDEST_UNSEEN: Final = 60.0
"""The same where its end cannot be seen."""
_MOST: Final = 10_000
_FLUSH: Final = 2.0
"""Seconds that closing waits for the last things to be told, at most."""


class _Pending:
    """What was inserted on one connection, in a transaction that was not seen to end."""

    __slots__ = ("added", "home", "ids", "is_over", "look_at", "nap", "news", "over")

    def __init__(self, is_over: Callable[[], bool] | None) -> None:
        self.ids: list[UUID] = []
        self.news = News()
        self.is_over = is_over
        self.home = threading.get_ident()
        self.over = False
        self.look_at = inf
        self._begin()

    def _begin(self) -> None:
        self.added = time.monotonic()
        self.nap = _FIRST_LOOK
        self.look_at = min(self.look_at, self.added + self.nap)

    def add(self, job_id: UUID, news: News) -> None:
        """Keep the first job and the last: a savepoint may have taken one of them back."""
        if len(self.ids) > 1:
            self.ids.pop()
        self.ids.append(job_id)
        self.news.merge(news)
        if self.is_over is None:  # it may be another transaction by now
            self._begin()

    def is_due(self, now: float) -> bool:
        """Whether to look for the jobs."""
        ask = self._ask()
        self.over = ask is not None and ask()
        return self.over or now >= self.look_at

    def _ask(self) -> Callable[[], bool] | None:
        """What tells whether it is over, if this thread may ask that."""
        return self.is_over if self.home == threading.get_ident() else None

    def seen(self, asked: Mapping[UUID, str], there: set[UUID], now: float) -> None:
        """Forget the jobs that are there, or that cannot come any more."""
        oldest, longest = (_OLDEST, _LONGEST) if self._ask() else (_OLDEST_UNSEEN, _LONGEST_UNSEEN)
        given_up = self.over or now - self.added > oldest
        self.ids = [
            each for each in self.ids if each not in there and not (given_up and each in asked)
        ]
        self.nap = min(self.nap * 2, longest)
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
        self._newest = -inf
        """When the last transaction came."""

    @abstractmethod
    def _start(self) -> None:
        """Look, from now on, as long as anything is pending."""

    def _watch(
        self, connection: object, job_id: UUID, news: News, is_over: Callable[[], bool] | None
    ) -> None:
        with self._lock:
            pending = self._pending.get(id(connection))
            if pending is None:
                if len(self._pending) >= _MOST:
                    return  # those who poll will find it
                pending = self._pending[id(connection)] = _Pending(is_over)
                self._newest = pending.added
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
        self._watch(connection, job_id, news, is_over)

    async def flush(self) -> None:
        """Tell what can be told now, for a moment at most, and watch no more."""
        messages = self._take()
        if messages:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH):
                    await self._tell(messages)
        await self._background.flush()

    async def _look(self) -> None:
        await asyncio.sleep(self._nap())
        now = time.monotonic()
        due, messages = self._due(now)
        if due:
            self._seen(due, messages, await self._tell(messages), now)
            await asyncio.sleep(_PAUSE)

    def _nap(self) -> float:
        """Seconds to the next glance: a hint comes late by a fraction of what it was waited for."""
        age = time.monotonic() - self._newest
        return min(max(age / 10, _NAP), _LONGEST_NAP)

    async def _tell(self, messages: Mapping[UUID, str]) -> set[UUID]:
        try:
            async with asyncio.timeout(BOUND):
                there = await self._send(messages)
        except (GoncordiaError, TimeoutError) as error:  # a hint is lost: others find the jobs
            _logger.debug("a notification failed: %s", str(error) or "no answer in time")
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
        self._ending = threading.Event()

    def watch(self, connection: object, job_id: UUID, news: News) -> None:
        """Tell the news once this job is there.

        Args:
            connection: where it was inserted, in a transaction that is not committed yet; only to
                know jobs of one transaction, or of several in a row, by it.
            job_id: the job.
            news: what to tell.
        """
        self._watch(connection, job_id, news, None)

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
        self._ending.set()
        thread = self._thread
        if thread is not None:
            thread.join(_FLUSH)
        self._ending.clear()
        with self._lock:
            self._pending.clear()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._pending:
                    self._thread = None
                    return
                first = min(each.look_at for each in self._pending.values())
            # What comes meanwhile is due no sooner than after this.
            nap = min(first - time.monotonic(), _FIRST_LOOK)
            if self._ending.wait(max(nap, _PAUSE)):
                self._tell(self._take())
                continue
            now = time.monotonic()
            due, messages = self._due(now)
            if due:
                self._seen(due, messages, self._tell(messages), now)

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
