"""Rule 14: capabilities are per instance, off by default, and true."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from typing import TypeAlias

import pytest

from goncordia.driver import (
    BaseExecutor,
    Capabilities,
    Change,
    Finish,
    FinishTo,
    JobState,
    ListFilter,
    Mark,
    QueueFetch,
)
from goncordia.errors import UnsupportedError
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, MakeDriver, claim_of, ids
from goncordia_conformance.marks import lacks, needs, not_proved, rule

__all__ = ["CapabilityTests", "CommitsOf", "ExchangeTests"]

CommitsOf: TypeAlias = Callable[[Callable[[], Awaitable[object]]], Awaitable[int]]
"""Makes the call, and tells how many commits the backend made for it."""


class CapabilityTests(Conformance, rule=14):
    """What is claimed is there, and what is off raises ``UnsupportedError``."""

    def test_they_make_sense(self, make_driver: MakeDriver) -> None:
        capabilities = make_driver().capabilities
        assert isinstance(capabilities, Capabilities)
        assert capabilities.native_tx in {"none", "batch", "interactive"}
        assert capabilities.sync_tx in {"none", "batch", "interactive"}
        assert capabilities.wakeups in {"none", "insert", "all"}
        assert capabilities.list_filters <= set(ListFilter.__struct_fields__)
        assert min(capabilities.atomic_insert, capabilities.max_batch) >= 1
        assert capabilities.max_payload >= 1 << 10
        assert capabilities.late_find_bound >= 0
        if capabilities.strict_fetch_order:
            assert capabilities.late_find_bound == 0
        if capabilities.tx_finish:
            assert {capabilities.native_tx, capabilities.sync_tx} != {"none"}

    def test_the_driver_has_a_name(self, make_driver: MakeDriver) -> None:
        driver = make_driver()
        assert driver.name
        assert driver.name == driver.executor().driver_name

    def test_the_executor_claims_what_the_driver_claims(self, make_driver: MakeDriver) -> None:
        driver = make_driver()
        assert driver.executor().capabilities == driver.capabilities

    # ---------------------------------------------------------------- marks, fetch_kinds

    @lacks("marks")
    async def test_without_marks_they_are_refused(self, lab: Lab) -> None:
        row = await lab.running()
        with pytest.raises(UnsupportedError, match="marks"):
            await lab.executor.mark_many([Mark(claim_of(row), started=True)])
        assert await lab.row(row.id) == row

    @lacks("fetch_kinds")
    async def test_without_fetch_kinds_they_are_refused(self, lab: Lab) -> None:
        job_id = await lab.add()
        session = await lab.session()
        with pytest.raises(UnsupportedError, match="fetch_kinds"):
            await session.fetch(5, QueueFetch("default", 5, kinds={"work": 1}))
        assert await lab.state(job_id) == JobState.AVAILABLE

    @needs("fetch_kinds")
    async def test_only_the_kinds_asked_for(self, lab: Lab) -> None:
        jobs = [await lab.add(kind) for kind in "abcabc"]
        session = await lab.session()
        only_b = QueueFetch("default", 9, kinds={"b": 9, "z": 9})
        assert ids(await session.fetch(9, only_b)) == [jobs[1], jobs[4]]
        assert await session.fetch(9, only_b) == []
        assert ids(await session.fetch(9)) == [jobs[0], jobs[2], jobs[3], jobs[5]]

    @needs("fetch_kinds")
    async def test_at_most_so_many_of_each_kind(self, lab: Lab) -> None:
        jobs = [await lab.add(kind) for kind in "aabbaabb"]
        session = await lab.session()
        asked = QueueFetch("default", 9, kinds={"a": 3, "b": 1})
        assert ids(await session.fetch(9, asked)) == [jobs[0], jobs[1], jobs[2], jobs[4]]
        assert ids(await session.fetch(2, asked)) == [jobs[3], jobs[5]]
        nothing = QueueFetch("default", 9, kinds={"a": 0, "b": 0})
        assert await session.fetch(9, nothing) == []
        assert await session.fetch(9, QueueFetch("default", 9, kinds={})) == []

    @needs("fetch_kinds")
    async def test_next_due_is_at_once_when_a_kinds_limit_left_some(self, lab: Lab) -> None:
        await lab.insert(*(lab.job(kind) for kind in "aab"))
        session = await lab.session()
        asked = QueueFetch("default", 9, kinds={"a": 1})
        assert (await session.ask(9, asked)).next_due_in in {0.0, None}
        assert (await session.ask(9, asked)).next_due_in in {inf, None}

    @needs("fetch_kinds")
    async def test_kinds_are_asked_queue_by_queue(self, lab: Lab) -> None:
        a, b = await lab.add("x", queue="a"), await lab.add("y", queue="b")
        await lab.add("y", queue="a")
        await lab.add("x", queue="b")
        asked = QueueFetch("a", 9, kinds={"x": 9}), QueueFetch("b", 9, kinds={"y": 9})
        assert ids(await (await lab.session()).fetch(9, *asked)) == [a, b]

    # ---------------------------------------------------------------- batches

    async def test_the_largest_batch(self, lab: Lab) -> None:
        size = min(lab.capabilities.max_batch, 10_000)
        jobs = [lab.job() for _ in range(size)]
        results = await lab.executor.insert_many(jobs)
        assert [(r.id, r.status) for r in results] == [(job.id, "INSERTED") for job in jobs]
        rows = await lab.executor.get_many([job.id for job in jobs])
        assert [row and row.id for row in rows] == [job.id for job in jobs]
        await lab.let_appear()
        session = await lab.session()
        claimed = await session.fetch(size)
        assert ids(claimed) == [job.id for job in jobs]
        ends: list[FinishTo] = ["complete", "retry", "release"]
        finishes = [Finish(claim_of(row), ends[n % 3]) for n, row in enumerate(claimed)]
        if lab.capabilities.marks:
            marks = [Mark(finish.claim, started=True) for finish in finishes]
            assert {o.status for o in await lab.executor.mark_many(marks)} == {"DONE"}
        assert {o.status for o in await lab.executor.finish_many(finishes)} == {"DONE"}
        changes = [Change(job.id, "delete") for job in jobs]
        assert {a.status for a in await lab.executor.change_many(changes)} == {"CHANGED"}
        assert await lab.executor.count(ListFilter()) == 0

    async def test_empty_batches(self, lab: Lab) -> None:
        assert await lab.executor.insert_many([]) == []
        assert await lab.executor.finish_many([]) == []
        assert await lab.executor.change_many([]) == []
        assert await lab.executor.exchange([], None) == ([], None)

    async def test_a_batch_is_never_seen_in_part(self, live_lab: Lab) -> None:
        size = min(live_lab.capabilities.atomic_insert, live_lab.capabilities.max_batch, 200)
        if size == 1:
            pytest.skip("not claimed: atomic_insert = 1")
        reader = (await live_lab.another_driver()).executor()
        seen: set[int] = set()
        writing = True

        async def read() -> None:
            while writing:
                page = await reader.list_jobs(ListFilter(), None, size * 20)
                seen.add(len(page.jobs))
                await asyncio.sleep(0)

        reading = asyncio.create_task(read())
        for _ in range(10):
            await live_lab.executor.insert_many([live_lab.job() for _ in range(size)])
        writing = False
        await reading
        assert {count % size for count in seen} <= {0}, seen


class ExchangeTests(Conformance, rule=14):
    """``exchange``: finish and fetch in one; by the default too, but in two steps."""

    @pytest.fixture
    def commits_of(self) -> CommitsOf:
        """For the driver's author: makes a call, and tells how many commits it took."""
        not_proved("exchange is one commit", "no fixture commits_of")

    async def test_it_finishes_and_fetches(self, lab: Lab) -> None:
        session = await lab.session()
        jobs = [await lab.add() for _ in range(4)]
        rows = await session.fetch(2)
        finishes = [Finish(claim_of(row), "complete", output=b"1") for row in rows]
        outcomes, result = await lab.executor.exchange(finishes, session.request(5))
        assert [o.status for o in outcomes] == ["DONE", "DONE"]
        assert result is not None
        assert ids(result.jobs) == jobs[2:]
        assert [row.state for row in await lab.rows(*jobs)] == [
            *[JobState.COMPLETED] * 2,
            *[JobState.RUNNING] * 2,
        ]

    async def test_without_a_request_it_only_finishes(self, lab: Lab) -> None:
        row = await lab.running()
        await lab.add()
        outcomes, result = await lab.executor.exchange([Finish(claim_of(row), "complete")], None)
        assert ([o.status for o in outcomes], result) == (["DONE"], None)
        assert await lab.state(row.id) == JobState.COMPLETED

    @rule(14, 3)
    async def test_a_stale_finish_does_not_stop_the_fetch(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        await lab.finish(row, "complete")
        job_id = await lab.add()
        other = await lab.running(await lab.session(), queue="other")
        ends = [Finish(claim_of(row), "retry"), Finish(claim_of(other), "complete")]
        outcomes, result = await lab.executor.exchange(ends, session.request(5))
        assert [o.status for o in outcomes] == ["ALREADY", "DONE"]
        assert result is not None
        assert ids(result.jobs) == [job_id]

    @rule(14, 9)
    async def test_a_repeated_finish_is_known(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        finish = Finish(claim_of(row), "retry")
        first, _ = await lab.executor.exchange([finish], None)
        second, result = await lab.executor.exchange([finish], session.request(5))
        assert [[o.status for o in outcomes] for outcomes in (first, second)] == [
            ["DONE"],
            ["ALREADY"],
        ]
        assert result is not None
        assert [(r.id, r.attempt) for r in result.jobs] == [(row.id, 2)]

    async def test_the_next_one_sees_what_it_freed(self, lab: Lab) -> None:
        if not lab.capabilities.groups:
            pytest.skip("not claimed: groups")
        session = await lab.session()
        row = await lab.running(session, group="g", group_limit=1)
        other = await lab.add(group="g", group_limit=1)
        _, first = await lab.executor.exchange(
            [Finish(claim_of(row), "complete")], session.request(5)
        )
        _, second = await lab.executor.exchange([], session.request(5))
        assert first is not None
        assert second is not None
        assert ids(first.jobs + second.jobs) == [other]

    @needs("exchange")
    async def test_claimed_it_is_the_drivers_own(self, lab: Lab) -> None:
        assert type(lab.executor).exchange is not BaseExecutor.exchange

    @needs("exchange")
    async def test_claimed_it_is_one_commit(self, lab: Lab, commits_of: CommitsOf) -> None:
        session = await lab.session()
        await lab.insert(*(lab.job() for _ in range(10)))
        finishes = [Finish(claim_of(row), "complete") for row in await session.fetch(5)]
        request = session.request(5)
        assert await commits_of(lambda: lab.executor.exchange(finishes, request)) == 1
        assert len(await session.held()) == 5
