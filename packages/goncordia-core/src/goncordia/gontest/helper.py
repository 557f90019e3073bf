"""One attempt of a job at a time, with the whole engine around it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar, Unpack, overload
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from goncordia import _check
from goncordia.args import JobArgs, TaskArgs
from goncordia.client import Client, JobInfo
from goncordia.client.handles import JobRef
from goncordia.clock import SystemClock
from goncordia.driver import AnyDriver, FinishTo, JobState
from goncordia.engine.events import Event, JobFinished, JobGivenBack, JobStarted
from goncordia.errors import ConfigurationError
from goncordia.gontest.pools import SinglePool, checked_settings, registry_of
from goncordia.job import Job, SyncJob
from goncordia.memory import MemoryDriver
from goncordia.options import InsertOptions
from goncordia.payload.tasks import Task
from goncordia.registry import Registry

__all__ = ["WorkResult", "WorkerHelper", "require_work"]

A = TypeVar("A", bound=JobArgs)
S = TypeVar("S")
R = TypeVar("R")

_AT_ONCE: Final = 100
"""So many jobs are claimed at a time in search of the one that is meant."""

_OWN: Final = frozenset({"queues", "concurrency", "shutdown_timeout", "observer"})

_BEGINS_WITHIN: Final = 10.0
"""Real seconds after which a job that nobody can claim is complained of."""


class WorkResult(msgspec.Struct, frozen=True):
    """What one attempt came to.

    Attributes:
        info: the job afterwards.
        error: what the worker raised, or was interrupted for, if that made the attempt fail.
        state: what the attempt left the job in, such as ``"completed"``; ``"retryable"`` and
            ``"scheduled"`` also where it has become due since.
    """

    info: JobInfo
    error: BaseException | None
    state: JobState

    @property
    def output(self) -> Any:
        """What the worker returned, as plain JSON data."""
        return self.info.output


class WorkerHelper(Generic[S]):
    """Runs the workers of a registry, one attempt at a time.

    Each attempt is that of a real pool: the job is enqueued, claimed, decoded, run with middleware,
    timeout and lifespan, and its end is stored::

        helper = gontest.WorkerHelper(registry)
        result = await helper.work(Sync("busy"))
        assert result.state == "retryable"
        assert (await helper.attempt(result.info)).state == "completed"

    Args:
        registry: the workers.
        driver: any driver; None: a new memory driver.
        app: what workers find as ``job.app``, in place of what the registry's lifespan yields,
            which is then not entered.
        settings: those of ``WorkerPool`` that are not the helper's own affair, such as
            ``max_attempts`` or ``middleware``.

    Attributes:
        client: a client on the driver.

    Raises:
        ConfigurationError: a value is wrong.
    """

    def __init__(
        self,
        registry: Registry[S],
        driver: AnyDriver | None = None,
        *,
        app: S | UnsetType = UNSET,
        **settings: Any,
    ) -> None:
        self._settings = checked_settings(settings, _OWN)
        self._registry = _check.instance("registry", registry, Registry, "a Registry")
        self._driver: AnyDriver = MemoryDriver() if driver is None else driver
        self._app = app
        self.client: Client[Any] = Client(self._driver)

    async def work(self, args: JobArgs, /, **options: Unpack[InsertOptions]) -> WorkResult:
        """Enqueue a job and run its first attempt, also when it is due later.

        Args:
            args: see ``Client.enqueue``.
            options: see ``Client.enqueue``.

        Raises:
            ConfigurationError: the registry has no worker of the kind, or an option is wrong.
            AssertionError: the job cannot be run now.
            Others: see ``Client.enqueue``.
        """
        self._require_worker(args.kind)
        return await self.attempt(await self.client.enqueue(args, **options))

    async def attempt(self, job: JobRef, /) -> WorkResult:
        """Run a job's next attempt, whenever it is due.

        A job that has ended is brought back for it, as by ``client.retry``.

        Args:
            job: its handle, its id, or anything else with its ``id``.

        Raises:
            ConfigurationError: the registry has no worker of the kind.
            ConflictError: the job runs, or another one holds its unique key.
            NotFoundError: there is no such job.
            AssertionError: it cannot be run now; it says why.
        """
        info = await self.client.get(job)
        self._require_worker(info.kind)
        await self.client.retry(info)  # due now, if it is not
        one = _One(info.id)
        own: dict[str, Any] = {
            "queues": [info.queue],
            "concurrency": _AT_ONCE,
            "shutdown_timeout": 0,
            "observer": one.observe,
        }
        registry = registry_of(self._registry, self._app, frozenset({info.kind}))
        async with SinglePool(self._driver, registry, info.id, **self._settings, **own):
            begun = await one.begun()
            if begun:
                await one.over
        info = await self.client.get(job)
        if not begun or one.given_back:
            raise AssertionError(await self._why_not(info, one.given_back))
        return WorkResult(info, one.error, _left_in(info.state, one.asked))

    def _require_worker(self, kind: str) -> None:
        kinds = self._registry.kinds
        if kind not in kinds:
            there = ", ".join(sorted(kinds)) or "none"
            raise ConfigurationError(
                f"kind: {kind!r} has no worker in this registry; there are: {there}"
            )

    async def _why_not(self, info: JobInfo, reason: str) -> str:
        if not reason:
            paused = {queue.name for queue in await self.client.queues() if queue.paused}
            reason = "its queue is paused" if info.queue in paused else "its group may be full"
        return (
            f"job {info.id} ({info.kind}) is {info.state} in queue {info.queue!r} "
            f"and was not run: {reason}"
        )


class _One:
    """What becomes of one attempt of one job."""

    def __init__(self, job_id: UUID) -> None:
        self._job_id = job_id
        loop = asyncio.get_running_loop()
        self._begun: asyncio.Future[bool] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()
        self.error: BaseException | None = None
        self.asked: FinishTo | None = None
        self.given_back = ""

    def observe(self, event: Event) -> None:
        match event:
            case JobStarted(row) if row.id == self._job_id:
                self._begin()
            case JobGivenBack(row, reason) if row.id == self._job_id and not self.over.done():
                self.given_back = reason
                self._end()
            case JobFinished(row, to, _, error) if row.id == self._job_id and not self.over.done():
                self.asked, self.error = to, error
                self._end()
            case _:
                pass

    async def begun(self) -> bool:
        """Wait until it is claimed, for a bounded time; whether it was."""
        timer = SystemClock().call_later(_BEGINS_WITHIN, self._give_up)
        try:
            return await self._begun
        finally:
            timer.cancel()

    def _begin(self) -> None:
        if not self._begun.done():
            self._begun.set_result(True)

    def _give_up(self) -> None:
        if not self._begun.done():
            self._begun.set_result(False)

    def _end(self) -> None:
        self._begin()
        self.over.set_result(None)


def _left_in(state: JobState, asked: FinishTo | None) -> JobState:
    """The state before any time has passed."""
    if state is JobState.AVAILABLE:
        return JobState.RETRYABLE if asked == "retry" else JobState.SCHEDULED
    return state


@overload
async def require_work(
    worker: Callable[[Job[A, None]], Awaitable[object]] | Callable[[SyncJob[A, None]], object],
    args: A,
    /,
    *,
    driver: AnyDriver | None = None,
    **options: Unpack[InsertOptions],
) -> WorkResult: ...
@overload
async def require_work(
    worker: Callable[[Job[A, S]], Awaitable[object]] | Callable[[SyncJob[A, S]], object],
    args: A,
    /,
    *,
    app: S,
    driver: AnyDriver | None = None,
    **options: Unpack[InsertOptions],
) -> WorkResult: ...
@overload
async def require_work(
    worker: Task[..., Any, R],
    args: TaskArgs[R],
    /,
    *,
    driver: AnyDriver | None = None,
    **options: Unpack[InsertOptions],
) -> WorkResult: ...
async def require_work(
    worker: Any,
    args: JobArgs,
    /,
    *,
    app: Any = None,
    driver: AnyDriver | None = None,
    **options: Unpack[InsertOptions],
) -> WorkResult:
    """Run a worker once on these args, as a pool would; the test fails unless it completes.

    ::

        await gontest.require_work(send_email, SendEmail("ann@example.com"), app=App(mailer))

    Args:
        worker: the function, registered or not; its registry's middleware and options do not
            count. Or a function task.
        args: what would be enqueued; for a task ``task.args(…)``.
        app: what the worker finds as ``job.app``.
        driver: any driver; None: a new memory driver.
        options: the options of the job.

    Raises:
        AssertionError: it did not complete; the worker's own exception is its ``__cause__``.
        ConfigurationError: the function is no worker of these args, or an option is wrong.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    registry: Registry[Any] = Registry()
    if isinstance(worker, Task):
        registry.task(kind=worker.kind)(worker.__wrapped__)
    else:
        registry.add_worker(type(args), worker)
    result = await WorkerHelper(registry, driver, app=app).work(args, **options)
    if result.state != JobState.COMPLETED:
        error = result.error
        why = "" if error is None else f": {type(error).__name__}: {error}"
        raise AssertionError(
            f"{result.info.kind!r} completed expected, it is {result.state}{why}"
        ) from error
    return result
