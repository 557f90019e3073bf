"""Time bounds around psycopg, which hold on a network that carries nothing any more.

psycopg answers a cancellation, and so a time bound of asyncio's, by cancelling the statement on the
server, and waits for that; its synchronous connections wait for an answer for ever. Only the end of
the connection's socket ends either at once.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Generator
from typing import Any, Final, TypeAlias

import psycopg

__all__ = ["STATEMENT", "Watchdog", "shut"]

STATEMENT: Final = 60.0
"""Seconds for one statement."""

AnyConnection: TypeAlias = "psycopg.AsyncConnection[Any] | psycopg.Connection[Any]"


def shut(connection: AnyConnection) -> None:
    """End the connection below psycopg: who waits for an answer gets an error at once.

    It is not closed: a file descriptor that somebody waits for must not go to another socket.
    """
    with (
        contextlib.suppress(OSError, psycopg.Error),
        socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as below,
    ):
        below.shutdown(socket.SHUT_RDWR)


class Watchdog:
    """Ends synchronous connections on which a statement takes too long.

    A thread of its own does that; it ends when there was nothing to watch for as long.

    Args:
        bound: seconds for one statement.
    """

    def __init__(self, bound: float) -> None:
        self._bound = bound
        self._lock = threading.Lock()
        self._until: dict[psycopg.Connection[Any], float] = {}
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def watching(self, connection: psycopg.Connection[Any]) -> Generator[None, None, None]:
        """Watch while a statement runs on the connection.

        Raises:
            TimeoutError: it took too long, and the connection was ended.
        """
        with self._lock:
            self._until[connection] = time.monotonic() + self._bound
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="goncordia-psycopg", daemon=True
                )
                self._thread.start()
        failed: Exception | None = None
        try:
            yield
        except psycopg.Error as error:
            failed = error
            raise
        finally:
            with self._lock:
                ended = self._until.pop(connection, None) is None
            if ended and failed is not None:
                raise TimeoutError(
                    f"the server did not answer within {self._bound:g} s"
                ) from failed

    def _run(self) -> None:
        """End what is due; what is watched from now on is due later than the next look."""
        while True:
            with self._lock:
                now = time.monotonic()
                for connection in [each for each, due in self._until.items() if due <= now]:
                    del self._until[connection]
                    shut(connection)
                if not self._until:
                    self._thread = None
                    return
                nap = min(self._until.values()) - now
            time.sleep(nap)
