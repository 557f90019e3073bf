"""A job queue engine that works with the database you already have.

::

    from goncordia import Client, Job, Registry, WorkerPool

Everything public is here, and is imported when it is first asked for: code that only enqueues does
not load the engine.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from goncordia.admission import Admission
    from goncordia.args import JobArgs, Returns, TaskArgs
    from goncordia.client import (
        ChangeResult,
        ChangeSummary,
        Client,
        EnqueuedMany,
        JobFilter,
        JobHandle,
        JobInfo,
        JobPage,
        QueueInfo,
        SyncClient,
    )
    from goncordia.clock import Clock, SystemClock
    from goncordia.directives import Cancel, Discard, RetryAfter, RetryAt, Snooze
    from goncordia.driver import (
        AnyDriver,
        AttemptError,
        BaseDriver,
        Capabilities,
        JobState,
        NoTransactions,
        QueueState,
        connect,
    )
    from goncordia.engine.events import (
        Event,
        JobFinished,
        JobGivenBack,
        JobOverdue,
        JobRescued,
        JobStarted,
        LoopBlocked,
        Observer,
        ResultLost,
        SessionLost,
        SessionOpened,
    )
    from goncordia.engine.retention import Retention
    from goncordia.errors import (
        AdmissionRejectedError,
        CodecError,
        ConfigurationError,
        ConflictError,
        DriverBusyError,
        DriverError,
        DriverUnavailableError,
        GoncordiaError,
        InvalidCursorError,
        JobFailedError,
        JobTimeoutError,
        LeaseLapsedError,
        MigrationRequiredError,
        NotFoundError,
        PayloadError,
        RunError,
        StaleClaimError,
        TransactionAbortedError,
        TransactionNotCommittedError,
        UnsupportedError,
        WorkerLostError,
        WorkerProcessError,
    )
    from goncordia.job import Job, ProcessJob, SyncJob, current_job
    from goncordia.limits import KeyLimit, KindPolicy, QueuePolicy, RateLimit
    from goncordia.options import InsertOptions, InsertOpts
    from goncordia.payload.codecs import Codec
    from goncordia.periodic import (
        CatchUp,
        CronScheduler,
        PeriodicJob,
        Schedule,
        ScheduleFunction,
        ScheduleInfo,
        cron,
        delete_schedule,
        every,
        list_schedules,
    )
    from goncordia.pool import WorkerPool
    from goncordia.registry import CallNext, Middleware, Registry, WorkerOptions
    from goncordia.retry import ExponentialRetry, FixedRetry, NoRetry, RetryPolicy, by_error
    from goncordia.unique import UniqueOpts

__all__ = [
    "Admission",
    "AdmissionRejectedError",
    "AnyDriver",
    "AttemptError",
    "BaseDriver",
    "CallNext",
    "Cancel",
    "Capabilities",
    "CatchUp",
    "ChangeResult",
    "ChangeSummary",
    "Client",
    "Clock",
    "Codec",
    "CodecError",
    "ConfigurationError",
    "ConflictError",
    "CronScheduler",
    "Discard",
    "DriverBusyError",
    "DriverError",
    "DriverUnavailableError",
    "EnqueuedMany",
    "Event",
    "ExponentialRetry",
    "FixedRetry",
    "GoncordiaError",
    "InsertOptions",
    "InsertOpts",
    "InvalidCursorError",
    "Job",
    "JobArgs",
    "JobFailedError",
    "JobFilter",
    "JobFinished",
    "JobGivenBack",
    "JobHandle",
    "JobInfo",
    "JobOverdue",
    "JobPage",
    "JobRescued",
    "JobStarted",
    "JobState",
    "JobTimeoutError",
    "KeyLimit",
    "KindPolicy",
    "LeaseLapsedError",
    "LoopBlocked",
    "Middleware",
    "MigrationRequiredError",
    "NoRetry",
    "NoTransactions",
    "NotFoundError",
    "Observer",
    "PayloadError",
    "PeriodicJob",
    "ProcessJob",
    "QueueInfo",
    "QueuePolicy",
    "QueueState",
    "RateLimit",
    "Registry",
    "ResultLost",
    "Retention",
    "RetryAfter",
    "RetryAt",
    "RetryPolicy",
    "Returns",
    "RunError",
    "Schedule",
    "ScheduleFunction",
    "ScheduleInfo",
    "SessionLost",
    "SessionOpened",
    "Snooze",
    "StaleClaimError",
    "SyncClient",
    "SyncJob",
    "SystemClock",
    "TaskArgs",
    "TransactionAbortedError",
    "TransactionNotCommittedError",
    "UniqueOpts",
    "UnsupportedError",
    "WorkerLostError",
    "WorkerOptions",
    "WorkerPool",
    "WorkerProcessError",
    "by_error",
    "connect",
    "cron",
    "current_job",
    "delete_schedule",
    "every",
    "list_schedules",
]

# A library is quiet where the application has configured no logging.
logging.getLogger(__name__).addHandler(logging.NullHandler())

# In the order in which they build on each other, so that a name loads no more than it needs.
_MODULES: Final = (
    "errors",
    "clock",
    "directives",
    "retry",
    "admission",
    "args",
    "payload.codecs",
    "unique",
    "options",
    "driver",
    "client",
    "job",
    "limits",
    "registry",
    "engine.events",
    "engine.retention",
    "pool",
    "periodic",
)


def __getattr__(name: str) -> Any:
    """Import what is asked for, once."""
    if name in __all__:
        for each in _MODULES:
            module = import_module(f"{__name__}.{each}")
            if name in module.__all__:
                found = globals()[name] = getattr(module, name)
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is here already, and what can be asked for."""
    return sorted({*globals(), *__all__})
