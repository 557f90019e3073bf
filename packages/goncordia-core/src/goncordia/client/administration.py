"""The asynchronous client: looking at jobs, changing them, and queues."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from typing import TypeAlias, TypeVar, Unpack

from goncordia._check import Duration
from goncordia.client.base import AsyncBase
from goncordia.client.handles import JobRef
from goncordia.client.info import JobInfo, JobPage, QueueInfo
from goncordia.client.operations.changes import ChangeResult, ChangeSummary, Progress
from goncordia.client.operations.filters import JobFilter
from goncordia.client.operations.reading import PAGE, due
from goncordia.driver import ChangeAction, QueueState, When

__all__ = ["Administration"]

Tx_contra = TypeVar("Tx_contra", contravariant=True)

# A method named `list` hides the builtin from the annotations of its class.
_Infos: TypeAlias = "list[JobInfo | None]"
_Results: TypeAlias = "list[ChangeResult]"
_Queues: TypeAlias = "list[QueueState]"
_QueueInfos: TypeAlias = "list[QueueInfo]"


class Administration(AsyncBase[Tx_contra]):
    """The part of :class:`Client` that looks at jobs and changes them."""

    # ---------------------------------------------------------------- read

    async def get(self, job: JobRef, /) -> JobInfo:
        """A job as it is now.

        Args:
            job: its id, its handle, or anything else with its ``id``.

        Raises:
            NotFoundError: there is no such job, or no more.
        """
        return await self._run(self._core.reading.get(job))

    async def get_many(self, jobs: Iterable[JobRef], /) -> _Infos:
        """Jobs as they are now, in the order asked; None where there is none."""
        return await self._run(self._core.reading.get_many(jobs))

    async def list(
        self, *, cursor: str | None = None, limit: int = 100, **where: Unpack[JobFilter]
    ) -> JobPage:
        """One page of jobs, newest first.

        Args:
            cursor: ``page.cursor`` of the page before, with the same filter; None: the first.
            limit: at most so many, 1 to 1000.
            where: which jobs; see :class:`JobFilter`.

        Raises:
            InvalidCursorError: the cursor was changed, or belongs to another filter or driver.
            ConfigurationError: a filter is wrong.
            UnsupportedError: the driver does not filter by that.
        """
        return await self._run(self._core.reading.page(cursor, limit, where))

    async def list_all(self, **where: Unpack[JobFilter]) -> AsyncIterator[JobInfo]:
        """All jobs that match, newest first, page by page as they are asked for.

        Args:
            where: which jobs; see :class:`JobFilter`.

        Raises:
            Others: see :meth:`list`.
        """
        cursor: str | None = None
        while True:
            page = await self._run(self._core.reading.page(cursor, PAGE, where))
            for job in page.jobs:
                yield job
            cursor = page.cursor
            if cursor is None:
                return

    async def count(self, **where: Unpack[JobFilter]) -> int:
        """How many jobs match.

        Drivers without exact counts stop at 10,000.

        Args:
            where: which jobs; see :class:`JobFilter`.

        Raises:
            Others: see :meth:`list`.
        """
        return await self._run(self._core.reading.count(where))

    # ---------------------------------------------------------------- change one

    async def _change(self, action: ChangeAction, job: JobRef, when: When = None) -> ChangeResult:
        return await self._run(self._core.reading.change(action, job, when))

    async def cancel(self, job: JobRef, /) -> ChangeResult:
        """Cancel a job.

        A waiting job is cancelled at once. The worker of a running one is asked to stop
        (``REQUESTED``): if it completes all the same, or fails for good, that counts.

        Args:
            job: its id, its handle, or anything else with its ``id``.

        Raises:
            NotFoundError: there is no such job.
            ConflictError: it is completed or discarded.
        """
        return await self._change("cancel", job)

    async def cancel_tx(self, tx: Tx_contra, job: JobRef, /) -> ChangeResult:
        """Cancel a job inside your own transaction.

        Args:
            tx: see :meth:`enqueue_tx`.
            job: see :meth:`cancel`.

        Raises:
            TransactionAbortedError: your transaction failed and must be repeated by you.
            Others: see :meth:`cancel`.
        """
        return await self._run_tx(tx, self._core.reading.cancel_in_tx(job))

    async def retry(self, job: JobRef, /) -> ChangeResult:
        """Make a job due now: one that waits, and also one that has ended.

        It keeps its errors and its checkpoint, and gets at least one more attempt.

        Args:
            job: see :meth:`cancel`.

        Raises:
            NotFoundError: there is no such job.
            ConflictError: it is running, or another job holds its unique key (``.holder``).
        """
        return await self._change("retry", job)

    async def reschedule(
        self, job: JobRef, /, *, run_at: datetime | None = None, delay: Duration | None = None
    ) -> ChangeResult:
        """Move the time when a waiting job is due.

        Args:
            job: see :meth:`cancel`.
            run_at: the new time; aware.
            delay: seconds from now, by the backend's clock; give one of the two.

        Raises:
            NotFoundError: there is no such job.
            ConflictError: it is running or has ended.
            ConfigurationError: none or both of the times are given.
        """
        return await self._change("reschedule", job, due(run_at, delay))

    async def delete(self, job: JobRef, /) -> ChangeResult:
        """Delete a job that waits or has ended; its unique key is free again.

        Args:
            job: see :meth:`cancel`.

        Raises:
            NotFoundError: there is no such job.
            ConflictError: it is running.
        """
        return await self._change("delete", job)

    # ---------------------------------------------------------------- change many

    async def _change_many(
        self, action: ChangeAction, jobs: Iterable[JobRef], when: When = None
    ) -> _Results:
        return await self._run(self._core.reading.change_many(action, jobs, when))

    async def cancel_many(self, jobs: Iterable[JobRef], /) -> _Results:
        """:meth:`cancel` for each; a refusal is a result, not an error. In the order given."""
        return await self._change_many("cancel", jobs)

    async def retry_many(self, jobs: Iterable[JobRef], /) -> _Results:
        """:meth:`retry` for each; a refusal is a result, not an error. In the order given."""
        return await self._change_many("retry", jobs)

    async def reschedule_many(
        self,
        jobs: Iterable[JobRef],
        /,
        *,
        run_at: datetime | None = None,
        delay: Duration | None = None,
    ) -> _Results:
        """:meth:`reschedule` for each; a refusal is a result, not an error. In the order given."""
        return await self._change_many("reschedule", jobs, due(run_at, delay))

    async def delete_many(self, jobs: Iterable[JobRef], /) -> _Results:
        """:meth:`delete` for each; a refusal is a result, not an error. In the order given."""
        return await self._change_many("delete", jobs)

    # ---------------------------------------------------------------- change by filter

    async def _change_where(
        self,
        action: ChangeAction,
        where: JobFilter,
        everything: bool,
        progress: Progress | None,
        when: When = None,
    ) -> ChangeSummary:
        op = self._core.reading.change_where(
            action, where, everything=everything, when=when, progress=progress
        )
        return await self._run(op)

    async def cancel_where(
        self,
        *,
        everything: bool = False,
        progress: Progress | None = None,
        **where: Unpack[JobFilter],
    ) -> ChangeSummary:
        """Cancel the jobs that match; without ``state``: those that wait or run.

        They are changed page by page, each for itself; what was changed before an error stays.

        Args:
            everything: without any filter, this must be True.
            progress: called after each page with what was done so far; what it raises ends it.
            where: which jobs; see :class:`JobFilter`.

        Raises:
            ConfigurationError: a filter is wrong, or there is none.
            UnsupportedError: the driver does not filter by that.
        """
        return await self._change_where("cancel", where, everything, progress)

    async def retry_where(
        self,
        *,
        everything: bool = False,
        progress: Progress | None = None,
        **where: Unpack[JobFilter],
    ) -> ChangeSummary:
        """Retry the jobs that match; without ``state``: the retryable and discarded ones.

        Args:
            everything: see :meth:`cancel_where`.
            progress: see :meth:`cancel_where`.
            where: see :meth:`cancel_where`.

        Raises:
            Others: see :meth:`cancel_where`.
        """
        return await self._change_where("retry", where, everything, progress)

    async def reschedule_where(
        self,
        *,
        run_at: datetime | None = None,
        delay: Duration | None = None,
        everything: bool = False,
        progress: Progress | None = None,
        **where: Unpack[JobFilter],
    ) -> ChangeSummary:
        """Move the time of the waiting jobs that match.

        Args:
            run_at: see :meth:`reschedule`.
            delay: see :meth:`reschedule`.
            everything: see :meth:`cancel_where`.
            progress: see :meth:`cancel_where`.
            where: see :meth:`cancel_where`.

        Raises:
            Others: see :meth:`cancel_where`.
        """
        when = due(run_at, delay)
        return await self._change_where("reschedule", where, everything, progress, when)

    async def delete_where(
        self,
        *,
        everything: bool = False,
        progress: Progress | None = None,
        **where: Unpack[JobFilter],
    ) -> ChangeSummary:
        """Delete the jobs that match; without ``state``: all but the running ones.

        Args:
            everything: see :meth:`cancel_where`.
            progress: see :meth:`cancel_where`.
            where: see :meth:`cancel_where`.

        Raises:
            Others: see :meth:`cancel_where`.
        """
        return await self._change_where("delete", where, everything, progress)

    # ---------------------------------------------------------------- queues

    async def queue_pause(self, name: str, /) -> None:
        """Let workers claim nothing more of a queue until it is resumed; what runs goes on."""
        await self._run(self._core.reading.queue_pause(name))

    async def queue_resume(self, name: str, /) -> None:
        """Take a pause back."""
        await self._run(self._core.reading.queue_resume(name))

    async def queues(self) -> _Queues:
        """The queues that hold unfinished jobs or were ever paused, by name."""
        return await self._run(self._core.reading.queues())

    async def queue_stats(self) -> _QueueInfos:
        """The queues of :meth:`queues`, with how many jobs wait and run in each, by name.

        Where the driver does not count by itself, it reads the jobs that are unfinished, at most
        10,000; beyond that the numbers are lower bounds (``exact`` is False).
        """
        return await self._run(self._core.reading.queue_stats())
