"""The executors: a driver's operations, bound to a connection pool or to one transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar
from uuid import UUID

import msgspec

from goncordia.clock import Clock
from goncordia.driver.begun import Begun
from goncordia.driver.capabilities import Capabilities
from goncordia.driver.defaults import listing
from goncordia.driver.defaults.queues import RecordQueues
from goncordia.driver.defaults.sessions import RecordSessions
from goncordia.driver.defaults.steps import after_effect
from goncordia.driver.requests import (
    Change,
    FetchRequest,
    Finish,
    ListFilter,
    Mark,
    PruneRequest,
)
from goncordia.driver.results import (
    Beat,
    Changed,
    FetchResult,
    InsertResult,
    Outcome,
    Page,
    PutResult,
    QueueState,
    QueueStats,
    SessionInfo,
)
from goncordia.driver.values import JobRow, NewJob, Record
from goncordia.errors import UnsupportedError

__all__ = ["BaseExecutor", "SyncExecutor", "SyncTxExecutor", "TxExecutor"]


class TxExecutor(ABC):
    """The operations of one transaction of the caller; the commit is the caller's.

    A driver with ``native_tx`` subclasses it. It neither commits nor rolls back, and leaves the
    connection's settings as they were.
    """

    @abstractmethod
    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """As :meth:`BaseExecutor.insert_many`, all or nothing with the transaction.

        A duplicate does not abort the transaction; where that cannot be kept, the call raises
        ``TransactionAbortedError``.
        """

    @abstractmethod
    async def cancel_many(self, ids: Sequence[UUID], /) -> list[Changed]:
        """As a ``cancel`` by :meth:`BaseExecutor.change_many`."""

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """As :meth:`BaseExecutor.finish_many`; capability ``tx_finish``."""
        raise UnsupportedError(type(self).__name__, "tx_finish")


class SyncTxExecutor(ABC):
    """:class:`TxExecutor` for synchronous transactions; a driver with ``sync_tx`` subclasses it."""

    @abstractmethod
    def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`TxExecutor.insert_many`."""

    @abstractmethod
    def cancel_many(self, ids: Sequence[UUID], /) -> list[Changed]:
        """See :meth:`TxExecutor.cancel_many`."""

    def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """See :meth:`TxExecutor.finish_many`."""
        raise UnsupportedError(type(self).__name__, "tx_finish")


class SyncExecutor(ABC):
    """What a ``SyncClient`` needs of a driver. The default puts a thread before the async one."""

    @abstractmethod
    def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`BaseExecutor.insert_many`."""

    @abstractmethod
    def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        """See :meth:`BaseExecutor.get_many`."""

    @abstractmethod
    def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        """See :meth:`BaseExecutor.list_jobs`."""

    @abstractmethod
    def count(self, where: ListFilter, /) -> int:
        """See :meth:`BaseExecutor.count`."""

    @abstractmethod
    def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        """See :meth:`BaseExecutor.change_many`."""

    @abstractmethod
    def queue_pause(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_pause`."""

    @abstractmethod
    def queue_resume(self, name: str, /) -> None:
        """See :meth:`BaseExecutor.queue_resume`."""

    @abstractmethod
    def queue_list(self) -> list[QueueState]:
        """See :meth:`BaseExecutor.queue_list`."""

    @abstractmethod
    def queue_stats(self) -> list[QueueStats]:
        """See :meth:`BaseExecutor.queue_stats`."""

    @abstractmethod
    def now(self) -> datetime:
        """See :meth:`BaseExecutor.now`."""


