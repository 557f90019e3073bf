"""A store with time by hand and short words for what tests do with it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from goncordia.driver import (
    AttemptError,
    Change,
    ChangeAction,
    Changed,
    Claim,
    FetchRequest,
    FetchResult,
    Finish,
    FinishTo,
    InsertResult,
    JobRow,
    Mark,
    NewJob,
    Outcome,
    QueueFetch,
    When,
)
from goncordia.memory import Store

START = datetime(2026, 1, 1, tzinfo=UTC)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def failure(number: int) -> AttemptError:
    return AttemptError(number, START, "ValueError", f"no. {number}")


class Box:
    """A store, its time, and one open session."""

    def __init__(self) -> None:
        self.store = Store()
        self.now = START
        self.monotonic = 1000.0
        self._number = 0
        self._fetches = 0
        self.session = self.open()

    def tick(self, by: float) -> None:
        self.now += seconds(by)
        self.monotonic += by

    def new_id(self) -> UUID:
        self._number += 1
        return UUID(int=(7 << 76) | (2 << 62) | self._number)

    # ------------------------------------------------------------ jobs

    def job(self, **fields: Any) -> NewJob:
        return NewJob(**{"id": self.new_id(), "kind": "k", "args": b"{}", **fields})

    def put(self, job: NewJob) -> InsertResult:
        return self.store.insert_many([job], self.now)[0]

    def insert(self, **fields: Any) -> UUID:
        job = self.job(**fields)
        assert self.put(job).status == "INSERTED"
        return job.id

    def row(self, job_id: UUID) -> JobRow:
        row = self.store.get_many([job_id], self.now)[0]
        assert row is not None
        return row

    def change(self, job_id: UUID, action: ChangeAction, when: When = None) -> Changed:
        return self.store.change_many([Change(job_id, action, when)], self.now)[0]

    # ------------------------------------------------------------ claims

    def fetch(
        self,
        *queues: str | QueueFetch,
        limit: int = 100,
        session: UUID | None = None,
        kinds: Mapping[str, int] | None = None,
        skip: frozenset[str] = frozenset(),
    ) -> FetchResult:
        self._fetches += 1
        wanted = [
            QueueFetch(queue, limit, kinds, skip) if isinstance(queue, str) else queue
            for queue in queues or ("default",)
        ]
        request = FetchRequest(
            session or self.session, self._fetches, limit, tuple(wanted), "worker"
        )
        return self.store.fetch(request, self.now)

    def fetched(self, *queues: str | QueueFetch, **options: Any) -> list[UUID]:
        return [row.id for row in self.fetch(*queues, **options).jobs]

    def claim(self, session: UUID | None = None) -> Claim:
        """Claim the first job."""
        (row,) = self.fetch(limit=1, session=session).jobs
        assert row.claim is not None
        return row.claim

    def finish(self, claim: Claim, to: FinishTo, when: When = None, **fields: Any) -> Outcome:
        return self.store.finish_many([Finish(claim, to, when, **fields)], self.now)[0]

    def mark(self, claim: Claim, *, started: bool = True, **fields: Any) -> Outcome:
        return self.store.mark_many([Mark(claim, started, **fields)], self.now)[0]

    # ------------------------------------------------------------ sessions

    def open(self, lease: float = 30, worker_id: str = "worker") -> UUID:
        session = self.new_id()
        self.store.session_open(session, worker_id, lease, self.now, self.monotonic)
        return session

    def beat(self, session: UUID | None = None, lease: float = 30) -> bool:
        return self.store.session_beat(
            session or self.session, lease, self.now, self.monotonic
        ).held

    def expire(self, session: UUID | None = None, limit: int = 100) -> list[JobRow]:
        return self.store.expire(session or self.session, limit, self.now, self.monotonic)
