"""A driver that costs nothing: it gives rows that were made before, and swallows finishes.

What is left is the engine alone.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime
from math import inf
from typing import Any, ClassVar, NoReturn
from uuid import UUID

from goncordia.clock import Clock
from goncordia.driver import (
    BaseDriver,
    BaseExecutor,
    Beat,
    Capabilities,
    Change,
    Changed,
    Claim,
    FetchRequest,
    FetchResult,
    Finish,
    InsertResult,
    JobRow,
    JobState,
    ListFilter,
    NewJob,
    Outcome,
    Page,
    PutResult,
    QueueState,
    Record,
)
from goncordia.ids import JobIds, new_session_id
from goncordia_bench.payload import ARGS, QUEUE, Email

__all__ = ["CannedDriver"]

_CAPABILITIES = Capabilities(
    marks=True, exchange=True, server_time=True, fetch_kinds=True, max_batch=1000
)
_DONE = Outcome("DONE", JobState.COMPLETED)


def _row(job_id: UUID, session: UUID, at: datetime) -> JobRow:
    return JobRow(
        id=job_id,
        kind=Email.kind,
        queue=QUEUE,
        priority=0,
        run_at=at,
        args=ARGS,
        content="json",
        payload_version=1,
        max_attempts=None,
        timeout=None,
        tags=(),
        meta=_NO_META,
        unique_key=None,
        unique_hold="active",
        group=None,
        group_limit=0,
        state=JobState.RUNNING,
        attempt=1,
        worker_id="bench",
        claim=Claim(job_id, session, 1),
        started=False,
        cancel_requested=False,
        created_at=at,
        claimed_at=at,
        finished_at=None,
        errors=(),
        checkpoint=None,
        output=None,
    )


_NO_META: dict[str, str] = {}


class _CannedExecutor(BaseExecutor):
    def __init__(self, clock: Clock, jobs: int) -> None:
        super().__init__("canned", _CAPABILITIES, clock)
        ids, session, at = (
            JobIds(clock, random.Random(1).getrandbits),
            new_session_id(),
            clock.now(),
        )
        # The claims are of a session of nobody's; the engine has no reason to look at it.
        self._rows = [_row(ids(), session, at) for _ in range(jobs)]
        self._rows.reverse()
        self.finished = 0

    async def session_open(self, session: UUID, worker_id: str, lease: float, /) -> None:
        """Nothing to do."""

    async def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        """Count the finishes, give the next rows."""
        self.finished += len(finishes)
        outcomes = [_DONE] * len(finishes)
        if request is None:
            return outcomes, None
        rows = self._rows
        given = rows[-request.limit :]
        del rows[-request.limit :]
        given.reverse()
        return outcomes, FetchResult(given, next_due_in=0.0 if rows else inf)

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """Count them."""
        return (await self.exchange(finishes, None))[0]

    async def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        """What a drain asks: is anything left?"""
        return Page(self._rows[-1:])

    async def queue_list(self) -> list[QueueState]:
        """What a drain asks: is anything paused?"""
        return []

    async def session_beat(self, session: UUID, lease: float, /) -> Beat:
        """Held."""
        return Beat(held=True)

    async def session_close(self, session: UUID, /) -> None:
        """Nothing to do."""

    async def held(self, session: UUID, fetch_no: int | None, limit: int, /) -> list[JobRow]:
        """Nothing."""
        return []

    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        """Nothing."""
        return []

    # The engine asks for none of these here.

    async def fetch(self, request: FetchRequest, /) -> FetchResult:
        _unasked()

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        _unasked()

    async def get_many(self, ids: Sequence[UUID], /) -> list[JobRow | None]:
        _unasked()

    async def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        _unasked()

    async def record_get(self, name: str, /) -> Record | None:
        _unasked()

    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> PutResult:
        _unasked()

    async def record_list(self, prefix: str, /) -> list[Record]:
        _unasked()


def _unasked() -> NoReturn:
    raise NotImplementedError("the canned driver gives rows and takes finishes, no more")


class CannedDriver(BaseDriver[Any, Any]):
    """Has so many jobs, for one pool.

    Args:
        jobs: how many.
    """

    name: ClassVar[str] = "canned"

    def __init__(self, jobs: int) -> None:
        super().__init__(_CAPABILITIES)
        self.canned = _CannedExecutor(self.clock, jobs)

    async def open(self) -> None:
        """Nothing to do."""

    async def aclose(self) -> None:
        """Nothing to do."""
        await super().aclose()

    async def migrate(self) -> list[str]:
        """Nothing to do."""
        return []

    def executor(self) -> BaseExecutor:
        """The canned rows."""
        return self.canned
