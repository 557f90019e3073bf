"""Which job a log record belongs to.

Goncordia logs to the standard loggers below ``goncordia`` and configures none. One line tells the
application's own records apart by job::

    logging.basicConfig(format="%(levelname)s %(message)s [%(job)s]")
    add_job_context()

From then on every record that is written while a job runs, in its worker or anywhere below it, also
in its thread, has these attributes:

============== =================================================================
``job_id``     the job's id, a string
``job_kind``   its kind
``job_queue``  the queue that it came from
``job_attempt`` the number of the attempt, from 1
``job``        all of it, short: ``send_email 0192… attempt 2``
============== =================================================================

Outside of a job the first four are None and ``job`` is ``-``.
"""

from __future__ import annotations

import logging
from typing import Any, Final, Protocol
from uuid import UUID

from goncordia import _check
from goncordia.errors import ConfigurationError
from goncordia.job import current_job

__all__ = ["JobContext", "LoggedJob", "add_job_context", "fields_of", "job_fields"]

_OUTSIDE: Final[dict[str, Any]] = dict.fromkeys(("job_id", "job_kind", "job_queue", "job_attempt"))


class LoggedJob(Protocol):
    """What is logged of a job: a ``Job``, a ``JobInfo`` and a stored row have it."""

    @property
    def id(self) -> UUID:
        """Its id."""
        ...

    @property
    def kind(self) -> str:
        """Its kind."""
        ...

    @property
    def queue(self) -> str:
        """Its queue."""
        ...

    @property
    def attempt(self) -> int:
        """The number of its attempt."""
        ...


def fields_of(job: LoggedJob) -> dict[str, Any]:
    """The fields of a job as ``extra=`` takes them, for records that are not written inside it."""
    return {
        "job_id": str(job.id),
        "job_kind": job.kind,
        "job_queue": job.queue,
        "job_attempt": job.attempt,
    }


def job_fields() -> dict[str, Any]:
    """The fields of the job that is running here; empty outside of one."""
    job = current_job()
    return {} if job is None else fields_of(job)


class JobContext(logging.Filter):
    """Adds the fields of the running job to each record; lets every record pass.

    It belongs on handlers: a logger's own filters do not see what other loggers write. What a
    record says itself, by ``extra=``, stays.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add what is missing."""
        fields = record.__dict__
        if "job_id" not in fields:
            fields.update(job_fields() or _OUTSIDE)
        if "job" not in fields:
            fields["job"] = (
                f"{fields.get('job_kind')} {fields['job_id']} attempt {fields.get('job_attempt')}"
                if fields["job_id"]
                else "-"
            )
        return True


def add_job_context(logger: logging.Logger | None = None) -> None:
    """Put a :class:`JobContext` on every handler that a logger has now.

    Doing it again changes nothing.

    Args:
        logger: the one whose handlers are meant; None: the root logger.

    Raises:
        ConfigurationError: it is no logger, or has no handlers yet.
    """
    if logger is None:
        logger = logging.getLogger()
    _check.instance("logger", logger, logging.Logger, "a logging.Logger")
    if not logger.handlers:
        raise ConfigurationError(
            f"logger: {logger.name!r} has no handlers; configure logging first, "
            "such as by logging.basicConfig()"
        )
    for handler in logger.handlers:
        if not any(isinstance(each, JobContext) for each in handler.filters):
            handler.addFilter(JobContext())
