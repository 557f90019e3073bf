"""Waiting for the signal to go."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["shutdown_signals"]

logger = logging.getLogger("goncordia.pool")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def shutdown_signals() -> Iterator[asyncio.Event]:
    """An event that SIGINT or SIGTERM sets; the second signal ends the process by its default."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    def ask(number: signal.Signals) -> None:
        logger.info("%s: shutting down; a second signal ends the process at once", number.name)
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        asked.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, ask, number)
    try:
        yield asked
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
