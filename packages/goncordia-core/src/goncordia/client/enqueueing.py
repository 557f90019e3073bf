"""The asynchronous client: enqueueing."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from functools import partial
from typing import TypeVar, Unpack

from goncordia.args import JobArgs
from goncordia.client.base import AsyncBase
from goncordia.client.handles import EnqueuedMany, JobHandle
from goncordia.client.operations.inserting import Inserter, Many
from goncordia.client.operations.steps import Op
from goncordia.options import InsertOptions, InsertOpts

__all__ = ["Enqueueing"]

Tx_contra = TypeVar("Tx_contra", contravariant=True)
A = TypeVar("A", bound=JobArgs)


class Enqueueing(AsyncBase[Tx_contra]):
    """The part of :class:`Client` that enqueues."""

    async def enqueue(
        self, args: A, opts: InsertOpts | None = None, /, **options: Unpack[InsertOptions]
    ) -> JobHandle[A]:
        """Enqueue a job.

        Args:
            args: an instance of an args class, or ``task.args(...)``.
            opts: options as a value.
            options: options by name; they win over ``opts``.

        Returns:
            The job's handle; with ``duplicate`` set it is that of the job that is there already.

        Raises:
            PayloadError: the args are too large or would not come back equal.
            ConfigurationError: an option or the args class is wrong.
            UnsupportedError: the driver cannot keep what an option asks for.
            DriverError: the backend failed.
        """
        return await self._run(self._core.inserting.enqueue(args, opts, options))

    async def enqueue_tx(
        self,
        tx: Tx_contra,
        args: A,
        opts: InsertOpts | None = None,
        /,
        **options: Unpack[InsertOptions],
    ) -> JobHandle[A]:
        """Enqueue a job inside your own transaction: it is there if and only if that commits.

        Args:
            tx: what your library calls a transaction, or its connection in one.
            args: see :meth:`enqueue`.
            opts: see :meth:`enqueue`.
            options: see :meth:`enqueue`.

        Raises:
            ConfigurationError: also when ``tx`` is in no transaction.
            TransactionAbortedError: your transaction failed and must be repeated by you.
            Others: see :meth:`enqueue`.
        """
        return await self._run_tx(tx, self._core.inserting.enqueue(args, opts, options, tx=True))

    async def enqueue_many(
        self,
        args: Iterable[JobArgs] | AsyncIterable[JobArgs],
        opts: InsertOpts | None = None,
        /,
        *,
        atomic: bool = True,
        **options: Unpack[InsertOptions],
    ) -> EnqueuedMany:
        """Enqueue many jobs with one set of options.

        Args:
            args: any iterable, asynchronous ones too.
            opts: see :meth:`enqueue`.
            atomic: True: all or nothing; more jobs than the backend inserts so are refused before
                anything is written. False: in chunks, each for itself, and in bounded memory
                however many they are; what was enqueued before an error stays.
            options: see :meth:`enqueue`.

        Returns:
            How many, and their handles if ``args`` was a collection such as a list.

        Raises:
            UnsupportedError: with ``atomic``, they are too many.
            Others: see :meth:`enqueue`.
        """
        many = self._core.inserting.many(args, opts, options, atomic=atomic)
        return await self._many(many, self._run)

    async def enqueue_many_tx(
        self,
        tx: Tx_contra,
        args: Iterable[JobArgs] | AsyncIterable[JobArgs],
        opts: InsertOpts | None = None,
        /,
        **options: Unpack[InsertOptions],
    ) -> EnqueuedMany:
        """Enqueue many jobs inside your own transaction, all or nothing with it.

        Args:
            tx: see :meth:`enqueue_tx`.
            args: see :meth:`enqueue_many`; however many, they go in chunks.
            opts: see :meth:`enqueue`.
            options: see :meth:`enqueue`.

        Raises:
            Others: see :meth:`enqueue_tx`.
        """
        many = self._core.inserting.many(args, opts, options, tx=True)
        return await self._many(many, partial(self._run_tx, tx))

    async def enqueue_batch(
        self,
        jobs: Iterable[tuple[JobArgs, InsertOpts]] | AsyncIterable[tuple[JobArgs, InsertOpts]],
        /,
        *,
        atomic: bool = True,
    ) -> EnqueuedMany:
        """Enqueue many jobs, each with its own options: pairs ``(args, InsertOpts(…))``.

        Args:
            jobs: the pairs; see :meth:`enqueue_many`.
            atomic: see :meth:`enqueue_many`.

        Raises:
            Others: see :meth:`enqueue_many`.
        """
        batch = self._core.inserting.batch(jobs, atomic=atomic)
        return await self._many(batch, self._run)

    async def enqueue_batch_tx(
        self,
        tx: Tx_contra,
        jobs: Iterable[tuple[JobArgs, InsertOpts]] | AsyncIterable[tuple[JobArgs, InsertOpts]],
        /,
    ) -> EnqueuedMany:
        """Enqueue pairs ``(args, InsertOpts(…))`` inside your own transaction.

        Args:
            tx: see :meth:`enqueue_tx`.
            jobs: the pairs; however many, they go in chunks.

        Raises:
            Others: see :meth:`enqueue_tx`.
        """
        batch = self._core.inserting.batch(jobs, tx=True)
        return await self._many(batch, partial(self._run_tx, tx))

    async def _many(
        self, many: Many, send: Callable[[Op[Inserter, None]], Awaitable[None]]
    ) -> EnqueuedMany:
        try:
            if isinstance(many.source, AsyncIterable):
                async for item in many.source:
                    if many.add(item):
                        await send(many.flush())
            else:
                for item in many.source:
                    if many.add(item):
                        await send(many.flush())
            await send(many.flush())
        except Exception as error:
            many.failed(error)
            raise
        return many.result()