class BaseExecutor(ABC):
    """A driver's operations on its own connections.

    Ten methods are required; every other one has a correct default made from the ten, which a
    driver overrides for speed or strength, one capability each. Lists of results follow the
    order of the requests. Every request but ``fetch`` and ``exchange`` may be sent again
    unchanged after an unknown outcome, and the answer then says what the first one did.

    Args:
        driver_name: named in errors.
        capabilities: those of the driver instance.
        clock: the driver's clock; the default ``now`` is its time.
    """

    begins: ClassVar[bool] = False
    """Whether :meth:`begin_exchange` does anything."""

    def __init__(self, driver_name: str, capabilities: Capabilities, clock: Clock) -> None:
        self.driver_name = driver_name
        self.capabilities = capabilities
        self.clock = clock
        self._sessions = RecordSessions(self, clock)
        self._queues = RecordQueues(self)

    # ---------------------------------------------------------------- the ten

    @abstractmethod
    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """Insert jobs; a held unique key or a known id is an answer, not an error.

        The id is looked at before the unique key. Up to ``capabilities.atomic_insert`` jobs are
        inserted all or nothing.
        """

    @abstractmethod
    async def fetch(self, request: FetchRequest, /) -> FetchResult:
        """Claim due jobs: by priority descending, then run_at, then id, queue by queue.

        Each claimed job's ``attempt`` goes up by one, and its ``started`` mark is cleared. Two
        fetches never give the same job while the first claim holds. A job of a group is claimed
        only while fewer of the group run than the job's own ``group_limit``.
        """

    @abstractmethod
    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """End claims. Each acts only on exactly the claim that it names."""

    @abstractmethod
    async def held(self, session: UUID, fetch_no: int | None, limit: int, /) -> list[JobRow]:
        """At most ``limit`` running jobs claimed by the session, or by that one fetch of it."""

    @abstractmethod
    async def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        """The jobs with these ids, None where there is none."""

    @abstractmethod
    async def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        """One page of jobs, newest id first.

        Raises:
            InvalidCursorError: ``page`` was not given by this driver.
        """

    @abstractmethod
    async def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        """Cancel, retry, reschedule or delete jobs, each for itself.

        ========== ========================= ============================== =======================
        asked of   waiting                   running                        finished
        ========== ========================= ============================== =======================
        cancel     cancelled                 REQUESTED: complete and        cancelled: ALREADY,
                                             discard still win, retry,      else CONFLICT
                                             snooze, release end cancelled
        retry      due now                   CONFLICT                       waiting, due now; or
                                                                            CONFLICT with the
                                                                            holder of its key
        reschedule moves run_at              CONFLICT                       CONFLICT
        delete     gone                      CONFLICT                       gone
        ========== ========================= ============================== =======================

        A retry makes ``max_attempts``, where it is given, at least ``attempt + 1``; it keeps the
        errors and the checkpoint and clears the output and a cancel request.
        """

    @abstractmethod
    async def record_get(self, name: str, /) -> Record | None:
        """The record, or None."""

    @abstractmethod
    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> PutResult:
        """Write the record if its version is the expected one; 0: if there is none.

        Args:
            name: the record.
            value: the new value; None deletes it.
            expected_version: the version it must have.
            token: 16 random bytes. A put whose token is that of the record's last put is
                answered with ``done`` and changes nothing. Deleting what is not there is done.
        """

    @abstractmethod
    async def record_list(self, prefix: str, /) -> list[Record]:
        """All records whose names start so, by name."""

    # ---------------------------------------------------------------- one round trip

    async def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        """Finish, then fetch. This is what the engine calls.

        The fetch need not see what the finishes freed, and a stale finish does not stop it.
        Without a request nothing is fetched and the result is None. Overridden with the
        capability ``exchange``.
        """
        outcomes = await self.finish_many(finishes) if finishes else []
        if request is None:
            return outcomes, None
        with after_effect(finishes):
            return outcomes, await self._fetch_as_allowed(request)

    async def _fetch_as_allowed(self, request: FetchRequest) -> FetchResult:
        """Fetch, if the session is open, from the queues that are not paused."""
        if self.capabilities.server_time:
            return await self.fetch(request)
        if not await self._sessions.is_open(request.session):
            return FetchResult(jobs=[], lost=True)
        paused = await self._queues.paused()
        left = tuple(queue for queue in request.queues if queue.name not in paused)
        skipped = tuple(queue.name for queue in request.queues if queue.name in paused)
        if not left:
            return FetchResult(jobs=[], next_due_in=None, paused=skipped)
        result = await self.fetch(msgspec.structs.replace(request, queues=left))
        return msgspec.structs.replace(result, paused=skipped)

    def begin_exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> Begun[tuple[list[Outcome], FetchResult | None]] | None:
        """:meth:`exchange`, sent before this returns; for who has just heard of a job.

        Called only where ``begins`` is true.

        Returns:
            What gives the answer, to be awaited once or closed; None: nothing was sent, for that
            would have to wait.
        """
        del finishes, request
        return None

    async def mark_many(self, marks: Sequence[Mark], /) -> list[Outcome]:
        """Mark claims as started, or store checkpoints; capability ``marks``."""
        raise UnsupportedError(self.driver_name, "marks")

    # ---------------------------------------------------------------- sessions

    async def session_open(self, session: UUID, worker_id: str, lease: float, /) -> None:
        """Open a session under a new random id. Opening an open id again changes nothing.

        Args:
            session: an id that was never used before.
            worker_id: the pool's name; information.
            lease: seconds that the session holds without a beat.
        """
        await self._sessions.open(session, worker_id, lease)

    async def session_beat(self, session: UUID, lease: float, /) -> Beat:
        """Renew the session. A beat never creates one: an ended session answers ``held=False``."""
        return await self._sessions.beat(session, lease)

    async def session_close(self, session: UUID, /) -> None:
        """End the session; what it still holds is released, without using an attempt."""
        await self._sessions.close(session)

    async def session_list(self) -> list[SessionInfo]:
        """Open sessions, and ended ones that still hold claims."""
        return await self._sessions.list_sessions()

    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        """End the sessions whose lease is over, and give running jobs of ended sessions.

        At most ``limit`` rows, each given again by later calls until it is finished. Does
        nothing unless the asking session is open and has itself been in contact for a whole
        lease without a gap of more than half a lease, so that an outage ends nobody.

        Args:
            session: who asks.
            limit: at most so many rows.
        """
        return await self._sessions.expire(session, limit)

    # ---------------------------------------------------------------- queues, counts, retention

    async def queue_pause(self, name: str, /) -> None:
        """Claim nothing more of the queue until it is resumed."""
        await self._queues.set_paused(name, paused=True)

    async def queue_resume(self, name: str, /) -> None:
        """Take a pause back."""
        await self._queues.set_paused(name, paused=False)

    async def queue_list(self) -> list[QueueState]:
        """The queues that were ever paused or hold jobs now, by name."""
        return await self._queues.list_queues()

    async def queue_stats(self) -> list[QueueStats]:
        """How many jobs wait and run, queue by queue, by name."""
        return await listing.queue_stats(self)

    async def count(self, where: ListFilter, /) -> int:
        """How many jobs match; without ``exact_counts`` counting stops at 10,000."""
        return await listing.count(self, where)

    async def prune(self, request: PruneRequest, /) -> int:
        """Delete old finished jobs whose unique key is no longer held; how many went.

        Fewer than ``request.limit``: there is nothing left to delete now.
        """
        return await listing.prune(self, request)

    # ---------------------------------------------------------------- time

    async def now(self) -> datetime:
        """The backend's time with ``server_time``, else the clock's."""
        return self.clock.now()
