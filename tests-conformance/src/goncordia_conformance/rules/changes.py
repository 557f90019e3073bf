"""What an administrator's cancel, retry, reschedule and delete do in each state."""

from __future__ import annotations

from uuid import UUID

import pytest

from goncordia.driver import After, At, Change, ChangeAction, FinishTo, JobState
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, failure, ids

__all__ = ["ChangeTests"]

FINISHED: tuple[FinishTo, ...] = ("complete", "discard", "cancel")
finished = pytest.mark.parametrize("to", FINISHED)


class ChangeTests(Conformance, rule="states"):
    """The table of :meth:`BaseExecutor.change_many`, field by field."""

    # ---------------------------------------------------------------- cancel

    @pytest.mark.parametrize("run_at", [None, After(60)])
    async def test_cancel_of_a_waiting_job(self, lab: Lab, run_at: After | None) -> None:
        job_id = await lab.add(run_at=run_at)
        await lab.advance(1)
        changed = await lab.change(job_id, "cancel")
        assert (changed.status, changed.state) == ("CHANGED", JobState.CANCELLED)
        row = await lab.row(job_id)
        assert (row.state, row.finished_at, row.attempt) == (
            JobState.CANCELLED,
            await lab.now(),
            0,
        )
        await lab.advance(60)
        assert await (await lab.session()).fetch() == []

    async def test_cancel_of_a_running_job_is_a_request(self, lab: Lab) -> None:
        row = await lab.running()
        for _ in range(2):
            changed = await lab.change(row.id, "cancel")
            assert (changed.status, changed.state) == ("REQUESTED", JobState.RUNNING)
        after = await lab.row(row.id)
        assert (after.state, after.claim, after.cancel_requested) == (
            JobState.RUNNING,
            row.claim,
            True,
        )

    async def test_cancel_of_a_cancelled_job_was_so_already(self, lab: Lab) -> None:
        row = await lab.finished("cancel")
        changed = await lab.change(row.id, "cancel")
        assert (changed.status, changed.state) == ("ALREADY", JobState.CANCELLED)
        assert await lab.row(row.id) == row

    @pytest.mark.parametrize("to", ["complete", "discard"])
    async def test_cancel_of_a_job_that_is_over_conflicts(self, lab: Lab, to: FinishTo) -> None:
        row = await lab.finished(to)
        changed = await lab.change(row.id, "cancel")
        assert (changed.status, changed.state) == ("CONFLICT", row.state)
        assert await lab.row(row.id) == row

    # ---------------------------------------------------------------- retry

    async def test_retry_of_a_scheduled_job_makes_it_due(self, lab: Lab) -> None:
        job_id = await lab.add(run_at=After(60))
        await lab.advance(1)
        changed = await lab.change(job_id, "retry")
        assert (changed.status, changed.state) == ("CHANGED", JobState.AVAILABLE)
        assert (await lab.row(job_id)).run_at == await lab.now()
        assert ids(await (await lab.session()).fetch()) == [job_id]

    async def test_retry_of_a_due_job_keeps_its_place(self, lab: Lab) -> None:
        job_id = await lab.add()
        before = await lab.row(job_id)
        await lab.advance(5)
        changed = await lab.change(job_id, "retry")
        assert (changed.status, changed.state) == ("ALREADY", JobState.AVAILABLE)
        assert await lab.row(job_id) == before

    async def test_retry_of_a_running_job_conflicts(self, lab: Lab) -> None:
        row = await lab.running()
        changed = await lab.change(row.id, "retry")
        assert (changed.status, changed.state) == ("CONFLICT", JobState.RUNNING)
        assert await lab.row(row.id) == row

    @finished
    async def test_retry_of_a_finished_job(self, lab: Lab, to: FinishTo) -> None:
        row = await lab.running(max_attempts=9)
        error = failure(1, await lab.now())
        await lab.finish(row, to, error=error, output=b'"x"', checkpoint=b'"y"')
        await lab.advance(5)
        changed = await lab.change(row.id, "retry")
        assert (changed.status, changed.state) == ("CHANGED", JobState.AVAILABLE)
        after = await lab.row(row.id)
        assert (after.state, after.run_at) == (JobState.AVAILABLE, await lab.now())
        assert (after.finished_at, after.output) == (None, None)
        assert (after.errors, after.checkpoint) == ((error,), b'"y"')
        assert (after.attempt, after.max_attempts) == (1, 9)
        assert ids(await (await lab.session()).fetch()) == [row.id]

    @pytest.mark.parametrize(("given", "after"), [(None, None), (1, 3), (2, 3), (3, 3), (4, 4)])
    async def test_retry_leaves_an_attempt(
        self, lab: Lab, given: int | None, after: int | None
    ) -> None:
        session = await lab.session()
        row = await lab.running(session, max_attempts=given)
        await lab.finish(row, "retry")
        (row,) = await session.fetch()
        await lab.finish(row, "discard")
        await lab.change(row.id, "retry")
        found = await lab.row(row.id)
        assert (found.attempt, found.max_attempts) == (2, after)

    async def test_retry_forgets_the_cancel(self, lab: Lab) -> None:
        row = await lab.running()
        await lab.change(row.id, "cancel")
        await lab.finish(row, "retry")
        await lab.change(row.id, "retry")
        (again,) = await (await lab.session()).fetch()
        assert (again.id, again.cancel_requested) == (row.id, False)
        await lab.finish(again, "retry")
        assert await lab.state(row.id) == JobState.AVAILABLE

    async def test_a_retried_job_has_all_its_life_again(self, lab: Lab) -> None:
        row = await lab.finished("discard")
        await lab.change(row.id, "retry")
        await lab.change(row.id, "reschedule", After(10))
        assert await lab.state(row.id) == JobState.RETRYABLE
        await lab.advance(10)
        (again,) = await (await lab.session()).fetch()
        assert (again.id, again.attempt) == (row.id, 2)
        assert (await lab.finish(again, "complete")).status == "DONE"

    # ---------------------------------------------------------------- reschedule

    async def test_reschedule_moves_a_waiting_job(self, lab: Lab) -> None:
        job_id = await lab.add()
        due = await lab.at(40)
        changed = await lab.change(job_id, "reschedule", At(due))
        assert (changed.status, changed.state) == ("CHANGED", JobState.SCHEDULED)
        assert (await lab.row(job_id)).run_at == due
        await lab.advance(5)
        changed = await lab.change(job_id, "reschedule", After(3))
        assert changed.status == "CHANGED"
        assert (await lab.row(job_id)).run_at == await lab.at(3)
        changed = await lab.change(job_id, "reschedule")
        assert (changed.status, changed.state) == ("CHANGED", JobState.AVAILABLE)
        assert (await lab.row(job_id)).run_at == await lab.now()

    async def test_reschedule_to_the_same_time_was_so_already(self, lab: Lab) -> None:
        due = At(await lab.at(40))
        job_id = await lab.add(run_at=due)
        changed = await lab.change(job_id, "reschedule", due)
        assert (changed.status, changed.state) == ("ALREADY", JobState.SCHEDULED)

    async def test_reschedule_of_a_running_job_conflicts(self, lab: Lab) -> None:
        row = await lab.running()
        changed = await lab.change(row.id, "reschedule", After(5))
        assert (changed.status, changed.state) == ("CONFLICT", JobState.RUNNING)
        assert await lab.row(row.id) == row

    @finished
    async def test_reschedule_of_a_finished_job_conflicts(self, lab: Lab, to: FinishTo) -> None:
        row = await lab.finished(to)
        changed = await lab.change(row.id, "reschedule", After(5))
        assert (changed.status, changed.state) == ("CONFLICT", row.state)
        assert await lab.row(row.id) == row

    # ---------------------------------------------------------------- delete

    async def test_delete_of_a_waiting_job(self, lab: Lab) -> None:
        due, later = await lab.add(), await lab.add(run_at=After(5))
        for job_id in (due, later):
            assert (await lab.change(job_id, "delete")).status == "CHANGED"
        assert await lab.executor.get_many([due, later]) == [None, None]
        await lab.advance(5)
        assert await (await lab.session()).fetch() == []

    async def test_delete_of_a_running_job_conflicts(self, lab: Lab) -> None:
        row = await lab.running()
        changed = await lab.change(row.id, "delete")
        assert (changed.status, changed.state) == ("CONFLICT", JobState.RUNNING)
        assert await lab.row(row.id) == row

    @finished
    async def test_delete_of_a_finished_job(self, lab: Lab, to: FinishTo) -> None:
        row = await lab.finished(to)
        assert (await lab.change(row.id, "delete")).status == "CHANGED"
        assert await lab.executor.get_many([row.id]) == [None]

    # ---------------------------------------------------------------- all of them

    @pytest.mark.parametrize("action", ["cancel", "retry", "reschedule", "delete"])
    async def test_what_is_not_there_is_gone(self, lab: Lab, action: ChangeAction) -> None:
        assert (await lab.change(lab.new_id(), action)).status == "GONE"

    async def test_each_change_stands_for_itself(self, lab: Lab) -> None:
        waiting = await lab.add(queue="other")
        running = (await lab.running()).id
        done = (await lab.finished()).id
        gone = lab.new_id()
        order: list[UUID] = [done, gone, running, waiting]
        answers = await lab.executor.change_many([Change(job_id, "cancel") for job_id in order])
        assert [a.status for a in answers] == ["CONFLICT", "GONE", "REQUESTED", "CHANGED"]
        answers = await lab.executor.change_many([Change(job_id, "delete") for job_id in order])
        assert [a.status for a in answers] == ["CHANGED", "GONE", "CONFLICT", "CHANGED"]
