"""What the errors of an operation say that is made of several calls."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from goncordia.errors import DriverError

__all__ = ["after_effect"]


@contextmanager
def after_effect(applied: object = True) -> Generator[None, None, None]:
    """Calls that follow one that was applied: their errors say ``unknown`` of the whole.

    Args:
        applied: whether a call before them was.
    """
    try:
        yield
    except DriverError as error:
        if applied:
            error.outcome = "unknown"
        raise
