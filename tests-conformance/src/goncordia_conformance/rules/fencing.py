"""Rule 3: a finish or a mark acts on exactly the claim that it names, and on nothing else."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import replace

from goncordia.driver import Claim, Finish, FinishTo, JobRow, JobState, Mark
from goncordia.ids import new_session_id
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, claim_of
from goncordia_conformance.marks import needs

__all__ = ["FencingTests"]

every_end = pytest.mark.parametrize("to", get_args(FinishTo))


def _strangers(claim: Claim) -> list[Claim]:
    """Claims that resemble one, and are not it."""
    return [
        replace(claim, session=new_session_id()),
        replace(claim, fetch_no=claim.fetch_no + 1),
        replace(claim, fetch_no=claim.fetch_no - 1),
    ]


class FencingTests(Conformance, rule=3):
    """What does not hold the job is ``STALE``, and changes nothing."""

    @every_end
    async def test_finish_of_another_claim_is_stale(self, lab: Lab, to: FinishTo) -> None:
        row = await lab.running()
        for claim in _strangers(claim_of(row)):
            outcome = await lab.finish(claim, to, output=b"1", checkpoint=b"2")
            assert (outcome.status, outcome.state) == ("STALE", JobState.RUNNING)
            assert await lab.row(row.id) == row

    @every_end
    async def test_finish_of_a_job_that_never_ran_is_stale(self, lab: Lab, to: FinishTo) -> None:
        job_id = await lab.add()
        before = await lab.row(job_id)
        session = await lab.session()
        outcome = await lab.finish(Claim(job_id, session.id, 1), to)
        assert (outcome.status, outcome.state) == ("STALE", JobState.AVAILABLE)
        assert await lab.row(job_id) == before

    @every_end
    async def test_finish_of_a_job_that_is_not_there_is_gone(self, lab: Lab, to: FinishTo) -> None:
        row = await lab.running()
        await lab.finish(row, "complete")
        assert (await lab.change(row.id, "delete")).status == "CHANGED"
        assert (await lab.finish(row, to)).status == "GONE"

    @every_end
    async def test_repeated_finish_changes_nothing_while_the_job_runs_again(
        self, lab: Lab, to: FinishTo
    ) -> None:
        session = await lab.session()
        first = await lab.running(session)
        await lab.finish(first, "retry")
        (second,) = await session.fetch()
        assert second.id == first.id
        outcome = await lab.finish(first, to, output=b"1", checkpoint=b"2")
        assert (outcome.status, outcome.state) == ("ALREADY", JobState.RUNNING)
        assert await lab.row(first.id) == second

    @every_end
    async def test_finish_of_an_older_claim_is_stale(self, lab: Lab, to: FinishTo) -> None:
        session = await lab.session()
        first = await lab.running(session)
        await lab.finish(first, "retry")
        (second,) = await session.fetch()
        await lab.finish(second, "complete")
        before = await lab.row(first.id)
        outcome = await lab.finish(first, to, output=b"1", checkpoint=b"2")
        assert (outcome.status, outcome.state) == ("STALE", JobState.COMPLETED)
        assert await lab.row(first.id) == before

    @every_end
    async def test_the_owner_comes_after_the_rescuer(self, lab: Lab, to: FinishTo) -> None:
        row = await lab.running()
        assert (await lab.finish(row, "retry", rescue=True)).status == "DONE"
        before = await lab.row(row.id)
        outcome = await lab.finish(row, to)
        assert (outcome.status, outcome.state) == ("ALREADY", JobState.AVAILABLE)
        assert await lab.row(row.id) == before

    async def test_a_stale_finish_does_not_touch_the_others(self, lab: Lab) -> None:
        session = await lab.session()
        rows = [await lab.running(session) for _ in range(4)]
        claims = [claim_of(row) for row in rows]
        claims[1] = replace(claims[1], session=new_session_id())
        claims[2] = replace(claims[2], job_id=lab.new_id())
        outcomes = await lab.executor.finish_many([Finish(c, "complete") for c in claims])
        assert [o.status for o in outcomes] == ["DONE", "STALE", "GONE", "DONE"]
        assert [r.state for r in await lab.rows(*[row.id for row in rows])] == [
            JobState.COMPLETED,
            JobState.RUNNING,
            JobState.RUNNING,
            JobState.COMPLETED,
        ]

    async def test_outcomes_follow_the_order_of_the_finishes(self, lab: Lab) -> None:
        session = await lab.session()
        rows = [await lab.running(session) for _ in range(6)]
        ends: list[FinishTo] = list(get_args(FinishTo))
        finishes = [Finish(claim_of(r), to) for r, to in zip(rows, ends, strict=True)]
        states = dict(zip(ends, await lab.executor.finish_many(finishes[::-1]), strict=True))
        outcomes = [states[to] for to in ends][::-1]
        found = await lab.rows(*[row.id for row in rows])
        assert [o.state for o in outcomes] == [row.state for row in found]

    async def test_one_claim_twice_in_a_batch_ends_once(self, lab: Lab) -> None:
        claim = claim_of(await lab.running())
        finishes = [Finish(claim, "complete", output=b"1"), Finish(claim, "discard", output=b"2")]
        outcomes = await lab.executor.finish_many(finishes)
        assert [o.status for o in outcomes] == ["DONE", "ALREADY"]
        assert (await lab.row(claim.job_id)).output == b"1"

    # ---------------------------------------------------------------- marks

    @needs("marks")
    async def test_mark_of_another_claim_is_stale(self, lab: Lab) -> None:
        row = await lab.running()
        marks = [Mark(c, started=True, checkpoint=b"9") for c in _strangers(claim_of(row))]
        assert [o.status for o in await lab.executor.mark_many(marks)] == ["STALE"] * 3
        assert await lab.row(row.id) == row

    @needs("marks")
    async def test_mark_of_an_ended_claim_is_stale(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        await lab.finish(row, "retry")
        mark = Mark(claim_of(row), started=True, checkpoint=b"9")
        before: JobRow = await lab.row(row.id)
        assert [o.status for o in await lab.executor.mark_many([mark])] == ["STALE"]
        assert await lab.row(row.id) == before
        (again,) = await session.fetch()
        assert [o.status for o in await lab.executor.mark_many([mark])] == ["STALE"]
        assert await lab.row(row.id) == again

    @needs("marks")
    async def test_mark_of_a_job_that_is_not_there_is_gone(self, lab: Lab) -> None:
        claim = claim_of(await lab.running())
        mark = Mark(replace(claim, job_id=lab.new_id()), started=True)
        assert [o.status for o in await lab.executor.mark_many([mark])] == ["GONE"]

    @needs("marks")
    async def test_a_mark_starts_and_keeps_a_checkpoint(self, lab: Lab) -> None:
        row = await lab.running()
        claim = claim_of(row)
        assert [o.status for o in await lab.executor.mark_many([Mark(claim, started=True)])] == [
            "DONE"
        ]
        assert await lab.row(row.id) == replace(row, started=True)
        await lab.executor.mark_many([Mark(claim, checkpoint=b'{"page":3}')])
        assert await lab.row(row.id) == replace(row, started=True, checkpoint=b'{"page":3}')
        await lab.executor.mark_many([Mark(claim, started=True)])
        assert await lab.row(row.id) == replace(row, started=True, checkpoint=b'{"page":3}')

    @needs("marks")
    async def test_a_new_claim_has_not_started(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        await lab.executor.mark_many([Mark(claim_of(row), started=True, checkpoint=b"1")])
        await lab.finish(row, "retry")
        (again,) = await session.fetch()
        assert (again.started, again.checkpoint) == (False, b"1")

    @needs("marks")
    async def test_a_stale_mark_does_not_touch_the_others(self, lab: Lab) -> None:
        session = await lab.session()
        rows = [await lab.running(session) for _ in range(3)]
        claims = [claim_of(row) for row in rows]
        claims[1] = replace(claims[1], fetch_no=99)
        outcomes = await lab.executor.mark_many([Mark(claim, started=True) for claim in claims])
        assert [o.status for o in outcomes] == ["DONE", "STALE", "DONE"]
        assert [r.started for r in await lab.rows(*[row.id for row in rows])] == [True, False, True]
