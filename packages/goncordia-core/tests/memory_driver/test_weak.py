"""The weak mode: everything that the contract allows happens, and nothing else does."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from math import inf
from typing import Any
from uuid import UUID

import pytest

from goncordia.driver import (
    FetchRequest,
    FetchResult,
    Finish,
    JobRow,
    ListFilter,
    Mark,
    NewJob,
    Outcome,
    QueueFetch,
)
from goncordia.errors import DriverBusyError
from goncordia.gontest import MockClock
from goncordia.ids import JobIds
from goncordia.memory import MemoryDriver
from goncordia.memory.job import Job

SESSION = UUID(int=1)


class Lab:
    def __init__(self, weak: random.Random | int) -> None:
        self.clock = MockClock()
        self.driver = MemoryDriver(self.clock, weak=weak)
        self.executor = self.driver.executor()
        bits = random.Random(0)
        self.ids = JobIds(self.clock, bits.getrandbits)
        self.store = self.driver.store
        self.store.session_open(SESSION, "w", 30, self.clock.now(), self.clock.monotonic())
        self.fetches = 0
        self.busy = 0

    def insert(self, count: int = 1, **fields: Any) -> None:
        jobs = [
            NewJob(**{"id": self.ids(), "kind": "k", "args": b"{}", **fields}) for _ in range(count)
        ]
        self.store.insert_many(jobs, self.clock.now())

    def due(self) -> list[UUID]:
        now = self.clock.now()
        waiting = [job for job in self.store.jobs.values() if job.shown and job.run_at <= now]
        return [job.new.id for job in sorted(waiting, key=Job.order)]

    async def exchange(self, finishes: list[JobRow] | None = None, limit: int = 5) -> FetchResult:
        ends = [Finish(row.claim, "complete") for row in finishes or () if row.claim]
        while True:
            self.fetches += 1
            request = FetchRequest(SESSION, self.fetches, limit, (QueueFetch("default", limit),))
            try:
                outcomes, fetched = await self.executor.exchange(ends, request)
            except DriverBusyError as error:
                if error.outcome != "not_applied":
                    raise
                self.busy += 1
                continue
            await self.finish(self.held(ends, outcomes))
            assert fetched is not None
            return fetched

    async def finish(self, ends: list[Finish]) -> None:
        while ends:
            with contextlib.suppress(DriverBusyError):
                ends = self.held(ends, await self.executor.finish_many(ends))

    def held(self, ends: list[Finish], outcomes: list[Outcome]) -> list[Finish]:
        """Those that somebody held; the others are done."""
        assert {outcome.status for outcome in outcomes} <= {"DONE", "BUSY"}
        pairs = zip(ends, outcomes, strict=True)
        return [end for end, outcome in pairs if outcome.status == "BUSY"]


def test_the_capabilities_say_so() -> None:
    strong, weak = MemoryDriver().capabilities, MemoryDriver(weak=1).capabilities
    differ = [
        name for name in strong.__struct_fields__ if getattr(strong, name) != getattr(weak, name)
    ]
    assert differ == ["strict_fetch_order", "late_find_bound"]
    assert weak.late_find_bound > 0


async def test_the_same_seed_gives_the_same_answers() -> None:
    async def run(weak: random.Random | int) -> list[object]:
        lab = Lab(weak)
        answers: list[object] = []
        for _ in range(100):
            lab.insert(3)
            await lab.clock.advance(0.1)
            answers.append(await lab.exchange())
        return [*answers, lab.busy]

    first = await run(5)
    assert await run(5) == first
    assert await run(random.Random(5)) == first
    assert await run(6) != first


async def test_fetches_stay_within_the_contract_and_use_its_freedom() -> None:
    lab = Lab(3)
    dice = random.Random(3)
    bound = lab.driver.capabilities.late_find_bound
    seen: Counter[str] = Counter()
    for _ in range(600):
        lab.insert(dice.randint(0, 5), priority=dice.randint(0, 1))
        await lab.clock.advance(0.1)
        due, busy = lab.due(), lab.busy
        result = await lab.exchange()
        seen["busy"] += lab.busy > busy
        got = [row.id for row in result.jobs]
        assert set(got) <= set(due)
        assert got == [job_id for job_id in due if job_id in got], "in order"
        if len(got) < 5 and not result.more:
            assert got == due, "short without more: that was all"
        elif len(got) < 5:
            assert got == due[: len(got)], "only a full result passes over a job"
            seen["short"] += 1
        passed = due[: due.index(got[-1])] if got else []
        for job_id in set(passed) - set(got):
            job = lab.store.job(job_id)
            assert job is not None
            assert (lab.clock.now() - job.visible_at).total_seconds() < bound
            seen["late"] += 1
        if result.next_due_in is None:
            seen["unknown"] += 1
        elif len(got) == len(due):
            assert result.next_due_in == inf
    assert min(seen[what] for what in ("busy", "short", "late", "unknown")) >= 5, seen


async def test_an_exchange_may_not_see_the_group_that_it_freed() -> None:
    lab = Lab(1)
    lab.insert(300, group="g", group_limit=1)
    rows: list[JobRow] = []
    seen: Counter[str] = Counter()
    while lab.store.unfinished:
        await lab.clock.advance(1)
        result = await lab.exchange(rows)
        finished, rows = bool(rows), result.jobs
        if finished and lab.store.unfinished:
            unseen = not rows and not result.more
            seen["unseen" if unseen else "seen"] += 1
    assert seen["unseen"] > 20
    assert seen["seen"] > 20


async def test_pages_and_expiry_may_be_short() -> None:
    lab = Lab(4)
    lab.insert(40)
    lengths: Counter[int] = Counter()
    for _ in range(60):
        page: bytes | None = None
        found: list[UUID] = []
        while True:
            try:
                got = await lab.executor.list_jobs(ListFilter(), page, 10)
            except DriverBusyError:
                continue
            found += [row.id for row in got.jobs]
            lengths[len(got.jobs)] += 1
            page = got.next
            if page is None:
                break
        assert found == sorted((job.new.id for job in lab.store.jobs.values()), reverse=True)
    assert max(lengths) == 10
    assert len(lengths) > 5


async def test_expiry_may_give_fewer_and_gives_the_rest_later() -> None:
    lab = Lab(4)
    dead = UUID(int=2)
    lab.store.session_open(dead, "w", 30, lab.clock.now(), lab.clock.monotonic())
    lab.insert(10)
    lab.store.fetch(FetchRequest(dead, 1, 10, (QueueFetch("default", 10),)), lab.clock.now())
    for _ in range(7):
        await lab.clock.advance(5)
        lab.store.session_beat(SESSION, 30, lab.clock.now(), lab.clock.monotonic())
    given: Counter[int] = Counter()
    for _ in range(60):
        try:
            given[len(await lab.executor.expire(SESSION, 10))] += 1
        except DriverBusyError:
            lab.busy += 1
    assert given[10] > 30
    assert len(given) > 3
    assert lab.busy > 0


async def test_a_fetch_alone_is_weak_and_some_results_meet_a_held_job() -> None:
    lab = Lab(2)
    lab.insert(400)
    lengths: Counter[int] = Counter()
    statuses: Counter[str] = Counter()
    number = 0
    while lab.store.waiting.lines(QueueFetch("default", 1)):
        number += 1
        request = FetchRequest(SESSION, number, 5, (QueueFetch("default", 5),))
        try:
            result = await lab.executor.fetch(request)
            ends = [Finish(row.claim, "complete") for row in result.jobs if row.claim]
            outcomes, nothing = await lab.executor.exchange(ends, None)
            assert nothing is None
            statuses.update(outcome.status for outcome in outcomes)
        except DriverBusyError:
            continue
        lengths[len(result.jobs)] += 1
    assert len(lengths) == 6
    assert statuses.keys() == {"DONE", "BUSY"}
    assert statuses["DONE"] > 5 * statuses["BUSY"]


async def test_marks_are_busy_now_and_then() -> None:
    lab = Lab(2)
    lab.insert(1)
    (row,) = (await lab.exchange()).jobs or (await lab.exchange()).jobs
    assert row.claim is not None
    statuses: Counter[str] = Counter()
    for _ in range(300):
        with contextlib.suppress(DriverBusyError):
            (outcome,) = await lab.executor.mark_many([Mark(row.claim, started=True)])
            statuses[outcome.status] += 1
    assert statuses.keys() == {"DONE", "BUSY"}
    assert statuses["DONE"] > 5 * statuses["BUSY"]


@pytest.mark.parametrize("weak", [0, 1, 2])
async def test_all_work_gets_done_under_every_seed(weak: int) -> None:
    lab = Lab(weak)
    for number in range(200):
        lab.insert(group=f"g{number % 7}", group_limit=2)
    rows: list[JobRow] = []
    while lab.store.unfinished:
        rows = (await lab.exchange(rows)).jobs
        await lab.clock.advance(0.1)
    assert len(lab.store.jobs) == 200
