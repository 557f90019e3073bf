"""Waiting for the signal to go."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

__all__ = ["shutdown_signals"]

_logger = logging.getLogger("goncordia.pool")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def shutdown_signals() -> Generator[asyncio.Event]:
    """An event that SIGINT or SIGTERM sets; the second signal ends the process by its default."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    def ask(number: signal.Signals) -> None:
        _logger.info("%s: shutting down; a second signal ends the process at once", number.name)
        _forget(loop)
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        asked.set()

    def from_thread(number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(ask, signal.Signals(number))

    for number in _SIGNALS:
        try:
            loop.add_signal_handler(number, ask, number)
        except NotImplementedError:  # Windows
            signal.signal(number, from_thread)
    try:
        yield asked
    finally:
        _forget(loop)


def _forget(loop: asyncio.AbstractEventLoop) -> None:
    """Handle the signals no longer."""
    for number in _SIGNALS:
        try:
            loop.remove_signal_handler(number)
        except NotImplementedError:
            signal.signal(number, signal.SIG_DFL)
