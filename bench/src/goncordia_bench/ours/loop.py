"""Which event loop ours runs on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["run"]

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """``uvloop.run``, which is what the command line's worker does; asyncio's without uvloop."""
    try:
        import uvloop  # noqa: PLC0415  # there is none on Windows
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)
