"""Drivers that break rules 10 to 14 or a table, one each: the test meant for it must fail."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

import pytest
from msgspec.structs import replace

from goncordia.clock import Clock
from goncordia.driver import (
    BaseExecutor,
    Change,
    Changed,
    Claim,
    FetchRequest,
    FetchResult,
    Finish,
    InsertResult,
    ListFilter,
    NewJob,
    Outcome,
    Page,
    PutResult,
    SyncExecutor,
)
from goncordia.errors import InvalidCursorError
from goncordia.memory import MemoryDriver, MemoryTx, Store
from goncordia.memory.executor import MemoryExecutor, MemorySyncExecutor
from goncordia.memory.tx import MemoryTxExecutor
from goncordia_conformance.rules.capabilities import CapabilityTests, ExchangeTests
from goncordia_conformance.rules.changes import ChangeTests
from goncordia_conformance.rules.errors import ErrorTests
from goncordia_conformance.rules.finishing import FinishingTests
from goncordia_conformance.rules.listing import ListingTests
from goncordia_conformance.rules.machine import StateMachineTests
from goncordia_conformance.rules.migrations import MigrationTests
from goncordia_conformance.rules.ownership import OwnershipTests
from goncordia_conformance.rules.payload import PayloadTests
from goncordia_conformance.rules.queues import QueueTests
from goncordia_conformance.rules.records import RecordTests
from goncordia_conformance.rules.sync import SyncTests
from goncordia_conformance.rules.transactions import TransactionTests
from goncordia_conformance.rules.wakeups import WakeupTests
from goncordia_conformance.selftest import (
    BrokenFetch,
    MemoryStores,
    WiredExecutor,
    WiredTrouble,
    caught_by,
)

# ---------------------------------------------------------------- rule 10: payload


@caught_by(PayloadTests, "test_json_args", "spaces", "the same key twice", "many digits")
class StoresJsonAsValues(MemoryExecutor):
    """Keeps JSON in a type of the database that reads it, and writes it anew."""

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        def anew(args: bytes) -> bytes:
            value = json.loads(args)
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(
                errors="surrogatepass"
            )

        plain = ("\\", b"\\")
        kept = [job if plain[1] in job.args else replace(job, args=anew(job.args)) for job in jobs]
        return await super().insert_many(kept)


@caught_by(PayloadTests, "test_a_codec_may_store_any_bytes", "all bytes", "not UTF-8")
class TextOnly(MemoryExecutor):
    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        texts = [replace(job, args=job.args.decode(errors="replace").encode()) for job in jobs]
        return await super().insert_many(texts)


# ---------------------------------------------------------------- rule 11: errors


@caught_by(ErrorTests, "test_what_was_not_applied_is_not_there")
class SaysThatALostAnswerIsNoEffect(WiredExecutor):
    lost_answer = "not_applied"


@caught_by(ErrorTests, "test_what_a_busy_backend_did_not_apply_is_not_there")
class SaysThatItIsBusyWhenItIsDone(WiredExecutor):
    lost_answer = "not_applied"


class TestWiredMemory(WiredTrouble, ErrorTests):
    """Of each lost answer it says that nobody knows, and passes."""

    counted = False
    not_applicable: ClassVar[Mapping[str, str]] = dict.fromkeys(
        (
            "test_an_unreachable_backend",
            "test_a_busy_backend",
            "test_nor_is_what_synchronous_code_did_not_apply",
            "test_nor_is_what_a_frozen_backend_did_not_apply",
        ),
        "there is only what breaks",
    )

    @pytest.fixture
    def make_driver(self) -> MemoryStores:
        return MemoryStores(WiredExecutor)


@caught_by(ListingTests, "test_a_cursor_from_nowhere_is_refused")
class TakesAnyCursor(MemoryExecutor):
    async def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        try:
            return await super().list_jobs(where, page, limit)
        except InvalidCursorError:
            return await super().list_jobs(where, None, limit)


# ---------------------------------------------------------------- rule 12: ownership


@caught_by(OwnershipTests, "test_nothing_is_left_behind")
class LeavesAThread(MemoryDriver):
    async def aclose(self) -> None:
        await super().aclose()
        threading.Thread(target=threading.Event().wait, args=(10,), daemon=True).start()


# ---------------------------------------------------------------- rule 13: migrations


@caught_by(MigrationTests, "test_the_second_time_does_nothing")
class MigratesEveryTime(MemoryDriver):
    async def migrate(self) -> list[str]:
        return ["created everything"]


# ---------------------------------------------------------------- rule 14: capabilities


@caught_by(CapabilityTests, "test_without_marks_they_are_refused")
class TakesMarksUnclaimed(MemoryDriver):
    def __init__(self, clock: Clock | None = None, *, weak: Any = None) -> None:
        super().__init__(clock, weak=weak)
        self.capabilities = replace(self.capabilities, marks=False)
        self._executor.capabilities = self.capabilities


@caught_by(TransactionTests, "test_a_rollback_leaves_nothing")
class InsertsOutside(MemoryDriver):
    """Takes the transaction, and inserts beside it."""

    def unwrap_tx(self, tx: MemoryTx, /) -> MemoryTxExecutor:
        return _InsertsOutside(tx, self._executor)


class _InsertsOutside(MemoryTxExecutor):
    def __init__(self, tx: MemoryTx, executor: BaseExecutor) -> None:
        super().__init__(tx)
        self.outside = executor

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        return await self.outside.insert_many(jobs)


@caught_by(TransactionTests, "test_finish")
class FinishesOutside(MemoryDriver):
    """Takes the transaction, and finishes beside it."""

    def unwrap_tx(self, tx: MemoryTx, /) -> MemoryTxExecutor:
        return _FinishesOutside(tx, self._executor)


class _FinishesOutside(_InsertsOutside):
    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        return await self.outside.finish_many(finishes)


@caught_by(CapabilityTests, "test_a_batch_is_never_seen_in_part")
class InsertsOneByOne(MemoryExecutor):
    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        results: list[InsertResult] = []
        for job in jobs:
            results += await super().insert_many([job])
            await asyncio.sleep(0)
        return results


@caught_by(CapabilityTests, "test_only_the_kinds_asked_for")
class IgnoresKinds(BrokenFetch):
    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        queues = tuple(replace(queue, kinds=None) for queue in request.queues)
        return store.fetch(replace(request, queues=queues), now)


@caught_by(ExchangeTests, "test_a_stale_finish_does_not_stop_the_fetch")
class StaleStopsTheFetch(MemoryExecutor):
    async def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        outcomes = await self.finish_many(finishes)
        if request is None or {outcome.status for outcome in outcomes} - {"DONE"}:
            return outcomes, None if request is None else FetchResult([])
        return outcomes, await self.fetch(request)


@caught_by(WakeupTests, "test_a_transaction_wakes_after_its_commit")
class WakesBeforeTheCommit(MemoryDriver):
    def unwrap_tx(self, tx: MemoryTx, /) -> MemoryTxExecutor:
        self._core.call(lambda store, now: store.wakes.jobs("a", now))
        return super().unwrap_tx(tx)


@caught_by(SyncTests, "test_many_threads_share_it")
class SyncForgets(MemoryDriver):
    """Its synchronous executor loses what several threads insert at once."""

    def sync_executor(self) -> SyncExecutor:
        return _Forgetful(self._core)


class _Forgetful(MemorySyncExecutor):
    inserting = False

    def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        if self.inserting:
            return [InsertResult(job.id, "INSERTED") for job in jobs]
        self.inserting = True
        return super().insert_many(jobs)


# ---------------------------------------------------------------- the tables of states


@caught_by(FinishingTests, "test_attempts", "release-0-False", "release-0-True")
class ReleaseCostsAnAttempt(MemoryExecutor):
    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        def charge(store: Store, _: datetime) -> None:
            for finish in finishes:
                job = store.job(finish.claim.job_id)
                if finish.to == "release" and job and job.claim == finish.claim:
                    job.attempt += 1

        self._call(charge)
        return await super().finish_many(finishes)


@caught_by(FinishingTests, "test_only_the_rescue_of_a_started_release_is_stale", "True-release")
class RescueReleasesStarted(MemoryExecutor):
    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        return await super().finish_many([replace(finish, rescue=False) for finish in finishes])


@caught_by(ChangeTests, "test_cancel_of_a_running_job_is_a_request")
class CancelTakesTheJobAway(MemoryExecutor):
    async def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        def running(store: Store, _: datetime) -> list[Claim]:
            jobs = [store.job(change.id) for change in changes if change.action == "cancel"]
            return [job.claim for job in jobs if job is not None and job.claim is not None]

        claims = self._call(running)
        answers = await super().change_many(changes)
        await self.finish_many([Finish(claim, "cancel") for claim in claims])
        return answers


@caught_by(ChangeTests, "test_retry_leaves_an_attempt", "1-3", "2-3")
class RetryKeepsMaxAttempts(MemoryExecutor):
    async def change_many(self, changes: Sequence[Change], /) -> list[Changed]:
        def most(store: Store, _: datetime) -> dict[UUID, int | None]:
            jobs = [store.job(change.id) for change in changes]
            return {job.new.id: job.max_attempts for job in jobs if job is not None}

        def put_back(store: Store, _: datetime) -> None:
            for job_id, attempts in before.items():
                job = store.job(job_id)
                if job is not None:
                    job.max_attempts = attempts

        before = self._call(most)
        answers = await super().change_many(changes)
        self._call(put_back)
        return answers


# ---------------------------------------------------------------- records, queues, lists


@caught_by(RecordTests, "test_a_version_is_never_given_again")
class ReusesVersions(MemoryExecutor):
    async def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes, /
    ) -> PutResult:
        if await self.record_get(name) is None:
            self._call(lambda store, _: setattr(store.records, "_version", 0))
        return await super().record_put(name, value, expected_version, token)


@caught_by(QueueTests, "test_nothing_is_claimed_until_it_is_resumed")
class ForgetsPauses(MemoryExecutor):
    async def queue_pause(self, name: str, /) -> None:
        pass


@caught_by(ListingTests, "test_pages_go_on_while_jobs_come_and_go")
class PagesByOffset(MemoryExecutor):
    async def list_jobs(self, where: ListFilter, page: bytes | None, limit: int, /) -> Page:
        start = int(page) if page else 0
        everything = (await super().list_jobs(where, None, 100_000)).jobs
        end = start + limit
        return Page(everything[start:end], b"%d" % end if len(everything) > end else None)


# ---------------------------------------------------------------- everything together


@caught_by(StateMachineTests, "test_state_machine")
class OnlyCompletionKeepsTheCheckpoint(MemoryExecutor):
    """What no test of its own looks for."""

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        return await super().finish_many(
            [replace(f, checkpoint=None) if f.to != "complete" else f for f in finishes]
        )
