"""Drivers that break rules 3, 4, 6 or 9, one each: the test that is meant for it must fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec.structs import replace

from goncordia.driver import (
    Beat,
    Change,
    Changed,
    FetchRequest,
    FetchResult,
    Finish,
    InsertResult,
    JobRow,
    Mark,
    NewJob,
    Outcome,
    PruneRequest,
    PutResult,
)
from goncordia.ids import new_token
from goncordia.memory import Store
from goncordia.memory.executor import MemoryExecutor
from goncordia_conformance.rules.concurrency import ConcurrencyTests
from goncordia_conformance.rules.fencing import FencingTests
from goncordia_conformance.rules.replay import ReplayTests
from goncordia_conformance.rules.sessions import SessionTests
from goncordia_conformance.rules.uniqueness import UniquenessTests
from goncordia_conformance.selftest import BrokenFetch, caught_by

# ---------------------------------------------------------------- rule 3: fencing


@caught_by(FencingTests, "test_finish_of_another_claim_is_stale")
class FencesBySessionOnly(MemoryExecutor):
    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        def current(store: Store, _: datetime) -> list[Finish]:
            asked: list[Finish] = []
            for finish in finishes:
                job = store.job(finish.claim.job_id)
                claim = job.claim if job else None
                same = claim is not None and claim.session == finish.claim.session
                asked.append(replace(finish, claim=claim) if claim and same else finish)
            return asked

        return await super().finish_many(self._call(current))


@caught_by(FencingTests, "test_mark_of_an_ended_claim_is_stale")
class MarksAnyRun(MemoryExecutor):
    async def mark_many(self, marks: Sequence[Mark], /) -> list[Outcome]:
        def current(store: Store, _: datetime) -> list[Mark]:
            jobs = [(mark, store.job(mark.claim.job_id)) for mark in marks]
            return [replace(m, claim=job.claim) if job and job.claim else m for m, job in jobs]

        return await super().mark_many(self._call(current))


@caught_by(FencingTests, "test_a_stale_finish_does_not_touch_the_others")
class OneStaleSpoilsTheBatch(MemoryExecutor):
    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        def stale(store: Store, _: datetime) -> bool:
            jobs = [(finish, store.job(finish.claim.job_id)) for finish in finishes]
            return any(not job or job.claim != finish.claim for finish, job in jobs)

        if len(finishes) > 1 and self._call(stale):
            return [Outcome("STALE")] * len(finishes)
        return await super().finish_many(finishes)


@caught_by(ConcurrencyTests, "test_a_finish_and_a_rescue_race")
class FinishesTwice(MemoryExecutor):
    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        outcomes = await super().finish_many(finishes)
        return [Outcome("DONE", o.state) if o.status == "ALREADY" else o for o in outcomes]


# ---------------------------------------------------------------- rule 4: sessions


@caught_by(SessionTests, "test_expire_ends_a_session_for_good")
class BeatRevives(MemoryExecutor):
    async def session_beat(self, session: UUID, lease: float, /) -> Beat:
        def revive(store: Store, _: datetime) -> None:
            ended = store.sessions.ended.pop(session, None)
            if ended is not None:
                ended.open = True
                store.sessions.open[session] = ended

        self._call(revive)
        return await super().session_beat(session, lease)


@caught_by(SessionTests, "test_a_beat_never_creates_a_session")
class BeatOpens(MemoryExecutor):
    async def session_beat(self, session: UUID, lease: float, /) -> Beat:
        await self.session_open(session, "new", lease)
        return await super().session_beat(session, lease)


@caught_by(SessionTests, "test_a_newcomer_ends_nobody")
class NewcomersExpire(MemoryExecutor):
    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        def trust(store: Store, _: datetime) -> None:
            if session in store.sessions.open:
                store.sessions.open[session].since = float("-inf")

        self._call(trust)
        return await super().expire(session, limit)


@caught_by(SessionTests, "test_an_outage_ends_nobody")
class AskingIsBeating(MemoryExecutor):
    """Takes the question itself for contact: so the first to come back ends all others."""

    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        def renew(store: Store, _: datetime) -> None:
            if session in store.sessions.open:
                store.sessions.open[session].beat_at = self.clock.monotonic()

        self._call(renew)
        return await super().expire(session, limit)


@caught_by(SessionTests, "test_a_late_beat_is_held")
class LeaseEndsBySilence(MemoryExecutor):
    """Ends a session when its lease is over, as native TTLs do."""

    async def session_beat(self, session: UUID, lease: float, /) -> Beat:
        def end(store: Store, _: datetime) -> None:
            own = store.sessions.open.get(session)
            if own is not None and own.lapsed(self.clock.monotonic()):
                store.sessions.end(own)

        self._call(end)
        return await super().session_beat(session, lease)


@caught_by(SessionTests, "test_expire_gives_what_a_silent_session_holds")
class ExpireTakesBack(MemoryExecutor):
    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        rows = await super().expire(session, limit)
        await self.finish_many([Finish(row.claim, "retry") for row in rows if row.claim])
        return rows


@caught_by(SessionTests, "test_expire_gives_a_job_until_it_is_finished")
class ExpireTellsOnce(MemoryExecutor):
    told: frozenset[UUID] = frozenset()

    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        rows = await super().expire(session, limit)
        new = [row for row in rows if row.id not in self.told]
        self.told |= {row.id for row in new}
        return new


@caught_by(SessionTests, "test_expire_is_bounded")
class ExpireIsUnbounded(MemoryExecutor):
    async def expire(self, session: UUID, limit: int, /) -> list[JobRow]:
        return await super().expire(session, 1000)


@caught_by(SessionTests, "test_a_closed_session_is_lost")
class ClosedSessionsClaim(BrokenFetch):
    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        (other,) = [*store.sessions.open] or [request.session]
        result = store.fetch(replace(request, session=other), now)
        return replace(result, lost=False)


@caught_by(SessionTests, "test_close_releases_what_is_held")
class CloseKeepsTheJobs(MemoryExecutor):
    async def session_close(self, session: UUID, /) -> None:
        def end(store: Store, _: datetime) -> None:
            if session in store.sessions.open:
                store.sessions.end(store.sessions.open[session])

        self._call(end)


# ---------------------------------------------------------------- rule 6: uniqueness


@caught_by(UniquenessTests, "test_many_tasks_insert_one_job")
class LooksThenInserts(MemoryExecutor):
    """Keeps a key by a look first, and somebody comes between."""

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        keys = {job.unique_key for job in jobs if job.unique_key}
        free = self._call(lambda store, now: [k for k in keys if not store.key_holder(k, now)])
        await asyncio.sleep(0)
        self._call(lambda store, _: [store.key_holders.pop(key, None) for key in free])
        return await super().insert_many(jobs)


@caught_by(UniquenessTests, "test_free_when_it_is_finished")
class KeyOutlivesTheJob(MemoryExecutor):
    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        kept = [
            replace(job, unique_hold="until_deleted") if job.unique_hold == "active" else job
            for job in jobs
        ]
        return await super().insert_many(kept)


@caught_by(UniquenessTests, "test_a_retry_meets_the_constraint")
class RetryTakesTheKey(MemoryExecutor):
    async def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        def forget(store: Store, _: datetime) -> None:
            for change in changes:
                job = store.job(change.id)
                if change.action == "retry" and job and job.finished_at and job.new.unique_key:
                    store.key_holders.pop(job.new.unique_key, None)

        self._call(forget)
        return await super().change_many(changes)


@caught_by(UniquenessTests, "test_the_id_is_looked_at_before_the_key")
class KeyBeforeId(MemoryExecutor):
    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        def holders(store: Store, now: datetime) -> dict[UUID, UUID]:
            found = {job.id: store.key_holder(job.unique_key or b"", now) for job in jobs}
            return {job_id: job.new.id for job_id, job in found.items() if job is not None}

        held = self._call(holders)
        results = await super().insert_many(jobs)
        return [
            InsertResult(r.id, "DUPLICATE", held[r.id])
            if r.status == "REPLAYED" and r.id in held
            else r
            for r in results
        ]


@caught_by(UniquenessTests, "test_held_until_it_is_deleted")
class PruneForgetsTheHold(MemoryExecutor):
    async def prune(self, request: PruneRequest, /) -> int:
        self._call(lambda store, _: store.key_holders.clear())
        return await super().prune(request)


# ---------------------------------------------------------------- rule 9: replay


@caught_by(
    ReplayTests,
    "test_repeated",
    *(
        f"finish_{name}-after"
        for name in (
            *("complete", "retry", "snooze", "release", "discard", "cancel"),
            *("retry_later", "snooze_later", "release_later", "with_a_cancel", "by_a_rescuer"),
        )
    ),
)
class ForgetsEndedClaims(MemoryExecutor):
    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        outcomes = await super().finish_many(finishes)
        return [Outcome("STALE", o.state) if o.status == "ALREADY" else o for o in outcomes]


@caught_by(ReplayTests, "test_many_insert_the_same_unique_jobs_at_once")
class LooksForIdsBeforeItInserts(MemoryExecutor):
    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        found = await self.get_many([job.id for job in jobs])
        await asyncio.sleep(0)
        results = await super().insert_many(jobs)
        return [
            InsertResult(job.id, "DUPLICATE", job.id)
            if row is None and result.status == "REPLAYED" and job.unique_key is not None
            else result
            for job, row, result in zip(jobs, found, results, strict=True)
        ]


@caught_by(ReplayTests, "test_repeated", "record_change-after", "record_create-after")
class ForgetsTokens(MemoryExecutor):
    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> PutResult:
        return await super().record_put(name, value, expected_version, new_token())
