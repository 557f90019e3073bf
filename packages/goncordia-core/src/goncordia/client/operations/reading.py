"""Reading and changing jobs, as operations: what ``Client`` and ``SyncClient`` share."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from goncordia import _check
from goncordia.client.handles import JobRef, id_of, ids_of
from goncordia.client.info import JobInfo, JobPage, QueueInfo, info_of, queue_info_of
from goncordia.client.operations import cursors, filters
from goncordia.client.operations.changes import (
    DEFAULT_STATES,
    ChangeResult,
    ChangeSummary,
    Progress,
    result_of,
    single,
    summed,
)
from goncordia.client.operations.steps import (
    Backend,
    Call,
    Executor,
    Op,
    Pause,
    Replay,
    TxOperations,
    name_of,
)
from goncordia.client.operations.waiting import Interval, not_found, still_waiting
from goncordia.driver import (
    After,
    At,
    Change,
    ChangeAction,
    Changed,
    ChangeStatus,
    JobRow,
    ListFilter,
    Page,
    QueueState,
    QueueStats,
    When,
    row_matches,
)
from goncordia.errors import ConfigurationError

__all__ = ["MAX_PAGE", "PAGE", "Reading", "due"]

MAX_PAGE: Final = 1000
"""The most jobs that one page may have."""

PAGE: Final = 500
"""How many jobs a walk over all of them reads at once."""


class Reading:
    """Operations on jobs that are there.

    Args:
        driver: the driver.
        replay: repeats what may be repeated.
        rng: the source of jitter.
    """

    def __init__(self, driver: Backend, replay: Replay, rng: random.Random) -> None:
        self._driver = driver
        self._replay = replay
        self._rng = rng

    def _ask(self, call: Call) -> Op[Executor, Any]:
        return (yield from self._replay(call))

    # ---------------------------------------------------------------- reading

    def rows(self, ids: Sequence[UUID]) -> Op[Executor, list[JobRow | None]]:
        """Rows by id, in order."""
        rows: dict[UUID, JobRow | None] = {}
        for batch in self._batches(list(dict.fromkeys(ids))):
            got = yield from self._get_batch(batch)
            rows.update(zip(batch, got, strict=True))
        return [rows[job_id] for job_id in ids]

    def _get_batch(self, ids: list[UUID]) -> Op[Executor, list[JobRow | None]]:
        rows: list[JobRow | None] = yield from self._ask(lambda ex: ex.get_many(ids))
        return rows

    def get(self, job: JobRef) -> Op[Executor, JobInfo]:
        """One job."""
        job_id = id_of("job", job)
        (row,) = yield from self.rows([job_id])
        if row is None:
            raise not_found(job_id)
        return info_of(row)

    def get_many(self, jobs: Iterable[JobRef]) -> Op[Executor, list[JobInfo | None]]:
        """Jobs by id, None where there is none."""
        rows = yield from self.rows(ids_of("jobs", jobs))
        return [None if row is None else info_of(row) for row in rows]

    def page(
        self, cursor: str | None, limit: int, given: Mapping[str, Any]
    ) -> Op[Executor, JobPage]:
        """One page of the jobs that match."""
        where = self._where(given)
        limit = _check.whole("limit", limit, 1, MAX_PAGE)
        page = None if cursor is None else cursors.decode(cursor, where, name_of(self._driver))
        got = yield from self._page(where, page, limit)
        following = (
            None if got.next is None else cursors.encode(got.next, where, name_of(self._driver))
        )
        return JobPage([info_of(row) for row in got.jobs], following)

    def _page(self, where: ListFilter, page: bytes | None, limit: int) -> Op[Executor, Page]:
        got: Page = yield from self._ask(lambda ex: ex.list_jobs(where, page, limit))
        return got

    def count(self, given: Mapping[str, Any]) -> Op[Executor, int]:
        """How many jobs match."""
        where = self._where(given)
        found: int = yield from self._ask(lambda executor: executor.count(where))
        return found

    def _where(self, given: Mapping[str, Any]) -> ListFilter:
        return filters.build(given, self._driver.capabilities, name_of(self._driver))

    def _batches(self, items: list[Any]) -> list[list[Any]]:
        size = self._driver.capabilities.max_batch
        return [items[start : start + size] for start in range(0, len(items), size)]

    # ---------------------------------------------------------------- changing

    def change(
        self, action: ChangeAction, job: JobRef, when: When = None
    ) -> Op[Executor, ChangeResult]:
        """Change one job; a refusal is an error."""
        changes = [Change(id_of("job", job), action, when)]
        (result,) = yield from self._change(changes)
        return single(action, result)

    def cancel_in_tx(self, job: JobRef) -> Op[TxOperations, ChangeResult]:
        """Cancel one job in the caller's transaction."""
        job_id = id_of("job", job)
        answers: list[Changed] = yield lambda executor: executor.cancel_many([job_id])
        return single("cancel", result_of(job_id, "cancel", answers[0], doubted=False))

    def change_many(
        self, action: ChangeAction, jobs: Iterable[JobRef], when: When = None
    ) -> Op[Executor, list[ChangeResult]]:
        """Change jobs, each for itself."""
        ids = ids_of("jobs", jobs)
        changes = [Change(job_id, action, when) for job_id in dict.fromkeys(ids)]
        results = yield from self._change(changes)
        by_id = {result.id: result for result in results}
        return [by_id[job_id] for job_id in ids]

    def change_where(
        self,
        action: ChangeAction,
        given: Mapping[str, Any],
        *,
        everything: bool,
        when: When = None,
        progress: Progress | None = None,
    ) -> Op[Executor, ChangeSummary]:
        """Change the jobs that match, page by page, newest first."""
        if not given and not _check.flag("everything", everything):
            raise ConfigurationError(
                f"{action}_where: there is no filter; give one, or everything=True to "
                f"{action} every job"
            )
        where = self._where(given)
        if not where.states:
            where = msgspec.structs.replace(where, states=DEFAULT_STATES[action])
        # Not every driver filters by state; here it is looked at in any case.
        asked = where
        if "states" not in self._driver.capabilities.list_filters:
            asked = msgspec.structs.replace(where, states=frozenset())
        counts: Counter[ChangeStatus] = Counter()
        page: bytes | None = None
        while True:
            got = yield from self._page(asked, page, min(PAGE, self._driver.capabilities.max_batch))
            matching = [row.id for row in got.jobs if row_matches(row, where)]
            results = yield from self._change([Change(i, action, when) for i in matching])
            counts.update(result.status for result in results)
            if progress is not None:
                progress(summed(counts))
            page = got.next
            if page is None:
                return summed(counts)

    def _change(self, changes: list[Change]) -> Op[Executor, list[ChangeResult]]:
        results: list[ChangeResult] = []
        for batch in self._batches(changes):
            answers, doubted = yield from self._change_batch(batch)
            results += [
                result_of(change.id, change.action, answer, doubted=doubted)
                for change, answer in zip(batch, answers, strict=True)
            ]
        return results

    def _change_batch(self, changes: list[Change]) -> Op[Executor, tuple[list[Changed], bool]]:
        def call(executor: Executor) -> Any:
            return executor.change_many(changes)

        return (yield from self._replay.doubted(call))

    # ---------------------------------------------------------------- queues

    def queue_pause(self, name: str) -> Op[Executor, None]:
        """Pause a queue."""
        queue = _check.name("queue", name)
        yield from self._ask(lambda executor: executor.queue_pause(queue))

    def queue_resume(self, name: str) -> Op[Executor, None]:
        """Resume a queue."""
        queue = _check.name("queue", name)
        yield from self._ask(lambda executor: executor.queue_resume(queue))

    def queues(self) -> Op[Executor, list[QueueState]]:
        """The known queues."""
        found: list[QueueState] = yield from self._ask(lambda executor: executor.queue_list())
        return found

    def queue_stats(self) -> Op[Executor, list[QueueInfo]]:
        """The known queues with their numbers."""
        states = yield from self.queues()
        counted: list[QueueStats] = yield from self._ask(lambda executor: executor.queue_stats())
        now: datetime = yield from self._ask(lambda executor: executor.now())
        # A queue may have begun or run empty between the two looks.
        stats = {state.name: QueueStats(state.name) for state in states}
        stats |= {each.name: each for each in counted}
        paused = {state.name for state in states if state.paused}
        return [
            queue_info_of(stats[name], paused=name in paused, now=now) for name in sorted(stats)
        ]

    # ---------------------------------------------------------------- waiting

    def finished(self, job_id: UUID, timeout: float | None) -> Op[Executor, JobRow]:
        """One job, once it has ended; for whoever waits alone."""
        interval = Interval(self._rng)
        end = None if timeout is None else self._driver.clock.monotonic() + timeout
        while True:
            (row,) = yield from self.rows([job_id])
            if row is None:
                raise not_found(job_id)
            if row.state.finished:
                return row
            pause = interval.next()
            if end is not None and timeout is not None:
                left = end - self._driver.clock.monotonic()
                if left <= 0:
                    raise still_waiting(job_id, timeout, row)
                pause = min(pause, left)
            yield Pause(pause)


def due(run_at: datetime | None, delay: _check.Duration | None) -> When:
    """When a rescheduled job is due: exactly one of the two says it.

    Raises:
        ConfigurationError: none or both are given, or a value is wrong.
    """
    if (run_at is None) == (delay is None):
        raise ConfigurationError("run_at, delay: give one of them")
    if run_at is not None:
        return At(_check.aware("run_at", run_at))
    return After(_check.seconds("delay", delay, zero=True))
