"""Rule 7: of a group, no more jobs run at a time than the claimed job's limit allows."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from goncordia.driver import After, Change, FinishTo, JobState, ListFilter, QueueFetch
from goncordia.errors import UnsupportedError
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import LEASE, Lab, ids
from goncordia_conformance.marks import both_ways, lacks, needs, rule

__all__ = ["GroupTests"]


class GroupTests(Conformance, rule=7):
    """Decided in the claim's own step, so that no crash leaks a slot."""

    @lacks("groups")
    @rule(7, 14)
    async def test_without_the_capability_a_group_is_refused(self, lab: Lab) -> None:
        with pytest.raises(UnsupportedError, match="groups"):
            await lab.executor.insert_many([lab.job(), lab.job(group="g", group_limit=1)])
        assert await lab.executor.count(ListFilter()) == 0

    @needs("groups")
    @both_ways
    @pytest.mark.parametrize("limit", [1, 3])
    async def test_no_more_run_than_the_limit(self, lab: Lab, limit: int) -> None:
        jobs = [await lab.add(group="g", group_limit=limit) for _ in range(7)]
        one, two = await lab.session(), await lab.session()
        rows = await one.fetch()
        assert ids(rows) == jobs[:limit]
        assert await two.fetch() == []
        await lab.finish(rows[0], "complete")
        assert ids(await two.fetch()) == [jobs[limit]]
        assert await one.fetch() == []

    @needs("groups")
    @pytest.mark.parametrize("to", ["complete", "discard", "cancel", "retry", "snooze", "release"])
    async def test_every_end_of_a_claim_frees_its_place(self, lab: Lab, to: FinishTo) -> None:
        session = await lab.session()
        row = await lab.running(session, group="g", group_limit=1)
        other = await lab.add(group="g", group_limit=1)
        assert await session.fetch() == []
        when = After(60) if to in {"retry", "snooze", "release"} else None
        await lab.finish(row, to, when=when)
        assert ids(await session.fetch()) == [other]

    @needs("groups")
    async def test_a_closed_session_frees_its_places(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session, group="g", group_limit=1)
        other = await lab.add(group="g", group_limit=1)
        await session.close()
        await lab.let_appear()
        assert ids(await (await lab.session()).fetch()) == [row.id]
        assert await lab.state(other) == JobState.AVAILABLE

    @needs("groups")
    async def test_a_lost_session_keeps_its_places_until_the_rescue(self, lab: Lab) -> None:
        silent, asker = await lab.session(), await lab.session()
        row = await lab.running(silent, group="g", group_limit=1)
        other = await lab.add(group="g", group_limit=1)
        found = await lab.watch(asker, seconds=1.5 * LEASE)
        assert ids(found) == [row.id]
        assert await asker.fetch() == []
        await lab.finish(found[0], "retry", when=After(60), rescue=True)
        assert ids(await asker.fetch()) == [other]

    @needs("groups")
    async def test_a_waiting_retry_does_not_block(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session, group="g", group_limit=1)
        await lab.finish(row, "retry", when=After(10))
        other = await lab.running(session, group="g", group_limit=1)
        await lab.advance(10)
        assert await session.fetch() == []
        await lab.finish(other, "complete")
        assert ids(await session.fetch()) == [row.id]

    @needs("groups")
    @both_ways
    async def test_each_job_carries_its_own_limit(self, lab: Lab) -> None:
        session = await lab.session()
        first = await lab.running(session, group="g", group_limit=3)
        narrow = await lab.add(group="g", group_limit=1)
        wide = [await lab.add(group="g", group_limit=3) for _ in range(3)]
        rows = await session.fetch()
        assert ids(rows) == wide[:2]
        for row in (first, rows[0]):
            await lab.finish(row, "complete")
        assert ids(await session.fetch(1)) == [wide[2]]
        for row in (rows[1], await lab.row(wide[2])):
            await lab.finish(row, "complete")
        assert ids(await session.fetch()) == [narrow]

    @needs("groups")
    async def test_a_group_spans_queues_kinds_and_priorities(self, lab: Lab) -> None:
        jobs = [
            await lab.add(kind, group="g", group_limit=1, queue=queue, priority=priority)
            for kind, queue, priority in (("k", "a", 0), ("l", "b", 0), ("k", "b", 9))
        ]
        session = await lab.session()
        order = [jobs[0], jobs[2], jobs[1]]
        for expected in order:
            (row,) = await session.fetch(5, "a", "b")
            assert row.id == expected
            await lab.finish(row, "complete")

    @needs("groups")
    @both_ways
    async def test_groups_do_not_touch_each_other_nor_the_rest(self, lab: Lab) -> None:
        jobs = [await lab.add(group=group, group_limit=1) for group in ("g", "h", "g", "h")]
        free = await lab.add(group=None)
        session = await lab.session()
        assert ids(await session.fetch()) == [*jobs[:2], free]

    @needs("groups")
    @both_ways
    async def test_a_full_group_hides_nothing_behind_it(self, lab: Lab) -> None:
        session = await lab.session()
        running = await lab.running(session, group="g", group_limit=1)
        parked = [await lab.add(group="g", group_limit=1, priority=9) for _ in range(30)]
        behind = [await lab.add() for _ in range(3)]
        for expected in behind:
            assert ids(await session.fetch(1)) == [expected]
        await lab.finish(running, "complete")
        assert ids(await session.fetch(5)) == parked[:1]

    @needs("groups")
    async def test_freed_jobs_come_in_their_order(self, lab: Lab) -> None:
        session = await lab.session()
        running = await lab.running(session, group="g", group_limit=1)
        priorities = [0, 5, -5, 5, 0]
        jobs = [await lab.add(group="g", group_limit=1, priority=p) for p in priorities]
        got: list[UUID] = []
        for _ in jobs:
            await lab.finish(running, "complete")
            (running,) = await session.fetch()
            got.append(running.id)
        assert got == [jobs[n] for n in (1, 3, 0, 4, 2)]

    @needs("groups")
    async def test_a_freed_job_takes_its_place_among_all(self, lab: Lab) -> None:
        session = await lab.session()
        running = await lab.running(session, group="g", group_limit=1)
        parked = await lab.add(group="g", group_limit=1)
        later = await lab.add()
        await lab.finish(running, "complete")
        await lab.let_appear()
        assert ids(await session.fetch(1)) == [parked]
        assert ids(await session.fetch(1)) == [later]

    @needs("groups")
    async def test_a_parked_job_can_be_changed(self, lab: Lab) -> None:
        session = await lab.session()
        running = await lab.running(session, group="g", group_limit=1)
        parked = [await lab.add(group="g", group_limit=1) for _ in range(4)]
        assert await session.fetch() == []
        answers = await lab.executor.change_many(
            [
                Change(parked[0], "cancel"),
                Change(parked[1], "delete"),
                Change(parked[2], "reschedule", After(60)),
            ]
        )
        assert [answer.status for answer in answers] == ["CHANGED"] * 3
        await lab.finish(running, "complete")
        (row,) = await session.fetch()
        assert row.id == parked[3]
        await lab.finish(row, "complete")
        assert await session.fetch() == []
        await lab.advance(60)
        assert ids(await session.fetch()) == [parked[2]]

    @needs("groups")
    async def test_a_job_inserted_into_a_full_group_waits(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session, group="g", group_limit=1)
        soon = await lab.add(group="g", group_limit=1, run_at=After(5))
        await lab.advance(5)
        assert await session.fetch() == []
        assert await lab.state(soon) == JobState.AVAILABLE
        await lab.finish(row, "complete")
        assert ids(await session.fetch()) == [soon]

    @needs("groups")
    @both_ways
    async def test_groups_can_be_left_out(self, lab: Lab) -> None:
        left = await lab.add(group="g", group_limit=2)
        other = await lab.add(group="h", group_limit=2)
        free = await lab.add()
        session = await lab.session()
        asked = QueueFetch("default", 5, skip_groups=frozenset({"g", "x"}))
        assert ids(await session.fetch(5, asked)) == [other, free]
        assert await lab.state(left) == JobState.AVAILABLE
        assert ids(await session.fetch()) == [left]

    @needs("groups")
    async def test_under_concurrency_the_limit_holds(self, lab: Lab) -> None:
        limit, jobs = 2, [await lab.add(group="g", group_limit=2) for _ in range(40)]
        executors = [lab.executor, *[(await lab.another_driver()).executor() for _ in range(3)]]
        running: set[object] = set()
        done: list[object] = []

        async def work(n: int) -> None:
            session = await lab.session(executor=executors[n % 4])
            while len(done) < len(jobs):
                for row in await session.fetch(3):
                    running.add(row.id)
                    assert len(running) <= limit
                    await asyncio.sleep(0)
                    running.discard(row.id)
                    await lab.finish(row, "complete")
                    done.append(row.id)
                await asyncio.sleep(0)

        async with asyncio.timeout(60):
            await asyncio.gather(*(work(n) for n in range(8)))
        assert sorted(map(str, done)) == sorted(map(str, jobs))
