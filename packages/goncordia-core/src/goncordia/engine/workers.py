"""Workers as the engine calls them: one coroutine function per kind, whatever the user wrote."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import msgspec

from goncordia.directives import Directive
from goncordia.driver import JobRow
from goncordia.engine.processes import Processes
from goncordia.engine.threads import Threads
from goncordia.job import Job, SyncJob, current_job_var
from goncordia.payload.codec import CONTENT_JSON
from goncordia.payload.codecs import Codec, decoded
from goncordia.payload.upcasting import upcast
from goncordia.registry import Middleware, WorkerSpec

__all__ = ["Handler", "Worker"]

Handler: TypeAlias = Callable[[Job[Any, Any]], Awaitable[object]]


class Worker:
    """One kind's worker in one pool.

    Attributes:
        spec: what was registered.
        handler: runs a job, middleware and all.
        in_thread: the handler itself runs in a thread, which cannot be interrupted.
        max_attempts: for jobs that do not say: the worker's number, else the pool's.
    """

    __slots__ = ("_codecs", "handler", "in_thread", "max_attempts", "spec")

    def __init__(
        self,
        spec: WorkerSpec,
        pool_middleware: tuple[Middleware, ...],
        max_attempts: int,
        threads: Threads,
        processes: Processes,
        codecs: Mapping[str, Codec],
    ) -> None:
        self.spec = spec
        self._codecs = codecs
        self.max_attempts = max_attempts if spec.max_attempts is None else spec.max_attempts
        self.in_thread = spec.execution == "thread"
        innermost: Handler = spec.handler
        if self.in_thread:
            innermost = partial(_call_in_thread, threads, spec.handler)
        elif spec.execution == "process":
            innermost = processes.run
        self.handler = _wrapped(innermost, pool_middleware + spec.middleware)

    def readable(self, row: JobRow) -> JobRow:
        """The job with its args as JSON of the version that the worker understands.

        Raises:
            CodecError: the codec failed.
            PayloadError: an upcaster failed.
        """
        upcasters = self.spec.upcasters
        if row.content == CONTENT_JSON and not upcasters:
            return row
        text = row.args
        if row.content != CONTENT_JSON:
            text = decoded(self._codecs[row.content], row.kind, text, row.id)
        if upcasters:
            version = row.payload_version
            text = upcast(upcasters, text, version=version, kind=row.kind, job_id=row.id)
        return msgspec.structs.replace(row, args=text, content=CONTENT_JSON)


def _wrapped(handler: Handler, middleware: tuple[Middleware, ...]) -> Handler:
    """The first middleware is the outermost."""
    for layer in reversed(middleware):
        handler = _layer(layer, handler)
    return handler


def _layer(layer: Middleware, inner: Handler) -> Handler:
    async def call(job: Job[Any, Any]) -> object:
        return await layer(job, inner)

    return call


async def _call_in_thread(
    threads: Threads, function: Callable[[Any], object], job: Job[Any, Any]
) -> object:
    """Run a plain function in a thread, and wait for it whatever happens.

    A cancellation cannot reach the thread: it is noted, the function may look at
    ``job.cancelled``, and when it raises at last, the cancellation counts and not its error, unless
    that is a directive.
    """
    blocking = SyncJob(job)
    context = contextvars.copy_context()
    context.run(current_job_var.set, blocking)
    future = threads.call(lambda: context.run(function, blocking))
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError as interruption:
            cancelled = interruption
    try:
        if future.cancelled():  # the pool has given up on the thread
            raise cancelled or asyncio.CancelledError
        error = future.exception()
        if cancelled is not None and error is not None and not isinstance(error, Directive):
            raise cancelled from error
        return future.result()
    finally:
        cancelled = error = None  # their tracebacks hold this frame
        del future
