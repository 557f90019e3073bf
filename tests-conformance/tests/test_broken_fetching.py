"""Drivers that break rules 1, 2, 5, 7 or 8, one each: the test that is meant for it must fail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from msgspec.structs import replace

from goncordia.clock import SystemClock
from goncordia.driver import (
    Claim,
    FetchRequest,
    FetchResult,
    Finish,
    InsertResult,
    JobRow,
    NewJob,
    Outcome,
)
from goncordia.memory import MemoryDriver, Store
from goncordia.memory.executor import MemoryExecutor
from goncordia_conformance.rules.claim import ClaimTests
from goncordia_conformance.rules.flat import FlatFetchTests
from goncordia_conformance.rules.groups import GroupTests
from goncordia_conformance.rules.order import OrderTests
from goncordia_conformance.rules.time import SkewTests, TimeTests
from goncordia_conformance.selftest import BrokenFetch, caught_by

# ---------------------------------------------------------------- rule 1: order


@caught_by(OrderTests, "test_higher_priority_first")
class IgnoresPriority(BrokenFetch):
    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        result = store.fetch(request, now)
        return replace(result, jobs=sorted(result.jobs, key=lambda row: (row.run_at, row.id)))


@caught_by(OrderTests, "test_earlier_run_at_first")
class IgnoresRunAt(BrokenFetch):
    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        result = store.fetch(request, now)
        return replace(result, jobs=sorted(result.jobs, key=lambda row: (-row.priority, row.id)))


@caught_by(OrderTests, "test_lower_id_breaks_the_tie")
class NewestFirstAmongEquals(BrokenFetch):
    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        def key(row: JobRow) -> tuple[int, datetime, int]:
            return -row.priority, row.run_at, -row.id.int

        result = store.fetch(request, now)
        return replace(result, jobs=sorted(result.jobs, key=key))


@caught_by(OrderTests, "test_nothing_before_it_is_due")
class StartsEarly(BrokenFetch):
    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        return store.fetch(request, now + timedelta(milliseconds=5))


@caught_by(OrderTests, "test_a_short_result_without_more_saw_everything")
class ShortAndSilent(BrokenFetch):
    """Gives one job whatever was asked, and says that this was all."""

    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        return replace(store.fetch(replace(request, limit=1), now), more=False, next_due_in=None)


@caught_by(OrderTests, "test_next_due_does_not_count_what_a_full_group_blocks")
class SpinsOnFullGroups(BrokenFetch):
    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        due = any(job.state is None and job.run_at <= now for job in store.unfinished.values())
        result = store.fetch(request, now)
        return replace(result, next_due_in=0.0 if due else result.next_due_in)


# ---------------------------------------------------------------- rule 2: one claim


@caught_by(ClaimTests, "test_the_end_of_a_lease_alone_frees_nothing")
class VisibilityTimeout(BrokenFetch):
    """Takes a job back a while after its claim, as queues without sessions do."""

    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        old = now - timedelta(seconds=60)
        jobs = list(store.unfinished.values())
        claims = [
            job.claim for job in jobs if job.claim and job.claimed_at and job.claimed_at < old
        ]
        store.finish_many([Finish(claim, "release") for claim in claims], now)
        return store.fetch(request, now)


@caught_by(ClaimTests, "test_a_claimed_job_is_not_given_again")
class LooksThenClaims(BrokenFetch):
    """Looks for jobs in one step and claims them in the next."""

    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        seen = [job for job in store.unfinished.values() if job.run_at <= now]
        result = store.fetch(request, now)
        return replace(result, jobs=[job.row(now) for job in seen][: request.limit])


@caught_by(ClaimTests, "test_two_runs_of_a_job_have_two_claims")
class ClaimsByAttempt(BrokenFetch):
    """Tells claims apart by the attempt, which a release takes back."""

    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        result = store.fetch(request, now)
        rows: list[JobRow] = []
        for row in result.jobs:
            job = store.job(row.id)
            assert job is not None
            job.claim = Claim(row.id, request.session, row.attempt)
            rows.append(job.row(now))
        return replace(result, jobs=rows)


# ---------------------------------------------------------------- rule 5: time


@caught_by(TimeTests, "test_run_at_is_resolved_when_it_is_inserted")
class ClientTime(MemoryExecutor):
    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        now = SystemClock().now()
        return self._call(lambda store, _: store.insert_many(jobs, now))


@caught_by(SkewTests, "test_a_skewed_client_does_not_move_the_time")
class TakesTheClientsClock(MemoryDriver):
    """As the memory driver does, whose client is on the same machine in any case."""


# ---------------------------------------------------------------- rule 7: groups


@caught_by(GroupTests, "test_no_more_run_than_the_limit")
class GroupLimitOffByOne(MemoryExecutor):
    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        wider = [replace(job, group_limit=job.group_limit + 1) for job in jobs]
        return await super().insert_many(wider)


@caught_by(GroupTests, "test_every_end_of_a_claim_frees_its_place", "cancel")
class PlaceLeaksOnCancel(MemoryExecutor):
    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        def leak(store: Store, _: datetime) -> None:
            for finish in finishes:
                job = store.job(finish.claim.job_id)
                if finish.to == "cancel" and job and job.claim and job.new.group:
                    store.waiting.started_running(job)

        self._call(leak)
        return await super().finish_many(finishes)


@caught_by(GroupTests, "test_a_full_group_hides_nothing_behind_it")
class FullGroupHidesTheRest(BrokenFetch):
    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        waiting = [job for job in store.unfinished.values() if job.state is None]
        due = sorted((job for job in waiting if job.run_at <= now), key=lambda job: job.order())
        blocked = bool(due) and not due[0].shown
        return FetchResult([]) if blocked else store.fetch(request, now)


@caught_by(GroupTests, "test_a_lost_session_keeps_its_places_until_the_rescue")
class GroupsCountOpenSessionsOnly(MemoryExecutor):
    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        def free(store: Store, _: datetime) -> None:
            for ended in store.sessions.ended.values():
                for job in ended.held.values():
                    if job.new.group:
                        store.waiting.stopped_running(job)

        rows = await super().expire(session, limit)
        self._call(free)
        return rows


# ---------------------------------------------------------------- rule 8: flat fetch


@caught_by(FlatFetchTests, "test_fetch_stays_flat", "finished")
class LooksAtFinishedJobs(BrokenFetch):
    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        store.waiting.touched.count += len(store.jobs) - len(store.unfinished)
        return store.fetch(request, now)


@caught_by(FlatFetchTests, "test_fetch_stays_flat", "scheduled", "scheduled-higher")
class LooksAtScheduledJobs(BrokenFetch):
    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        later = [job for job in store.unfinished.values() if job.run_at > now]
        store.waiting.touched.count += len(later)
        return store.fetch(request, now)
