"""From an exception to the error that is kept with the job."""

from __future__ import annotations

import traceback
from asyncio import CancelledError
from datetime import datetime
from typing import Final

from goncordia.driver import AttemptError

__all__ = ["MAX_MESSAGE", "MAX_TRACEBACK", "attempt_error"]

MAX_MESSAGE: Final = 2000
"""Characters of an exception's text that are kept."""

MAX_TRACEBACK: Final = 8192
"""Bytes of a formatted traceback that are kept: its end."""

_MAX_NAME: Final = 300
_FRAMES: Final = 20


def attempt_error(
    error: BaseException, *, attempt: int, at: datetime, worker_id: str
) -> AttemptError:
    """The error in its stored, bounded form."""
    return AttemptError(
        attempt=attempt,
        at=at,
        type=_name(type(error)),
        message=_text(error),
        traceback=_traceback(error),
        worker_id=worker_id,
    )


def _name(cls: type[BaseException]) -> str:
    name = (
        cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    )
    return _storable(name[:_MAX_NAME])


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except (Exception, CancelledError) as broken:  # noqa: BLE001  # a user's __str__
        text = f"<its text raised {type(broken).__name__}>"
    return _storable(text[:MAX_MESSAGE])


def _traceback(error: BaseException) -> str:
    if error.__traceback__ is None:
        return ""
    try:
        lines = traceback.format_exception(error, limit=-_FRAMES)
    except (Exception, CancelledError) as broken:  # noqa: BLE001  # as above
        return f"<formatting the traceback raised {type(broken).__name__}>"
    text = _storable("".join(lines)).encode()
    return text[-MAX_TRACEBACK:].decode(errors="ignore")


def _storable(text: str) -> str:
    """Without what not every backend can store: lone surrogates and NUL."""
    return text.encode(errors="replace").decode().replace("\x00", "\ufffd")
