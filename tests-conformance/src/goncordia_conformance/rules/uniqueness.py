"""Rule 6: at most one job holds a unique key, by a constraint and not by a look first."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from uuid import UUID

import pytest

from goncordia.driver import (
    After,
    At,
    Change,
    FinishTo,
    InsertResult,
    JobState,
    ListFilter,
    NewJob,
    PruneRequest,
)
from goncordia.errors import UnsupportedError
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, ids, in_threads
from goncordia_conformance.marks import lacks, needs, rule

__all__ = ["UniquenessTests"]

KEY = bytes(range(32))
OTHER_KEY = bytes(32)


async def _try(lab: Lab, job: NewJob) -> InsertResult:
    (result,) = await lab.executor.insert_many([job])
    return result


async def _is_held(lab: Lab, by: UUID | None) -> None:
    """The key is held by this job; None: it is free, and is free again afterwards."""
    job = lab.job(unique_key=KEY)
    result = await _try(lab, job)
    if by is None:
        assert result == InsertResult(job.id, "INSERTED")
        await lab.change(job.id, "delete")
    else:
        assert result == InsertResult(job.id, "DUPLICATE", by)
        assert await lab.executor.get_many([job.id]) == [None]


class UniquenessTests(Conformance, rule=6):
    """While a job holds its key, every other insert of it is answered ``DUPLICATE``."""

    @lacks("unique_jobs")
    @rule(6, 14)
    async def test_without_the_capability_a_key_is_refused(self, lab: Lab) -> None:
        with pytest.raises(UnsupportedError, match="unique_jobs"):
            await lab.executor.insert_many([lab.job(), lab.job(unique_key=KEY)])
        assert await lab.executor.count(ListFilter()) == 0

    @needs("unique_jobs")
    async def test_held_while_it_waits_or_runs(self, lab: Lab) -> None:
        job_id = await lab.add(unique_key=KEY, run_at=After(5))
        await _is_held(lab, by=job_id)
        await lab.advance(5)
        await _is_held(lab, by=job_id)
        session = await lab.session()
        (row,) = await session.fetch()
        await _is_held(lab, by=job_id)
        await lab.finish(row, "retry", when=After(5))
        await _is_held(lab, by=job_id)

    @needs("unique_jobs")
    @pytest.mark.parametrize("to", ["complete", "discard", "cancel"])
    async def test_free_when_it_is_finished(self, lab: Lab, to: FinishTo) -> None:
        await lab.finished(to, unique_key=KEY)
        await _is_held(lab, by=None)

    @needs("unique_jobs")
    @pytest.mark.parametrize("action", ["cancel", "delete"])
    async def test_free_when_it_is_taken_away(self, lab: Lab, action: str) -> None:
        job_id = await lab.add(unique_key=KEY)
        await lab.change(job_id, "cancel" if action == "cancel" else "delete")
        await _is_held(lab, by=None)

    @needs("unique_jobs")
    async def test_other_keys_and_no_key_are_free(self, lab: Lab) -> None:
        await lab.add(unique_key=KEY)
        for job in (lab.job(unique_key=OTHER_KEY), lab.job(), lab.job()):
            assert (await _try(lab, job)).status == "INSERTED"

    @needs("unique_jobs")
    async def test_the_key_alone_counts(self, lab: Lab) -> None:
        job_id = await lab.add(unique_key=KEY)
        job = lab.job("other", unique_key=KEY, queue="other", args=b"[1]", priority=3)
        assert await _try(lab, job) == InsertResult(job.id, "DUPLICATE", job_id)

    @needs("unique_jobs")
    async def test_within_a_batch_the_first_wins(self, lab: Lab) -> None:
        jobs = [lab.job(unique_key=key) for key in (KEY, OTHER_KEY, KEY, None, KEY)]
        results = await lab.executor.insert_many(jobs)
        duplicate = [jobs[0].id if n in {2, 4} else None for n in range(5)]
        assert [r.holder for r in results] == duplicate
        assert [r.status for r in results] == [
            "DUPLICATE" if holder else "INSERTED" for holder in duplicate
        ]

    @needs("unique_jobs")
    async def test_a_duplicate_leaves_the_holder_as_it_is(self, lab: Lab) -> None:
        job_id = await lab.add(unique_key=KEY, args=b"[1]", run_at=After(30))
        before = await lab.row(job_id)
        await _try(lab, lab.job(unique_key=KEY, args=b"[2]", priority=9))
        assert await lab.row(job_id) == before

    @needs("unique_jobs")
    @rule(6, 9)
    async def test_the_id_is_looked_at_before_the_key(self, lab: Lab) -> None:
        first = lab.job(unique_key=KEY)
        assert (await _try(lab, first)).status == "INSERTED"
        assert await _try(lab, first) == InsertResult(first.id, "REPLAYED")
        await lab.change(first.id, "cancel")
        second = await lab.add(unique_key=KEY)
        assert await _try(lab, first) == InsertResult(first.id, "REPLAYED")
        await _is_held(lab, by=second)

    # ---------------------------------------------------------------- held longer

    @needs("unique_jobs")
    async def test_held_until_it_is_deleted(self, lab: Lab) -> None:
        row = await lab.finished(unique_key=KEY, unique_hold="until_deleted")
        await _is_held(lab, by=row.id)
        await lab.advance(1)
        pruned = await lab.executor.prune(PruneRequest(completed=await lab.now()))
        assert pruned == 0, "prune leaves a job that holds its key"
        await _is_held(lab, by=row.id)
        await lab.change(row.id, "delete")
        await _is_held(lab, by=None)

    @needs("unique_jobs")
    async def test_held_until_a_time(self, lab: Lab) -> None:
        until = At(await lab.at(20))
        row = await lab.finished(unique_key=KEY, unique_hold=until)
        assert row.unique_hold == until
        await lab.advance(19.999)
        await _is_held(lab, by=row.id)
        assert await lab.executor.prune(PruneRequest(completed=await lab.now())) == 0
        await lab.advance(0.001)
        await _is_held(lab, by=None)
        assert await lab.executor.prune(PruneRequest(completed=await lab.now())) == 1

    @needs("unique_jobs")
    async def test_after_that_time_the_next_takes_over(self, lab: Lab) -> None:
        # It still waits: its key is free all the same.
        old = await lab.add(unique_key=KEY, unique_hold=At(await lab.at(20)), run_at=After(60))
        await lab.advance(20)
        new = await lab.add(unique_key=KEY)
        await _is_held(lab, by=new)
        await lab.change(old, "delete")
        await _is_held(lab, by=new)

    @needs("unique_jobs")
    async def test_a_hold_that_was_over_at_once_holds_nothing(self, lab: Lab) -> None:
        past = At(await lab.at(-1))
        await lab.add(unique_key=KEY, unique_hold=past)
        await lab.add(unique_key=KEY, unique_hold=past)

    @needs("unique_jobs")
    async def test_deleting_frees_a_key_that_is_held_until_a_time(self, lab: Lab) -> None:
        row = await lab.finished(unique_key=KEY, unique_hold=At(await lab.at(20)))
        await lab.change(row.id, "delete")
        await _is_held(lab, by=None)

    # ---------------------------------------------------------------- back from the finished

    @needs("unique_jobs")
    async def test_a_retried_job_holds_its_key_again(self, lab: Lab) -> None:
        row = await lab.finished("discard", unique_key=KEY)
        assert (await lab.change(row.id, "retry")).status == "CHANGED"
        await _is_held(lab, by=row.id)

    @needs("unique_jobs")
    async def test_a_retry_meets_the_constraint(self, lab: Lab) -> None:
        old = await lab.finished("discard", unique_key=KEY)
        new = await lab.add(unique_key=KEY, run_at=After(60))
        changed = await lab.change(old.id, "retry")
        assert (changed.status, changed.state, changed.holder) == (
            "CONFLICT",
            JobState.DISCARDED,
            new,
        )
        assert await lab.row(old.id) == old
        await lab.change(new, "delete")
        assert (await lab.change(old.id, "retry")).status == "CHANGED"

    @needs("unique_jobs")
    async def test_a_conflict_is_for_that_job_alone(self, lab: Lab) -> None:
        other = await lab.finished("discard")
        old = await lab.finished("discard", unique_key=KEY)
        older = await lab.finished("discard", unique_key=OTHER_KEY)
        new = await lab.add(unique_key=KEY, run_at=After(60))
        order = [other.id, old.id, older.id]
        answers = await lab.executor.change_many([Change(job_id, "retry") for job_id in order])
        assert [a.status for a in answers] == ["CHANGED", "CONFLICT", "CHANGED"]
        assert [a.holder for a in answers] == [None, new, None]

    @needs("unique_jobs")
    async def test_two_retries_of_one_key_in_a_batch(self, lab: Lab) -> None:
        rows = [await lab.finished("discard", unique_key=KEY) for _ in range(2)]
        answers = await lab.executor.change_many([Change(row.id, "retry") for row in rows])
        assert [a.status for a in answers] == ["CHANGED", "CONFLICT"]
        assert answers[1].holder == rows[0].id

    @needs("unique_jobs")
    async def test_a_retry_after_the_hold_needs_no_key(self, lab: Lab) -> None:
        old = await lab.finished("discard", unique_key=KEY, unique_hold=At(await lab.at(20)))
        await lab.advance(20)
        new = await lab.add(unique_key=KEY, run_at=After(60))
        assert (await lab.change(old.id, "retry")).status == "CHANGED"
        await _is_held(lab, by=new)
        assert ids(await (await lab.session()).fetch()) == [old.id]

    @needs("unique_jobs")
    async def test_a_retry_within_its_own_hold_is_no_conflict(self, lab: Lab) -> None:
        held = [
            await lab.finished("discard", unique_key=KEY, unique_hold=At(await lab.at(20))),
            await lab.finished("discard", unique_key=OTHER_KEY, unique_hold="until_deleted"),
        ]
        for row in held:
            assert (await lab.change(row.id, "retry")).status == "CHANGED"
        await _is_held(lab, by=held[0].id)

    # ---------------------------------------------------------------- under concurrency

    @needs("unique_jobs")
    async def test_many_tasks_insert_one_job(self, lab: Lab) -> None:
        executors = [lab.executor, *[(await lab.another_driver()).executor() for _ in range(3)]]
        for _ in range(10):
            jobs = [lab.job(unique_key=KEY) for _ in range(8)]
            answers = await asyncio.gather(
                *(executors[n % 4].insert_many([job]) for n, job in enumerate(jobs))
            )
            results = [result for (result,) in answers]
            assert Counter(r.status for r in results) == {"INSERTED": 1, "DUPLICATE": 7}
            (winner,) = [r.id for r in results if r.status == "INSERTED"]
            assert {r.holder for r in results if r.status == "DUPLICATE"} == {winner}
            await lab.change(winner, "delete")

    @needs("unique_jobs")
    async def test_many_batches_in_any_order_do_not_lock_up(self, lab: Lab) -> None:
        keys = [bytes([n]) * 32 for n in range(20)]
        executors = [lab.executor, *[(await lab.another_driver()).executor() for _ in range(3)]]
        batches = [[lab.job(unique_key=key) for key in keys[::step]] for step in (1, -1, 3, -2)]
        answers = await asyncio.gather(
            *(
                executor.insert_many(batch)
                for executor, batch in zip(executors, batches, strict=True)
            )
        )
        inserted = [r for results in answers for r in results if r.status == "INSERTED"]
        assert len(inserted) == len(keys)

    @needs("unique_jobs")
    async def test_many_threads_insert_one_job(self, live_lab: Lab) -> None:
        jobs = [live_lab.job(unique_key=KEY) for _ in range(8)]
        executor = live_lab.sync_executor()
        results = [
            result
            for results in await in_threads([partial(executor.insert_many, [job]) for job in jobs])
            for result in results
        ]
        assert Counter(r.status for r in results) == {"INSERTED": 1, "DUPLICATE": 7}
