"""What is asked of a lane, and how it is answered."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from goncordia_sql import Op

__all__ = ["Failure", "Request", "caused", "deliver"]


class Request:
    """What somebody asked for, and the answer.

    Attributes:
        work: makes the operation to run; or, with ``alone``, the function to call.
        future: for a caller on an event loop.
        alone: it is a function, to be called outside of any transaction.
        lone: see :meth:`Lane.submit`.
        many: see :meth:`Lane.submit_many`; None: it shares nothing but the commit.
        items: the arguments of ``many``.
        done: it was answered, by ``value`` or ``error``.
    """

    __slots__ = ("alone", "done", "error", "future", "items", "lone", "many", "value", "work")

    def __init__(
        self,
        work: Callable[[], Any],
        loop: asyncio.AbstractEventLoop | None = None,
        *,
        alone: bool = False,
        lone: bool = False,
        many: Callable[[Sequence[Any]], Op[list[Any]]] | None = None,
        items: Sequence[Any] = (),
    ) -> None:
        self.work = work
        self.future: asyncio.Future[Any] | None = None if loop is None else loop.create_future()
        self.alone = alone
        self.lone = lone
        self.many = many
        self.items = items
        self.done = False
        self.value: Any = None
        self.error: BaseException | None = None


class Failure:
    """Why a transaction was not committed.

    Attributes:
        error: what the callers get.
        original: what was raised.
        of_one: one of the requests is why; without it the others may go on.
    """

    __slots__ = ("error", "of_one", "original")

    def __init__(self, error: BaseException, original: BaseException, of_one: bool) -> None:
        self.error = error
        self.original = original
        self.of_one = of_one


def caused(error: BaseException, cause: BaseException) -> BaseException:
    """The error, as if it had been raised from its cause."""
    error.__cause__ = cause
    return error


def deliver(batch: Sequence[Request]) -> None:
    """Wake each event loop once, with all its answers."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[Request]] = defaultdict(list)
    for request in batch:
        if request.future is not None:
            by_loop[request.future.get_loop()].append(request)
    for loop, requests in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_set, requests)


def _set(requests: list[Request]) -> None:
    for request in requests:
        future = request.future
        if future is None or future.done():
            continue
        if request.error is not None:
            future.set_exception(request.error)
        else:
            future.set_result(request.value)
