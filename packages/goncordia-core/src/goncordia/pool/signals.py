"""Waiting for the signal to go."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from goncordia.errors import ConfigurationError

__all__ = ["end_at", "shutdown_signals", "unless"]

_logger = logging.getLogger("goncordia.pool")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_TOGETHER: Final = 0.05
"""Seconds within which two signals are one."""


@contextmanager
def shutdown_signals(what: str = "WorkerPool") -> Generator[asyncio.Event, None, None]:
    """An event that SIGINT or SIGTERM sets; the second signal ends the process at once.

    Afterwards the signals are handled as before.

    Args:
        what: whose ``run`` it is, for the error.

    Raises:
        ConfigurationError: this is not the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        raise ConfigurationError(
            f"{what}.run: signals reach only the main thread; elsewhere use start() and stop()"
        )
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    letting_go: list[asyncio.TimerHandle] = []

    def ask(number: signal.Signals) -> None:
        if asked.is_set():
            return  # the same one once more: some send it to a process and to its group
        letting_go.append(loop.call_later(_TOGETHER, let_go))
        _logger.info("%s: shutting down; a second signal ends the process at once", number.name)
        asked.set()

    def let_go() -> None:
        _forget(loop)
        for each in _SIGNALS:
            end_at(each)

    def from_python(number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(ask, signal.Signals(number))

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        try:
            loop.add_signal_handler(number, ask, number)
        except NotImplementedError:  # Windows
            signal.signal(number, from_python)
    try:
        yield asked
    finally:
        for handle in letting_go:
            handle.cancel()
        _forget(loop)
        for number, handler in before.items():
            if handler is not None:  # None: it was installed outside of Python
                signal.signal(number, handler)


def end_at(number: signal.Signals) -> None:
    """Let a signal end the process at once, as its default does."""
    signal.signal(number, _end if os.getpid() == 1 else signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> None:
    """In place of the default, which the first process of a container is never sent."""
    os._exit(128 + number)


def _forget(loop: asyncio.AbstractEventLoop) -> None:
    """Let the loop handle the signals no longer."""
    for number in _SIGNALS:
        try:
            loop.remove_signal_handler(number)
        except NotImplementedError:  # Windows
            signal.signal(number, signal.SIG_DFL)


async def unless(told: asyncio.Future[Any], work: Coroutine[Any, Any, None]) -> None:
    """Do the work, and give it up when it is told."""
    doing = asyncio.ensure_future(work)
    try:
        await asyncio.wait((doing, told), return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not doing.done():
            doing.cancel()
    await asyncio.gather(doing, return_exceptions=told.done())
