"""Rule 2: no job has two claims at a time, and no claim comes twice."""

from __future__ import annotations

from goncordia.driver import FetchRequest, QueueFetch
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import LEASE, Lab, claim_of, ids
from goncordia_conformance.marks import both_ways

__all__ = ["ClaimTests"]


class ClaimTests(Conformance, rule=2):
    """Two fetches never return the same job while the first holds it."""

    @both_ways
    async def test_a_claimed_job_is_not_given_again(self, lab: Lab) -> None:
        job_id = await lab.add()
        first, second = await lab.session(), await lab.session()
        assert ids(await first.fetch()) == [job_id]
        assert await first.fetch() == []
        assert await second.fetch() == []

    @both_ways
    async def test_two_sessions_in_turn_share_no_job(self, lab: Lab) -> None:
        jobs = [await lab.add() for _ in range(9)]
        sessions = [await lab.session() for _ in range(2)]
        got = [row for n in range(5) for row in await sessions[n % 2].fetch(2)]
        assert ids(got) == jobs

    async def test_two_drivers_in_turn_share_no_job(self, lab: Lab) -> None:
        jobs = [await lab.add() for _ in range(9)]
        other = (await lab.another_driver()).executor()
        sessions = [await lab.session(), await lab.session(executor=other)]
        got = [row for n in range(5) for row in await sessions[n % 2].fetch(2)]
        assert ids(got) == jobs

    async def test_the_end_of_a_lease_alone_frees_nothing(self, lab: Lab) -> None:
        row = await lab.running()
        await lab.advance(10 * LEASE)
        assert await (await lab.session()).fetch() == []
        assert (await lab.row(row.id)).claim == row.claim

    async def test_two_runs_of_a_job_have_two_claims(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        claims = [claim_of(row)]
        for _ in range(3):
            await lab.finish(claims[-1], "release")
            (row,) = await session.fetch()
            claims.append(claim_of(row))
        assert len(set(claims)) == 4
        assert [claim.fetch_no for claim in claims] == [1, 2, 3, 4]

    async def test_held_gives_what_runs(self, lab: Lab) -> None:
        session, other = await lab.session(), await lab.session()
        jobs = [await lab.add() for _ in range(5)]
        await session.fetch(2)
        await session.fetch(1)
        await other.fetch(1)
        held = lab.executor.held
        assert sorted(ids(await held(session.id, None, 10))) == jobs[:3]
        assert sorted(ids(await held(session.id, 1, 10))) == jobs[:2]
        assert ids(await held(session.id, 2, 10)) == [jobs[2]]
        assert await held(session.id, 3, 10) == []
        assert ids(await held(other.id, 1, 10)) == [jobs[3]]
        assert len(await held(session.id, None, 2)) == 2

    async def test_held_gives_the_row_whole(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session, args=b'{"x":1}', tags=("a", "b"), meta={"k": "v"})
        assert await session.held() == [row]
        await lab.finish(row, "retry")
        assert await session.held() == []

    async def test_an_empty_fetch_claims_nothing(self, lab: Lab) -> None:
        await lab.add()
        session = await lab.session()
        request = FetchRequest(session.id, 1, 5, (QueueFetch("default", 0),))
        assert (await lab.executor.fetch(request)).jobs == []
        assert await session.held() == []
