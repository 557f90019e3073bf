"""Clients whose jobs are worked before an enqueue returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Any, Final, TypeVar, Unpack

from msgspec import UNSET, UnsetType

from goncordia.args import JobArgs
from goncordia.client import Client, EnqueuedMany, JobHandle, JobInfo, SyncClient
from goncordia.driver import AnyDriver, BaseDriver, JobState
from goncordia.gontest.pools import checked_settings, registry_of, worker_pool
from goncordia.job import current_job
from goncordia.options import InsertOptions, InsertOpts
from goncordia.payload.codecs import Codec
from goncordia.registry import Registry

__all__ = ["InlineClient", "SyncInlineClient"]

A = TypeVar("A", bound=JobArgs)
S = TypeVar("S")
Tx_contra = TypeVar("Tx_contra", contravariant=True)
SyncTx_contra = TypeVar("SyncTx_contra", contravariant=True)

_OWN: Final = frozenset({"queues"})
_TO_RUN: Final = frozenset({JobState.AVAILABLE, JobState.RETRYABLE})


class InlineClient(Client[Tx_contra]):
    """A client for tests: each enqueue works all that is due before it returns.

    The work is that of a real pool, on the driver that is given: args are decoded, middleware,
    timeouts, the retry policy's end and directives count, and what became of a job is stored with
    it. Three things differ:

    - a failed attempt is followed by the next at once, not when it is due;
    - all queues are worked, whatever their names;
    - an enqueue from inside a worker adds to the work that is under way, and does not wait for it.

    A job that is due later, or that snoozed, stays; after a ``MockClock`` was moved, :meth:`work`
    runs it. So it does with what was enqueued in a transaction, once that is committed. As with a
    pool, an enqueue does not raise what a worker raises: :meth:`wait` does.

    Args:
        driver: where the jobs are; any driver.
        registry: the workers; jobs of other kinds are left alone.
        app: what workers find as ``job.app``, in place of what the registry's lifespan yields,
            which is else entered anew each time.
        defaults: options of every enqueue.
        codec: what args become before they are stored, and are read with again.
        settings: those of ``WorkerPool``, such as ``max_attempts`` or ``middleware``.

    Raises:
        ConfigurationError: a value is wrong.
    """

    def __init__(
        self,
        driver: BaseDriver[Tx_contra, Any],
        registry: Registry[S],
        *,
        app: S | UnsetType = UNSET,
        defaults: InsertOpts | None = None,
        codec: Codec | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(driver, defaults=defaults, codec=codec)
        self._worked = _Worked(driver, registry_of(registry, app), codec, settings)
        self._lock = asyncio.Lock()

    async def enqueue(
        self, args: A, opts: InsertOpts | None = None, /, **options: Unpack[InsertOptions]
    ) -> JobHandle[A]:
        """Enqueue a job and work it; see ``Client.enqueue``."""
        handle = await super().enqueue(args, opts, **options)
        await self.work()
        return handle

    async def enqueue_many(
        self,
        args: Iterable[JobArgs] | AsyncIterable[JobArgs],
        opts: InsertOpts | None = None,
        /,
        *,
        atomic: bool = True,
        **options: Unpack[InsertOptions],
    ) -> EnqueuedMany:
        """Enqueue many jobs and work them; see ``Client.enqueue_many``."""
        many = await super().enqueue_many(args, opts, atomic=atomic, **options)
        await self.work()
        return many

    async def enqueue_batch(
        self,
        jobs: Iterable[tuple[JobArgs, InsertOpts]] | AsyncIterable[tuple[JobArgs, InsertOpts]],
        /,
        *,
        atomic: bool = True,
    ) -> EnqueuedMany:
        """Enqueue many jobs with their own options and work them; see ``Client.enqueue_batch``."""
        many = await super().enqueue_batch(jobs, atomic=atomic)
        await self.work()
        return many

    async def work(self) -> None:
        """Work all jobs that are due or wait for a retry, until there are none or none can run.

        Inside a worker it does nothing: who works the worker's own job goes on with these.

        Raises:
            DriverError: the backend failed.
        """
        if current_job() is None:
            async with self._lock:
                await self._worked()


class SyncInlineClient(SyncClient[SyncTx_contra]):
    """:class:`InlineClient` for synchronous code: it blocks while a thread works the jobs.

    Args:
        driver: see :class:`InlineClient`.
        registry: see :class:`InlineClient`.
        app: see :class:`InlineClient`.
        defaults: see :class:`InlineClient`.
        codec: see :class:`InlineClient`.
        settings: see :class:`InlineClient`.

    Raises:
        ConfigurationError: a value is wrong.
    """

    def __init__(
        self,
        driver: BaseDriver[Any, SyncTx_contra],
        registry: Registry[S],
        *,
        app: S | UnsetType = UNSET,
        defaults: InsertOpts | None = None,
        codec: Codec | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(driver, defaults=defaults, codec=codec)
        self._backend = driver
        self._worked = _Worked(driver, registry_of(registry, app), codec, settings)

    def enqueue(
        self, args: A, opts: InsertOpts | None = None, /, **options: Unpack[InsertOptions]
    ) -> JobHandle[A]:
        """Enqueue a job and work it; see ``SyncClient.enqueue``."""
        handle = super().enqueue(args, opts, **options)
        self.work()
        return handle

    def enqueue_many(
        self,
        args: Iterable[JobArgs],
        opts: InsertOpts | None = None,
        /,
        *,
        atomic: bool = True,
        **options: Unpack[InsertOptions],
    ) -> EnqueuedMany:
        """Enqueue many jobs and work them; see ``SyncClient.enqueue_many``."""
        many = super().enqueue_many(args, opts, atomic=atomic, **options)
        self.work()
        return many

    def enqueue_batch(
        self, jobs: Iterable[tuple[JobArgs, InsertOpts]], /, *, atomic: bool = True
    ) -> EnqueuedMany:
        """Enqueue many jobs with their own options and work them; see ``enqueue_batch``."""
        many = super().enqueue_batch(jobs, atomic=atomic)
        self.work()
        return many

    def work(self) -> None:
        """See :meth:`InlineClient.work`.

        Raises:
            DriverError: the backend failed.
        """
        if current_job() is None:
            portal = self._backend._own_portal()  # pyright: ignore[reportPrivateUsage]  # connections belong to the loop that the driver's synchronous side has already
            portal.call(self._worked)


class _Worked:
    """Called, it works what is due and what failed, as long as that changes anything."""

    def __init__(
        self,
        driver: AnyDriver,
        registry: Registry[Any],
        codec: Codec | None,
        settings: Mapping[str, Any],
    ) -> None:
        codecs = {} if codec is None else {"codecs": codec}
        self._settings = codecs | dict(checked_settings(settings, _OWN))
        self._driver = driver
        self._registry = registry
        self._client: Client[Any] = Client(driver)

    async def __call__(self) -> None:
        before: frozenset[object] = frozenset()
        while left := await self._left():
            now = frozenset((job.id, job.attempt) for job in left)
            if now == before:
                return  # in paused queues, or for newer code
            before = now
            failed = [job for job in left if job.state is JobState.RETRYABLE]
            await self._client.retry_many(failed)
            queues = sorted({job.queue for job in left})
            async with worker_pool(
                self._driver, self._registry, queues=queues, **self._settings
            ) as pool:
                await pool.drain()

    async def _left(self) -> list[JobInfo]:
        kinds = self._registry.kinds
        jobs = self._client.list_all()
        return [job async for job in jobs if job.state in _TO_RUN and job.kind in kinds]
