"""What the engine logs of jobs, and of what fails again and again."""

from __future__ import annotations

import contextlib
import logging
from asyncio import CancelledError
from typing import Final

from goncordia._words import counted
from goncordia.driver import Finish, JobRow
from goncordia.engine.events import Event, JobFinished, JobStarted
from goncordia.logs import fields_of

__all__ = ["Failures", "log_failed", "log_progress", "log_repeated", "progress_wanted"]

_logger = logging.getLogger("goncordia.engine")
_jobs = logging.getLogger("goncordia.jobs")

_LOUD_AFTER: Final = 3
"""A call that failed so often in a row is worth a warning: one failure is everyday."""


def log_repeated(doing: str, times: int, error: Exception) -> None:
    """Something failed, so many times in a row, and is repeated."""
    _logger.log(
        logging.WARNING if times == _LOUD_AFTER else logging.DEBUG,
        "%s failed %d times in a row, repeating: %s: %s",
        doing,
        times,
        type(error).__name__,
        error,
    )


class Failures:
    """Counts the failures in a row of something that is done again and again.

    Args:
        doing: what it is, to begin a sentence with: ``"a beat"``.
    """

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._count = 0

    def failed(self, error: Exception) -> None:
        """It failed; the third failure in a row is a warning."""
        self._count += 1
        log_repeated(self._doing, self._count, error)

    def succeeded(self) -> None:
        """It worked; after a warning that is worth a word too."""
        if self._count >= _LOUD_AFTER:
            _logger.info("%s works again after %s", self._doing, counted(self._count, "failure"))
        self._count = 0


def log_failed(row: JobRow, finish: Finish | None, error: BaseException) -> None:
    """Say that an attempt failed; of a job's last one, with its traceback.

    Args:
        row: the job.
        finish: what is asked for it; its error is in the form in which any text is safe.
        error: why.
    """
    if finish is None or finish.error is None:
        return
    last = finish.to == "discard"
    level = logging.ERROR if last else logging.WARNING
    if not _jobs.isEnabledFor(level):
        return
    path, line, function, _ = _jobs.findCaller()
    record = _jobs.makeRecord(
        _jobs.name,
        level,
        path,
        line,
        "job %s (%s): attempt %d failed, %s: %s: %s",
        (
            row.id,
            row.kind,
            row.attempt,
            "the job is discarded" if last else "to be retried",
            finish.error.type,
            finish.error.message,
        ),
        (type(error), error, error.__traceback__) if last else None,
        function,
        extra=fields_of(row),
    )
    # What formatters print of the exception: bounded, and without a call of the user's code.
    record.exc_text = finish.error.traceback if last else None
    # A filter of the application's can raise; the job's end comes first.
    with contextlib.suppress(Exception, CancelledError):
        _jobs.handle(record)


def progress_wanted() -> bool:
    """Whether starts and ends are logged at all; asked once, when a pool starts."""
    return _jobs.isEnabledFor(logging.DEBUG)


def log_progress(event: Event) -> None:
    """An observer that logs the starts and ends of runs, at level DEBUG."""
    match event:
        case JobStarted(row):
            _jobs.debug("job %s (%s) starts", row.id, row.kind, extra=fields_of(row))
        case JobFinished(row, to, seconds):
            _jobs.debug(
                "job %s (%s) ended after %.3f s: %s",
                row.id,
                row.kind,
                seconds,
                to or "its claim was lost",
                extra=fields_of(row),
            )
        case _:
            pass
