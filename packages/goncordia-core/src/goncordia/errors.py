"""Every error that Goncordia raises on purpose.

::

    GoncordiaError
    ├── ConfigurationError      (ValueError) the message names field, value and what is right
    ├── PayloadError            args, output or checkpoint cannot be encoded or decoded
    ├── UnsupportedError        this driver does not have that capability
    ├── ConflictError           wrong state for the request, or its unique key is held
    ├── NotFoundError           (LookupError)  no such job, queue or session
    ├── StaleClaimError         the run no longer holds its job
    ├── JobFailedError          raised by ``wait``: the job ended discarded or cancelled
    ├── InvalidCursorError      (ValueError)   a page cursor that this list never gave
    ├── AdmissionRejectedError  the queue is full
    ├── MigrationRequiredError  the schema is older than the code, or newer than it allows
    ├── RunError                why the engine ended an attempt; never raised, kept with the job
    │   ├── JobTimeoutError     (TimeoutError) it ran longer than its time-out
    │   ├── WorkerLostError     its worker pool is gone
    │   ├── LeaseLapsedError    its worker pool lost contact for a whole lease
    │   └── TransactionNotCommittedError  it was completed in a transaction that did not commit
    └── DriverError             the library's own error is ``__cause__``
        ├── DriverUnavailableError   connection lost, failover, restart
        ├── DriverBusyError          throttled, lock time-out, pool exhausted, disk or memory full
        └── TransactionAbortedError  the caller's transaction; theirs to repeat
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from uuid import UUID

__all__ = [
    "AdmissionRejectedError",
    "CodecError",
    "ConfigurationError",
    "ConflictError",
    "DriverBusyError",
    "DriverError",
    "DriverUnavailableError",
    "GoncordiaError",
    "InvalidCursorError",
    "JobFailedError",
    "JobTimeoutError",
    "LeaseLapsedError",
    "MigrationRequiredError",
    "NotFoundError",
    "Outcome",
    "PayloadError",
    "RunError",
    "StaleClaimError",
    "TransactionAbortedError",
    "TransactionNotCommittedError",
    "UnsupportedError",
    "WorkerLostError",
    "WorkerProcessError",
]


def _restored(cls: type[GoncordiaError], args: tuple[Any, ...], state: Any) -> GoncordiaError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


class GoncordiaError(Exception):
    """The root of the tree."""

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle, which else would call classes with what only stands in their message."""
        return _restored, (type(self), self.args, self.__dict__)


class ConfigurationError(GoncordiaError, ValueError):
    """A wrong value, found before anything was written.

    The message names the field, the value and what would be right.
    """


class PayloadError(GoncordiaError):
    """Args, an output or a checkpoint that cannot be stored and come back equal.

    The message gives the path and the types, never the values.

    Attributes:
        kind: the job's kind, where it is known.
        job_id: the job's id, where there is one already.
    """

    def __init__(
        self, message: str, *, kind: str | None = None, job_id: UUID | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.job_id = job_id


class CodecError(GoncordiaError):
    """A codec failed on a job's args.

    When it fails to decode, the attempt has failed and is repeated by the retry policy: a key that
    is missing may come with a later deploy.

    Attributes:
        kind: the job's kind.
        job_id: the job's id, where there is one already.
    """

    def __init__(
        self, message: str, *, kind: str | None = None, job_id: UUID | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.job_id = job_id


class UnsupportedError(GoncordiaError):
    """The driver, or this version, does not have what was asked for.

    Attributes:
        driver: the driver's name; None: it is no affair of the driver's.
        capability: the capability that is off.
    """

    def __init__(self, driver: str | None, capability: str, hint: str = "") -> None:
        who = "this version" if driver is None else f"driver {driver!r}"
        message = f"{who} does not support {capability}"
        super().__init__(f"{message}: {hint}" if hint else message)
        self.driver = driver
        self.capability = capability


class ConflictError(GoncordiaError):
    """The job's state does not allow the request, or another job holds its unique key.

    Attributes:
        holder: the id of the job that holds the unique key, where that is the reason.
    """

    def __init__(self, message: str, *, holder: UUID | None = None) -> None:
        super().__init__(message)
        self.holder = holder


class NotFoundError(GoncordiaError, LookupError):
    """There is no such job, queue or session."""


class StaleClaimError(GoncordiaError):
    """The run no longer holds its job: it was taken back, or already ended."""


class JobFailedError(GoncordiaError):
    """The job that was waited for ended ``discarded`` or ``cancelled``.

    Attributes:
        job: the job as it was read, a ``JobInfo``.
    """

    def __init__(self, message: str, job: object) -> None:
        super().__init__(message)
        self.job = job


class InvalidCursorError(GoncordiaError, ValueError):
    """A page cursor that does not come from this list call with these filters."""


class AdmissionRejectedError(GoncordiaError):
    """The queue holds as many jobs as it may; nothing was enqueued.

    Attributes:
        queue: the queue.
        depth: how many jobs wait in it.
        max_depth: how many may.
    """

    def __init__(
        self, message: str, *, queue: str | None = None, depth: int = 0, max_depth: int = 0
    ) -> None:
        super().__init__(message)
        self.queue = queue
        self.depth = depth
        self.max_depth = max_depth


class MigrationRequiredError(GoncordiaError):
    """The stored schema does not fit this version of the code."""


class RunError(GoncordiaError):
    """Why the engine ended an attempt. Retry policies and error handlers see it."""


class JobTimeoutError(RunError, TimeoutError):
    """The attempt ran longer than its ``timeout``."""


class WorkerLostError(RunError):
    """The pool that ran the job ended without it, or lost contact for a whole lease."""


class WorkerProcessError(RunError):
    """The process that ran the attempt died, or did not start."""


class LeaseLapsedError(RunError):
    """The pool had no contact for a whole lease, and interrupts its runs then."""


class TransactionNotCommittedError(RunError):
    """The job was completed in a transaction that did not commit."""


Outcome = Literal["not_applied", "unknown"]


class DriverError(GoncordiaError):
    """The backend or its library failed; the library's own error is ``__cause__``.

    Attributes:
        outcome: ``"not_applied"`` when it is certain that nothing was written, else ``"unknown"``.
        retry_after: seconds after which the backend asks to be tried again, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        outcome: Outcome = "unknown",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.outcome: Outcome = outcome
        self.retry_after = retry_after


class DriverUnavailableError(DriverError):
    """The connection was lost, the server restarts or fails over."""


class DriverBusyError(DriverError):
    """Throttled, a lock time-out, a pool exhausted, disk or memory full."""


class TransactionAbortedError(DriverError):
    """The caller's own transaction failed: deadlock, serialization, snapshot.

    Goncordia never repeats it, since it cannot know what else the transaction did.
    """
