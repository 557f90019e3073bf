"""Rule 9: after an unknown outcome, the same request again tells what the first one did.

Each operation fails once before its effect and once after it, at every call that it makes to the
backend; then it is repeated, unchanged. What is there in the end must be as if nothing had failed.
"""

from __future__ import annotations

import asyncio

import pytest

from goncordia.driver import After, Finish, NewJob
from goncordia.errors import DriverUnavailableError
from goncordia_conformance.base import Conformance
from goncordia_conformance.faults import Side
from goncordia_conformance.lab import LEASE, Lab, claim_of
from goncordia_conformance.marks import needs
from goncordia_conformance.trials import PREPARE, Desk

__all__ = ["ReplayTests"]

MOST_CALLS = 60
"""More calls to the backend than any one operation makes here."""


class ReplayTests(Conformance, rule=9):
    """Every request but fetch and exchange may be sent again, unchanged."""

    @pytest.mark.parametrize("side", ["before", "after"])
    @pytest.mark.parametrize("operation", PREPARE)
    async def test_repeated(self, lab: Lab, operation: str, side: Side) -> None:
        desk = Desk(lab)
        smooth = await PREPARE[operation](desk)
        expected = await smooth.act(desk.executor)
        outcome = await smooth.look()
        for call in range(MOST_CALLS):
            trial = await PREPARE[operation](desk)
            desk.faults.plan(call, side)
            try:
                await trial.act(desk.executor)
                break  # it made no more calls than failed before
            except DriverUnavailableError:
                answer = await trial.act(desk.executor)
            failed = f"{side} call {call} ({desk.faults.calls[call]})"
            assert answer in [expected, *trial.answers], failed
            if call == 0 and side == "before":
                assert answer == expected, failed
            assert await trial.look() == outcome, failed
        else:
            raise AssertionError(f"{operation} makes more than {MOST_CALLS} calls")
        assert call > 0, f"{operation} does not call the backend"

    @pytest.mark.parametrize("side", ["before", "after"])
    async def test_expire_repeated(self, lab: Lab, side: Side) -> None:
        desk = Desk(lab)
        for call in range(MOST_CALLS):
            silent, alive, asker = [await desk.session() for _ in range(3)]
            row = await lab.running(silent, queue=str(lab.new_id()))
            await lab.watch(asker, alive, seconds=LEASE)
            desk.faults.plan(call, side)
            try:
                await asker.expire()
                await lab.finish(row, "complete")
                break
            except DriverUnavailableError:
                pass
            # A failed look may start the watch again, but nobody is ended who should not be.
            found = await lab.watch(asker, alive, seconds=1.5 * LEASE)
            assert [r.id for r in found] == [row.id]
            assert (await alive.beat()).held
            await lab.finish(row, "complete")
            for session in (alive, asker):
                await session.close()
        else:
            raise AssertionError(f"expire makes more than {MOST_CALLS} calls")

    async def test_a_batch_that_was_lost_in_part(self, lab: Lab) -> None:
        # As after a crash in the middle of a batch: some are done, others are not.
        jobs = [lab.job() for _ in range(4)]
        await lab.executor.insert_many(jobs[1:3])
        results = await lab.executor.insert_many(jobs)
        assert [r.status for r in results] == ["INSERTED", "REPLAYED", "REPLAYED", "INSERTED"]
        rows = await (await lab.session()).fetch()
        finishes = [Finish(claim_of(row), "retry", After(5)) for row in rows]
        await lab.executor.finish_many(finishes[1:3])
        outcomes = await lab.executor.finish_many(finishes)
        assert [o.status for o in outcomes] == ["DONE", "ALREADY", "ALREADY", "DONE"]
        assert [row.attempt for row in await lab.rows(*[job.id for job in jobs])] == [1] * 4

    async def test_many_insert_the_same_jobs_at_once(self, lab: Lab) -> None:
        """As schedulers do when several take themselves for the leader."""
        for _ in range(10):
            await _insert_at_once(lab, [lab.job() for _ in range(3)])

    @needs("unique_jobs")
    async def test_many_insert_the_same_unique_jobs_at_once(self, lab: Lab) -> None:
        """The id is looked at before the key also then."""
        for _ in range(10):
            await _insert_at_once(
                lab, [lab.job(unique_key=lab.new_id().bytes * 2) for _ in range(3)]
            )

    async def test_a_replayed_insert_leaves_the_job_as_it_is(self, lab: Lab) -> None:
        first = lab.job(args=b"[1]")
        await lab.insert(first)

        async def replay() -> None:
            before = await lab.row(first.id)
            (result,) = await lab.executor.insert_many([first])
            assert result.status == "REPLAYED"
            assert await lab.row(first.id) == before

        await replay()
        (running,) = await (await lab.session()).fetch()
        await replay()
        await lab.finish(running, "complete")
        await replay()


async def _insert_at_once(lab: Lab, jobs: list[NewJob]) -> None:
    executors = [lab.executor, *[(await lab.another_driver()).executor() for _ in range(3)]]
    answers = await asyncio.gather(*(executor.insert_many(jobs) for executor in executors))
    for results in zip(*answers, strict=True):
        statuses = sorted(result.status for result in results)
        assert statuses == ["INSERTED", "REPLAYED", "REPLAYED", "REPLAYED"]
