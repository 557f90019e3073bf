"""What a worker is: its options, its middleware, and how the engine reads it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypedDict, overload
from uuid import UUID

import msgspec

from goncordia import _check
from goncordia._check import Duration
from goncordia._handlers import Execution, check_middleware
from goncordia._typing import TypeVar
from goncordia.args import JobArgs
from goncordia.driver.values import NO_TIMEOUT
from goncordia.errors import PayloadError
from goncordia.job import Job, ProcessJob, SyncJob
from goncordia.payload.codec import encode_value
from goncordia.payload.upcasting import Upcaster
from goncordia.retry import RetryPolicy, RetryRule, as_policy
from goncordia.unique import UniqueOpts

__all__ = [
    "CallNext",
    "Middleware",
    "TaskOptions",
    "WorkerDecorator",
    "WorkerOptions",
    "WorkerSpec",
    "checked_middleware",
    "checked_options",
]

A_in = TypeVar("A_in", bound=JobArgs)
S_in = TypeVar("S_in")
R = TypeVar("R")

CallNext: TypeAlias = Callable[[Job[Any, Any]], Awaitable[object]]
"""What a middleware calls to go on: the next one, at last the worker."""

Middleware: TypeAlias = Callable[[Job[Any, Any], CallNext], Awaitable[object]]
"""An async function around a worker.

Its exceptions count as the worker's::

    async def logged(job: Job, call_next: CallNext) -> object:
        log.info("start %s", job)
        return await call_next(job)
"""


class WorkerOptions(TypedDict, total=False):
    """The options of a worker.

    Attributes:
        max_attempts: attempts in all for jobs that do not say. Default: the pool's.
        timeout: seconds (or a ``timedelta``) for each attempt of jobs that do not say; None: no
            limit, which is also the default.
        retry_policy: how long to wait after a failure. Default: the pool's.
        middleware: around this worker, the first one outermost, inside the registry's.
        payload_version: the newest version of the args' shape that it understands. Default: that
            of the args class, else 1.
    """

    max_attempts: int
    timeout: Duration | None
    retry_policy: RetryRule
    middleware: Sequence[Middleware]
    payload_version: int


class TaskOptions(WorkerOptions, total=False):
    """The options of a function task: those of its worker, and those of its jobs.

    Attributes:
        queue: as in ``InsertOptions``.
        priority: as in ``InsertOptions``.
        tags: as in ``InsertOptions``.
        unique: as in ``InsertOptions``.
    """

    queue: str
    priority: int
    tags: Sequence[str]
    unique: UniqueOpts | None


class WorkerSpec(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A worker as the engine reads it.

    Attributes:
        kind: the kind of job that it runs.
        args_type: the args class.
        decode: from the stored args and the job's id to the args; PayloadError when they do not
            fit.
        execution: ``"async"``: await ``handler(Job)`` on the loop; ``"thread"``: call
            ``handler(SyncJob)`` in a thread; ``"process"``: import ``target`` in a process and
            call it with a ``ProcessJob`` there.
        handler: takes the job, also where the user's function takes a task's arguments.
        max_attempts: attempts in all; None: not said here.
        timeout: seconds; ``NO_TIMEOUT``: none; None: not said here.
        retry_policy: None: not said here.
        middleware: the first one is the outermost.
        payload_version: the newest that it understands.
        place: where the user's function is, for messages.
        upcasters: from older versions of the args, by the version that they start from.
        target: how a process imports the args class and the function, or the task; None unless
            that is how it is run.
    """

    kind: str
    args_type: Any
    decode: Callable[[bytes, UUID | None], Any]
    execution: Execution
    handler: Callable[[Any], Any]
    max_attempts: int | None = None
    timeout: float | None = None
    retry_policy: RetryPolicy | None = None
    middleware: tuple[Middleware, ...] = ()
    payload_version: int = 1
    place: str = ""
    upcasters: Mapping[int, Upcaster] = {}
    target: bytes | None = None

    def encode_output(self, value: object, /) -> bytes:
        """What the worker returned, as JSON of at most 64 KiB.

        Raises:
            PayloadError: it has no such form.
        """
        try:
            return encode_value(value, what="output", kind=self.kind)
        except PayloadError:
            if not inspect.iscoroutine(value):
                raise
            value.close()  # it will not be awaited, and need not be complained of
        raise PayloadError(
            "output: the worker returned a coroutine; register it with execution='async'",
            kind=self.kind,
        )


class WorkerDecorator(Protocol[A_in, S_in]):
    """What ``registry.worker(...)`` gives."""

    @overload
    def __call__(
        self, function: Callable[[Job[A_in, S_in]], Awaitable[R]], /
    ) -> Callable[[Job[A_in, S_in]], Awaitable[R]]: ...
    @overload
    def __call__(
        self, function: Callable[[SyncJob[A_in, S_in]], R], /
    ) -> Callable[[SyncJob[A_in, S_in]], R]: ...
    @overload
    def __call__(
        self, function: Callable[[ProcessJob[A_in]], R], /
    ) -> Callable[[ProcessJob[A_in]], R]: ...


def checked_middleware(field: str, given: Sequence[Middleware]) -> tuple[Middleware, ...]:
    """Middleware as a tuple.

    Raises:
        ConfigurationError: it is no sequence, or one of it no async function of (job, call_next).
    """
    for index, item in enumerate(_check.sequence(field, given, "a sequence of async functions")):
        check_middleware(f"{field}[{index}]", item)
    return tuple(given)


def checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options in the words of :class:`WorkerSpec`.

    Raises:
        ConfigurationError: one is unknown or wrong.
    """
    _check.known("worker option", options, WorkerOptions.__annotations__)
    found = dict(options)
    for name, value in options.items():
        match name:
            case "max_attempts" | "payload_version":
                found[name] = _check.whole(name, value, 1)
            case "timeout":
                found[name] = NO_TIMEOUT if value is None else _check.seconds(name, value)
            case "retry_policy":
                found[name] = as_policy(name, value)
            case _:
                found[name] = checked_middleware(name, value)
    return found
