"""The ledger: what the backend did, what the handlers did, and whether the two agree.

It hears of every request when it is sent, when it takes effect on the backend and when its answer
is read, and of every handler when it starts and ends. Nothing here looks into the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from goncordia.driver import JobRow

from .balance import balance
from .books import Books
from .effects import Effects
from .process import Process
from .requests import Requests
from .runs import Runs

__all__ = ["Ledger"]


class Ledger:
    """The ledger of one seed; the network's watcher.

    Attributes:
        books: the entries.
        runs: to be told of the handlers.

    Args:
        books: see the attribute.
        lease: of every pool.
        stall_limit: seconds after which a pool whose event loop stands still must not beat.
        open_sessions: the backend's own list of sessions that are open.
        row_of: the backend's own row of a job.
    """

    def __init__(
        self,
        books: Books,
        *,
        lease: float,
        stall_limit: float,
        open_sessions: Callable[[], set[UUID]],
        row_of: Callable[[UUID], JobRow | None],
    ) -> None:
        self.books = books
        self.runs = Runs(books, row_of)
        self._requests = Requests(books, lease=lease, stall_limit=stall_limit)
        self._effects = Effects(books, open_sessions)

    def sent(self, process: Process, name: str, args: tuple[Any, ...]) -> None:
        """A process sends a request."""
        self._requests.sent(process, name, args)

    def applied(self, process: Process, name: str, args: tuple[Any, ...], result: Any) -> None:
        """A request takes effect."""
        self._effects.applied(process, name, args, result)

    def answered(
        self, process: Process, name: str, args: tuple[Any, ...], result: Any, sent: float
    ) -> None:
        """A process reads an answer."""
        self._requests.answered(process, name, args, result, sent)

    def look(self) -> None:
        """Check what must hold at any time."""
        self._requests.look()
        self.runs.look()

    def close(self, rows: Iterable[JobRow]) -> None:
        """Balance the books against what the backend holds."""
        balance(self.books, rows)
