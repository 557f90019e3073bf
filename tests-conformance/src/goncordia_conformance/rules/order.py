"""Rule 1: the order in which jobs are claimed, and what a short result means."""

from __future__ import annotations

import random
from math import inf

from goncordia.driver import After, At, FetchResult, JobState, QueueFetch
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, Session, claim_of, ids
from goncordia_conformance.marks import both_ways, needs

__all__ = ["OrderTests"]


async def _drain(session: Session, limit: int, *queues: str) -> list[FetchResult]:
    """Fetch until nothing comes."""
    results = [await session.ask(limit, *queues)]
    while results[-1].jobs:
        results.append(await session.ask(limit, *queues))
    return results


class OrderTests(Conformance, rule=1):
    """Due jobs by priority descending, then run_at, then id, over the whole queue."""

    @both_ways
    async def test_higher_priority_first(self, lab: Lab) -> None:
        low, high, middle = [await lab.add(priority=p) for p in (-32768, 32767, 0)]
        assert ids(await (await lab.session()).fetch()) == [high, middle, low]

    @both_ways
    async def test_earlier_run_at_first(self, lab: Lab) -> None:
        run_ats = [At(await lab.at(seconds)) for seconds in (-10, -30, -20)]
        second = [await lab.add(run_at=run_at) for run_at in run_ats]
        assert ids(await (await lab.session()).fetch()) == [second[1], second[2], second[0]]

    @both_ways
    async def test_lower_id_breaks_the_tie(self, lab: Lab) -> None:
        run_at = At(await lab.now())
        jobs = [lab.job(run_at=run_at) for _ in range(5)]
        await lab.insert(*reversed(jobs))
        assert ids(await (await lab.session()).fetch()) == [job.id for job in jobs]

    @both_ways
    async def test_order_holds_over_the_whole_queue(self, lab: Lab) -> None:
        rng = random.Random(1)
        moments = [await lab.at(-seconds) for seconds in range(5)]
        jobs = [
            lab.job(priority=rng.choice([-3, 0, 7]), run_at=At(rng.choice(moments)))
            for _ in range(60)
        ]
        rng.shuffle(jobs)
        await lab.insert(*jobs)
        results = await _drain(await lab.session(), 7)
        got = [row for result in results for row in result.jobs]
        assert ids(got) == ids(sorted(got, key=lambda row: (-row.priority, row.run_at, row.id)))
        assert len(got) == 60

    @both_ways
    async def test_nothing_before_it_is_due(self, lab: Lab) -> None:
        job_id = await lab.add(run_at=After(10))
        session = await lab.session()
        await lab.advance(9.999)
        assert await session.fetch() == []
        await lab.advance(0.001)
        assert ids(await session.fetch()) == [job_id]

    @both_ways
    async def test_queues_are_taken_in_strict_precedence(self, lab: Lab) -> None:
        later = [await lab.add(queue="b", priority=9) for _ in range(2)]
        first = [await lab.add(queue="a", priority=-9) for _ in range(2)]
        await lab.add(queue="c", priority=100)
        assert ids(await (await lab.session()).fetch(3, "a", "b")) == [*first, later[0]]

    @both_ways
    async def test_limits_of_each_queue_and_in_all(self, lab: Lab) -> None:
        a = [await lab.add(queue="a") for _ in range(5)]
        b = [await lab.add(queue="b") for _ in range(5)]
        session = await lab.session()
        asked = QueueFetch("a", 2), QueueFetch("b", 4)
        assert ids(await session.fetch(10, *asked)) == [*a[:2], *b[:4]]
        assert ids(await session.fetch(3, *asked)) == [*a[2:4], b[4]]

    @both_ways
    async def test_a_short_result_without_more_saw_everything(self, lab: Lab) -> None:
        jobs = [await lab.add(queue=queue) for queue in "abab"]
        session = await lab.session()
        got: set[object] = set()
        for _ in range(20):
            result = await session.ask(10, "a", "b")
            got |= set(ids(result.jobs))
            if not result.more:
                break
        else:
            raise AssertionError("twenty short results in turn say that there is more")
        assert got == set(jobs)

    @both_ways
    async def test_a_late_job_of_higher_rank_comes_first(self, lab: Lab) -> None:
        jobs = [await lab.add() for _ in range(4)]
        session = await lab.session()
        assert ids(await session.fetch(2)) == jobs[:2]
        urgent = await lab.add(priority=1)
        older = await lab.add(run_at=At(await lab.at(-60)))
        assert ids(await session.fetch(10)) == [urgent, older, *jobs[2:]]

    @needs("strict_fetch_order")
    async def test_a_full_result_passes_over_nothing(self, lab: Lab) -> None:
        later = [lab.job() for _ in range(6)]
        session = await lab.session()
        earlier = lab.job(run_at=At(await lab.at(-1)))
        await lab.executor.insert_many(later)
        assert ids(await session.fetch(2)) == [job.id for job in later[:2]]
        await lab.executor.insert_many([earlier])
        assert ids(await session.fetch(2)) == [earlier.id, later[2].id]

    async def test_a_full_result_passes_over_a_job_for_the_bound_only(self, lab: Lab) -> None:
        # Inserted behind newer jobs: an older time, and an id that is lower than theirs.
        behind = lab.job(run_at=At(await lab.at(-60)))
        newer = [await lab.add() for _ in range(6)]
        session = await lab.session()
        assert ids(await session.fetch(3)) == newer[:3]
        await lab.executor.insert_many([behind])
        await lab.advance(lab.capabilities.late_find_bound)
        assert ids(await session.fetch(2)) == [behind.id, newer[3]]

    @both_ways
    async def test_what_a_claim_does_to_the_row(self, lab: Lab) -> None:
        job_id = await lab.add()
        await lab.advance(5)
        session = await lab.session(worker_id="host-7")
        (row,) = await session.fetch()
        claim = claim_of(row)
        assert (claim.job_id, claim.session, claim.fetch_no) == (job_id, session.id, 1)
        assert (row.state, row.attempt, row.started) == (JobState.RUNNING, 1, False)
        assert (row.worker_id, row.claimed_at) == ("host-7", await lab.now())
        assert (row.finished_at, row.cancel_requested, row.errors) == (None, False, ())
        assert await lab.row(job_id) == row

    async def test_released_job_keeps_its_place(self, lab: Lab) -> None:
        jobs = [await lab.add() for _ in range(3)]
        session = await lab.session()
        (first,) = await session.fetch(1)
        await lab.advance(5)
        await lab.finish(first, "release")
        await lab.let_appear()
        assert ids(await session.fetch()) == jobs

    async def test_retried_job_goes_behind(self, lab: Lab) -> None:
        jobs = [await lab.add() for _ in range(3)]
        session = await lab.session()
        (first,) = await session.fetch(1)
        await lab.advance(1)
        await lab.finish(first, "retry")
        await lab.let_appear()
        assert ids(await session.fetch()) == [*jobs[1:], jobs[0]]

    # ---------------------------------------------------------------- next_due_in

    @both_ways
    async def test_next_due_is_never_when_nothing_waits(self, lab: Lab) -> None:
        await lab.finished()
        await lab.add(queue="other")
        await lab.running(queue="default")
        result = await (await lab.session()).ask()
        assert result.jobs == []
        assert result.next_due_in in {inf, None}

    @both_ways
    async def test_next_due_counts_down(self, lab: Lab) -> None:
        await lab.add(run_at=After(20), queue="a")
        await lab.add(run_at=After(12), queue="b", priority=-1)
        await lab.add(run_at=After(1), queue="c")
        session = await lab.session()
        await lab.advance(5)
        assert (await session.ask(10, "a", "b")).next_due_in in {7.0, None}

    @both_ways
    async def test_next_due_is_at_once_when_the_limit_left_some(self, lab: Lab) -> None:
        await lab.insert(*(lab.job() for _ in range(3)))
        await lab.add(run_at=After(50))
        result = await (await lab.session()).ask(2)
        assert len(result.jobs) == 2
        assert result.next_due_in in {0.0, None}

    @needs("groups")
    @both_ways
    async def test_next_due_does_not_count_what_a_full_group_blocks(self, lab: Lab) -> None:
        await lab.insert(*(lab.job(group="g", group_limit=1) for _ in range(2)))
        await lab.add(run_at=After(50))
        session = await lab.session()
        assert len(await session.fetch()) == 1
        result = await session.ask()
        assert result.jobs == []
        assert result.next_due_in in {50.0, None}, "0 would make the engine spin"
