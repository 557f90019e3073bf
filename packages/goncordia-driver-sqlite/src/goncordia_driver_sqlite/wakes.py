"""Wake-ups: one thread that notices every commit on the file, of any process.

``PRAGMA data_version`` changes when another connection has committed; asking costs a few
microseconds. It is asked when the log was written to, which Linux tells, and elsewhere every few
milliseconds. When it changed, a look at the beginning of a few indexes tells what there is to do.
The thread lives while somebody listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final, Self
from uuid import UUID

from goncordia.driver import Wake
from goncordia.errors import GoncordiaError
from goncordia_driver_sqlite.adapters import Sqlite3Adapter
from goncordia_driver_sqlite.bell import Bell, TimedBell, make_bell
from goncordia_sql import Operations, run_sync
from goncordia_sql.ops.watch import Sight

__all__ = ["SqliteListener", "Wakes"]

_logger = logging.getLogger("goncordia.sqlite")

_PAUSE: Final = 0.001
"""Seconds between two looks, at least."""
_LONGEST_PAUSE: Final = 0.008
"""The same while commit follows commit."""
_COMMITTING: Final = 0.1
"""Seconds in which a commit is looked for, once the log was written to."""
_SILENCE: Final = 1.0
"""Seconds without a commit after which it is looked for less often."""
_RECONNECT: Final = 0.5
_MOST_HEARD: Final = 1000
_VERSION: Final = "PRAGMA data_version"


class Wakes:
    """Tells the driver's listeners.

    Args:
        operations: those of the driver.
        connect: makes a connection.
        log: the write-ahead log, to which every commit is written.
    """

    def __init__(
        self, operations: Operations, connect: Callable[[], sqlite3.Connection], log: str
    ) -> None:
        self._operations = operations
        self._connect = connect
        self._log = log
        self._lock = threading.Lock()
        self._listeners: tuple[SqliteListener, ...] = ()
        self._watcher: _Watcher | None = None

    def listen(self) -> SqliteListener:
        """A new listener; it hears from now on."""
        listener = SqliteListener(self)
        with self._lock:
            self._listeners = (*self._listeners, listener)
            if self._watcher is None:
                self._watcher = _Watcher(self._operations, self._connect, self._log, self._tell)
        return listener

    def forget(self, listener: SqliteListener) -> None:
        """The listener hears no more; without any the thread ends."""
        with self._lock:
            self._listeners = tuple(each for each in self._listeners if each is not listener)
            watcher = self._watcher
            if self._listeners or watcher is None:
                return
            self._watcher = None
        watcher.stop()

    def look(self) -> None:
        """Something was committed in this process: look now. Costs nothing if nobody listens."""
        watcher = self._watcher
        if watcher is not None:
            watcher.look()

    def close(self) -> None:
        """Close all listeners, and with the last the thread."""
        for listener in self._listeners:
            listener.close()

    def _tell(self, wakes: Sequence[Wake]) -> None:
        for listener in self._listeners:
            listener.hear(wakes)


class _Watcher:
    """The thread.

    Args:
        operations: those of the driver.
        connect: makes a connection.
        log: the write-ahead log, to which every commit is written.
        tell: told of wakes.
    """

    def __init__(
        self,
        operations: Operations,
        connect: Callable[[], sqlite3.Connection],
        log: str,
        tell: Callable[[Sequence[Wake]], None],
    ) -> None:
        self._operations = operations
        self._connect = connect
        self._log = log
        self._tell = tell
        self._lock = threading.Lock()
        self._bell: Bell = TimedBell()
        self._stopping = False
        self._thread = threading.Thread(
            target=self._run, name="goncordia-sqlite-wakes", daemon=True
        )
        self._thread.start()

    def look(self) -> None:
        """Look now."""
        with self._lock:  # the bell is not changed meanwhile
            self._bell.ring()

    def stop(self) -> None:
        """End the thread."""
        self._stopping = True
        self.look()
        self._thread.join()

    def _change_bell(self, bell: Bell) -> None:
        with self._lock:
            before, self._bell = self._bell, bell
            before.close()

    def _run(self) -> None:
        lost = False
        while not self._stopping:
            try:
                with contextlib.closing(self._connect()) as connection:
                    self._watch(Sqlite3Adapter(connection), lost=lost)
            except (sqlite3.Error, GoncordiaError) as error:
                if not lost:
                    _logger.warning("listening for wake-ups failed, trying again: %s", error)
                lost = True
            self._change_bell(TimedBell())
            if not self._stopping:
                self._bell.wait(_RECONNECT)

    def _watch(self, adapter: Sqlite3Adapter, *, lost: bool) -> None:
        version: Any = adapter.value(_VERSION)  # from now on the log is there
        self._change_bell(make_bell(self._log))
        bell, seen, version = self._bell, None, None
        pause, rang_at, changed_at = _PAUSE, 0.0, time.monotonic()
        rang_again = False
        while not self._stopping:
            version_now = adapter.value(_VERSION)
            now = time.monotonic()
            if version_now != version:
                version, changed_at = version_now, now
                # What rang while one commit was looked for may have been the next one's.
                rang_at, rang_again = (rang_at if rang_again else 0.0), False
                sight = run_sync(self._operations.watch.look(), adapter)
                wakes = self._difference(seen, sight)
                seen = sight
                if lost:
                    lost, wakes = False, [Wake("gap")]
                if wakes:
                    self._tell(wakes)
                # Several commits in a row are worth one look, and who is busy needs no wake-up.
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            pause = _PAUSE
            if now - rang_at < _COMMITTING:
                if bell.wait(_PAUSE):
                    rang_at, rang_again = time.monotonic(), True
            elif bell.wait(bell.silent_interval if now - changed_at > _SILENCE else bell.interval):
                rang_at = time.monotonic()
        adapter.close()

    def _difference(self, before: Sight | None, after: Sight) -> list[Wake]:
        """What to tell of what is seen now."""
        due_in = self._operations.watch.due_in(before, after)
        wakes = [Wake("jobs", queue, seconds) for queue, seconds in due_in.items()]
        new = after.cancels - (before.cancels if before else frozenset())
        if new:
            wakes.append(Wake("cancel", job_ids=tuple(UUID(bytes=raw_id) for raw_id in new)))
        paused_before: Mapping[str, bool] = before.paused if before else {}
        wakes += [
            Wake("queue", name)
            for name, paused in after.paused.items()
            if paused != paused_before.get(name, False)
        ]
        return wakes


class SqliteListener:
    """Hears of new, freed, cancelled and rescheduled jobs; for one reader."""

    def __init__(self, source: Wakes) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._heard: deque[Wake] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def wakes(self) -> AsyncIterator[Wake]:
        """The wakes, as they come."""
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Wake:
        while True:
            with self._lock:
                if self._heard:
                    return self._heard.popleft()
                if self._closed:
                    raise StopAsyncIteration
                waiter = self._waiter = asyncio.get_running_loop().create_future()
            await waiter

    async def aclose(self) -> None:
        """Stop listening."""
        self.close()

    def close(self) -> None:
        """Stop listening; from any thread."""
        with self._lock:
            self._closed = True
            self._wake_reader()
        self._source.forget(self)

    def hear(self, wakes: Sequence[Wake]) -> None:
        """Take wakes in; a reader who fell far behind hears of a gap instead."""
        with self._lock:
            self._heard.extend(wakes)
            if len(self._heard) > _MOST_HEARD:
                self._heard.clear()
                self._heard.append(Wake("gap"))
            self._wake_reader()

    def _wake_reader(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed: nobody reads
                waiter.get_loop().call_soon_threadsafe(_set, waiter)


def _set(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
