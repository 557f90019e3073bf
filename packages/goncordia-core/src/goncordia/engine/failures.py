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
_CHAIN: Final = 5
"""Exceptions of a chain that are kept, the last one first."""

_CAUSE: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT: Final = "\nDuring handling of the above exception, another exception occurred:\n\n"

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
        lines = _lines(error)
    except (Exception, CancelledError) as broken:  # noqa: BLE001  # as above
        return f"<formatting the traceback raised {type(broken).__name__}>"
    text = _storable("".join(lines)).encode()
    return text[-MAX_TRACEBACK:].decode(errors="ignore")


def _lines(error: BaseException) -> list[str]:
    """As the standard library formats it, less the marks below the lines.

    Those parse each line of source anew, and cost ten times the rest: on the event loop, for each
    failed attempt.
    """
    if _is_group(error):
        return traceback.format_exception(error, limit=-_FRAMES)
    parts: list[list[str]] = []
    shown: set[int] = set()
    link = ""
    current: BaseException | None = error
    while current is not None and id(current) not in shown and len(parts) < _CHAIN:
        shown.add(id(current))
        parts.append([*_one(current), link])
        if current.__cause__ is not None:
            current, link = current.__cause__, _CAUSE
        else:
            current = None if current.__suppress_context__ else current.__context__
            link = _CONTEXT
    return [line for part in reversed(parts) for line in part]


def _is_group(error: BaseException) -> bool:
    return isinstance(error, BaseExceptionGroup)


def _one(error: BaseException) -> list[str]:
    frames = [
        traceback.FrameSummary(frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ][-_FRAMES:]
    head = ["Traceback (most recent call last):\n"] if frames else []
    return [
        *head,
        *traceback.StackSummary.from_list(frames).format(),
        *traceback.format_exception_only(error),
    ]


def _storable(text: str) -> str:
    """Without what not every backend can store: lone surrogates and NUL."""
    return text.encode(errors="replace").decode().replace("\x00", "\ufffd")
