"""Which transaction carries a NOTIFY."""

from __future__ import annotations

import threading
import time
from typing import Final

__all__ = ["Gate"]

_QUIET: Final = 0.02
"""Seconds without a NOTIFY after which the next transaction carries one."""


class Gate:
    """Lets one transaction carry a NOTIFY when nobody has told anything for a moment.

    Who is woken by the commit itself is woken a round trip earlier. But that takes a lock of the
    whole database until the commit is on the disk, so of many transactions few carry one; of the
    others it is told afterwards.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told = float("-inf")

    def passes(self) -> bool:
        """Whether this transaction is to carry one; if so, others are not for a moment."""
        now = time.monotonic()
        with self._lock:
            quiet = now - self._told > _QUIET
            if quiet:
                self._told = now
        return quiet

    def told(self) -> None:
        """Something was told by the way."""
        with self._lock:
            self._told = time.monotonic()
