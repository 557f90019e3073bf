"""Connections for synchronous code, shared by threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from goncordia.errors import DriverBusyError
from goncordia_driver_redis.clients.links import SyncLink

__all__ = ["SyncPool"]


class SyncPool:
    """Keeps connections; the one that was used last is used next.

    Args:
        make: makes one. Bounded in time.
        size: so many at most.
        timeout: seconds to wait for one.
    """

    def __init__(self, make: Callable[[], SyncLink], *, size: int, timeout: float) -> None:
        self._make = make
        self._size = size
        self._timeout = timeout
        self._idle: deque[SyncLink] = deque()
        self._count = 0
        self._lock = threading.Lock()
        self._freed = threading.Condition(self._lock)
        self._waiting = 0
        self._closed = False

    def acquire(self) -> SyncLink:
        """A connection that nobody else uses.

        Raises:
            DriverBusyError: none became free in time.
        """
        while True:
            link = self._idle_or_room()
            if link is None:
                return self._another()
            if link.is_usable():
                return link
            self.release(link, clean=False)

    def _idle_or_room(self) -> SyncLink | None:
        """One that is idle; None: there is room for another."""
        with self._lock:
            if not self._idle and self._count >= self._size:
                self._wait()
            if self._idle:
                return self._idle.pop()
            self._count += 1
            return None

    def _wait(self) -> None:
        self._waiting += 1
        try:
            if not self._freed.wait_for(
                lambda: self._idle or self._count < self._size, self._timeout
            ):
                raise DriverBusyError(
                    f"none of the {self._size} connections was free within {self._timeout:g} s",
                    outcome="not_applied",
                )
        finally:
            self._waiting -= 1

    def _another(self) -> SyncLink:
        try:
            return self._make()
        except BaseException:
            with self._lock:
                self._count -= 1
                self._freed.notify()
            raise

    def release(self, link: SyncLink, *, clean: bool) -> None:
        """Give a connection back.

        Args:
            link: one that was acquired.
            clean: False: something has gone wrong on it.
        """
        with self._lock:
            kept = clean and not self._closed
            if kept:
                self._idle.append(link)
            else:
                self._count -= 1
            if self._waiting:
                self._freed.notify()
        if not kept:
            link.close()

    def close(self) -> None:
        """Close the connections that nobody holds; others are, when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, deque()
            self._count -= len(idle)
        for link in idle:
            link.close()
