"""What was enqueued, as the backend has it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar
from uuid import UUID

from goncordia import _check
from goncordia.args import JobArgs
from goncordia.client import Client, JobInfo, SyncClient
from goncordia.gontest.expected import Enqueued, Expectation
from goncordia.payload.codecs import Codec, checked_codecs

__all__ = ["SyncTracker", "Tracker"]

A = TypeVar("A", bound=JobArgs)


class Tracker:
    """Asks a backend what was enqueued, by whichever client, and makes a test fail by it.

    ::

        tracker = Tracker(client)
        await service.register("ann@example.com")
        await tracker.require_enqueued(SendEmail, 1, where=lambda args: args.to.startswith("ann"))

    It sees what is committed: a job in a transaction that is open or was rolled back is not there.
    Jobs count in whatever state they are, finished ones too, until they are deleted.

    Args:
        client: reads the jobs; any other client of the same backend may enqueue them.
        codecs: one, or several, for args that are not stored as JSON.

    Raises:
        ConfigurationError: a value is wrong; for a ``SyncClient`` there is :class:`SyncTracker`.
    """

    def __init__(self, client: Client[Any], *, codecs: Codec | Sequence[Codec] = ()) -> None:
        _check.instance("client", client, Client, "a Client")
        self._client = client
        self._codecs = checked_codecs("codecs", codecs)
        self._forgotten: frozenset[UUID] = frozenset()

    async def jobs(self) -> list[JobInfo]:
        """All jobs that were enqueued, oldest first, less those that were forgotten."""
        found = [job async for job in self._client.list_all() if job.id not in self._forgotten]
        return found[::-1]

    async def forget(self) -> None:
        """Count only jobs that are enqueued from now on; in the backend nothing changes."""
        self._forgotten = frozenset({job.id async for job in self._client.list_all()})

    async def enqueued(
        self,
        args: type[A],
        /,
        *,
        queue: str | None = None,
        tags: Collection[str] = (),
        where: Callable[[A], object] | None = None,
    ) -> list[Enqueued[A]]:
        """The jobs of one args class, oldest first.

        Args:
            args: the class; for a function task its ``args_class``.
            queue: only those in this queue.
            tags: only those with all of these tags.
            where: only those whose args this function says yes to.

        Raises:
            ConfigurationError: a value is wrong.
        """
        expected = Expectation(args, queue=queue, tags=tags, where=where, codecs=self._codecs)
        return expected.among(await self.jobs())

    async def require_enqueued(
        self,
        args: type[A],
        count: int | None = None,
        /,
        *,
        queue: str | None = None,
        tags: Collection[str] = (),
        where: Callable[[A], object] | None = None,
    ) -> list[Enqueued[A]]:
        """The jobs of one args class; the test fails unless they are so many.

        Args:
            args: see :meth:`enqueued`.
            count: how many, exactly; None: at least one.
            queue: see :meth:`enqueued`.
            tags: see :meth:`enqueued`.
            where: see :meth:`enqueued`.

        Raises:
            AssertionError: they are more or fewer; it shows what was enqueued instead.
            ConfigurationError: a value is wrong.
        """
        __tracebackhide__ = True  # pytest shows the test's own line
        expected = Expectation(args, queue=queue, tags=tags, where=where, codecs=self._codecs)
        return expected.require(count, await self.jobs())

    async def require_not_enqueued(
        self,
        args: type[A],
        /,
        *,
        queue: str | None = None,
        tags: Collection[str] = (),
        where: Callable[[A], object] | None = None,
    ) -> None:
        """Fail the test if there is a job of one args class; see :meth:`enqueued`.

        Raises:
            AssertionError: there is one; it shows what was enqueued.
            ConfigurationError: a value is wrong.
        """
        __tracebackhide__ = True  # as above
        expected = Expectation(args, queue=queue, tags=tags, where=where, codecs=self._codecs)
        expected.require_none(await self.jobs())


class SyncTracker:
    """:class:`Tracker` for synchronous tests.

    Args:
        client: reads the jobs.
        codecs: see :class:`Tracker`.

    Raises:
        ConfigurationError: it is no ``SyncClient``.
    """

    def __init__(self, client: SyncClient[Any], *, codecs: Codec | Sequence[Codec] = ()) -> None:
        _check.instance("client", client, SyncClient, "a SyncClient")
        self._client = client
        self._codecs = checked_codecs("codecs", codecs)
        self._forgotten: frozenset[UUID] = frozenset()

    def jobs(self) -> list[JobInfo]:
        """See :meth:`Tracker.jobs`."""
        found = [job for job in self._client.list_all() if job.id not in self._forgotten]
        return found[::-1]

    def forget(self) -> None:
        """See :meth:`Tracker.forget`."""
        self._forgotten = frozenset({job.id for job in self._client.list_all()})

    def enqueued(
        self,
        args: type[A],
        /,
        *,
        queue: str | None = None,
        tags: Collection[str] = (),
        where: Callable[[A], object] | None = None,
    ) -> list[Enqueued[A]]:
        """See :meth:`Tracker.enqueued`.

        Raises:
            ConfigurationError: a value is wrong.
        """
        return Expectation(args, queue=queue, tags=tags, where=where, codecs=self._codecs).among(
            self.jobs()
        )

    def require_enqueued(
        self,
        args: type[A],
        count: int | None = None,
        /,
        *,
        queue: str | None = None,
        tags: Collection[str] = (),
        where: Callable[[A], object] | None = None,
    ) -> list[Enqueued[A]]:
        """See :meth:`Tracker.require_enqueued`.

        Raises:
            AssertionError: they are more or fewer; it shows what was enqueued instead.
            ConfigurationError: a value is wrong.
        """
        __tracebackhide__ = True  # pytest shows the test's own line
        expected = Expectation(args, queue=queue, tags=tags, where=where, codecs=self._codecs)
        return expected.require(count, self.jobs())

    def require_not_enqueued(
        self,
        args: type[A],
        /,
        *,
        queue: str | None = None,
        tags: Collection[str] = (),
        where: Callable[[A], object] | None = None,
    ) -> None:
        """See :meth:`Tracker.require_not_enqueued`.

        Raises:
            AssertionError: there is one; it shows what was enqueued.
            ConfigurationError: a value is wrong.
        """
        __tracebackhide__ = True  # as above
        expected = Expectation(args, queue=queue, tags=tags, where=where, codecs=self._codecs)
        expected.require_none(self.jobs())
