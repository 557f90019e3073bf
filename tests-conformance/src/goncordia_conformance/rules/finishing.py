"""What each way to finish a claim does to the row: states, attempts, errors, results."""

from __future__ import annotations

from datetime import timedelta

import pytest

from goncordia.driver import MAX_ERRORS, After, At, FinishTo, JobState, Mark, When
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, claim_of, failure
from goncordia_conformance.marks import needs

__all__ = ["FinishingTests"]

END_STATES: dict[FinishTo, JobState] = {
    "complete": JobState.COMPLETED,
    "discard": JobState.DISCARDED,
    "cancel": JobState.CANCELLED,
}
GIVE_BACK: tuple[FinishTo, ...] = ("retry", "snooze", "release")
LATER_STATES: dict[FinishTo, JobState] = {
    "retry": JobState.RETRYABLE,
    "snooze": JobState.SCHEDULED,
    "release": JobState.SCHEDULED,
}

to_the_end = pytest.mark.parametrize("to", END_STATES)
back = pytest.mark.parametrize("to", GIVE_BACK)


class FinishingTests(Conformance, rule="states"):
    """``Finish.to``, ``when``, ``error``, ``output``, ``checkpoint`` and ``rescue``."""

    @to_the_end
    async def test_ends(self, lab: Lab, to: FinishTo) -> None:
        row = await lab.running()
        await lab.advance(3)
        outcome = await lab.finish(row, to)
        assert (outcome.status, outcome.state) == ("DONE", END_STATES[to])
        after = await lab.row(row.id)
        assert (after.state, after.claim) == (END_STATES[to], None)
        assert after.finished_at == await lab.now()
        assert (after.attempt, after.run_at) == (1, row.run_at)
        assert (after.worker_id, after.claimed_at) == (row.worker_id, row.claimed_at)

    @back
    async def test_gives_back_at_once(self, lab: Lab, to: FinishTo) -> None:
        row = await lab.running()
        await lab.advance(3)
        outcome = await lab.finish(row, to)
        assert (outcome.status, outcome.state) == ("DONE", JobState.AVAILABLE)
        after = await lab.row(row.id)
        assert (after.state, after.claim, after.finished_at) == (JobState.AVAILABLE, None, None)
        assert after.run_at == (row.run_at if to == "release" else await lab.now())
        assert (after.worker_id, after.claimed_at) == (row.worker_id, row.claimed_at)

    @back
    @pytest.mark.parametrize("by", ["after", "at"])
    async def test_gives_back_for_later(self, lab: Lab, to: FinishTo, by: str) -> None:
        row = await lab.running()
        await lab.advance(3)
        due = await lab.at(7)
        when: When = After(7) if by == "after" else At(due)
        outcome = await lab.finish(row, to, when=when)
        assert (outcome.status, outcome.state) == ("DONE", LATER_STATES[to])
        after = await lab.row(row.id)
        assert (after.state, after.run_at) == (LATER_STATES[to], due)
        await lab.advance(7)
        assert await lab.state(row.id) == JobState.AVAILABLE

    @pytest.mark.parametrize("rescue", [False, True])
    @pytest.mark.parametrize(
        ("to", "left"), [("retry", 1), ("discard", 1), ("snooze", 0), ("release", 0)]
    )
    async def test_attempts(self, lab: Lab, to: FinishTo, left: int, rescue: bool) -> None:
        row = await lab.running()
        assert row.attempt == 1
        await lab.finish(row, to, rescue=rescue)
        assert (await lab.row(row.id)).attempt == left

    async def test_attempts_add_up(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        attempts = [row.attempt]
        ends: tuple[FinishTo, ...] = ("retry", "snooze", "retry", "release", "retry")
        for to in ends:
            await lab.finish(row, to)
            (row,) = await session.fetch()
            attempts.append(row.attempt)
        assert attempts == [1, 2, 2, 3, 3, 4]

    @needs("marks")
    @back
    @pytest.mark.parametrize("started", [False, True])
    async def test_only_the_rescue_of_a_started_release_is_stale(
        self, lab: Lab, to: FinishTo, started: bool
    ) -> None:
        row = await lab.running()
        if started:
            await lab.executor.mark_many([Mark(claim_of(row), started=True)])
        before = await lab.row(row.id)
        outcome = await lab.finish(row, to, rescue=True)
        if started and to == "release":
            assert (outcome.status, outcome.state) == ("STALE", JobState.RUNNING)
            assert await lab.row(row.id) == before
            outcome = await lab.finish(row, to)  # the owner itself may give it back
        assert outcome.status == "DONE"
        assert await lab.state(row.id) == JobState.AVAILABLE

    # ---------------------------------------------------------------- what is stored

    @pytest.mark.parametrize("to", ["retry", "discard", "cancel", "snooze", "release"])
    async def test_only_complete_stores_an_output(self, lab: Lab, to: FinishTo) -> None:
        row = await lab.running()
        await lab.finish(row, to, output=b'"x"')
        assert (await lab.row(row.id)).output is None

    async def test_complete_stores_its_output(self, lab: Lab) -> None:
        row = await lab.running()
        await lab.finish(row, "complete", output=b'{"sum":3}')
        assert (await lab.row(row.id)).output == b'{"sum":3}'

    async def test_checkpoint_is_replaced_when_there_is_one(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        kept: list[bytes | None] = []
        for checkpoint in (b"1", None, b'"two"'):
            await lab.finish(row, "retry", checkpoint=checkpoint)
            (row,) = await session.fetch()
            kept.append(row.checkpoint)
        assert kept == [b"1", b"1", b'"two"']
        await lab.finish(row, "complete", checkpoint=b"3")
        assert (await lab.row(row.id)).checkpoint == b"3"

    @pytest.mark.parametrize("to", [*END_STATES, *GIVE_BACK])
    async def test_every_finish_may_add_an_error(self, lab: Lab, to: FinishTo) -> None:
        row = await lab.running()
        error = failure(1, await lab.now())
        await lab.finish(row, to, error=error)
        assert (await lab.row(row.id)).errors == (error,)

    async def test_the_newest_errors_are_kept(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        now = await lab.now()
        errors = [failure(n, now + timedelta(seconds=n), f"no. {n}") for n in range(MAX_ERRORS + 3)]
        for error in errors:
            await lab.finish(row, "retry", error=error)
            (row,) = await session.fetch()
        assert row.errors == tuple(errors[-MAX_ERRORS:])

    @pytest.mark.parametrize(
        ("to", "state"),
        [("retry", JobState.RETRYABLE), ("snooze", JobState.SCHEDULED)],
    )
    async def test_waiting_state_follows_the_last_claim(
        self, lab: Lab, to: FinishTo, state: JobState
    ) -> None:
        session = await lab.session()
        row = await lab.running(session)
        other: FinishTo = "snooze" if to == "retry" else "retry"
        await lab.finish(row, other)
        (row,) = await session.fetch()
        await lab.finish(row, to, when=After(10))
        assert await lab.state(row.id) == state

    # ---------------------------------------------------------------- with a cancel requested

    @pytest.mark.parametrize("rescue", [False, True])
    @pytest.mark.parametrize("to", ["complete", "discard"])
    async def test_complete_and_discard_win_over_a_cancel(
        self, lab: Lab, to: FinishTo, rescue: bool
    ) -> None:
        row = await lab.running()
        await lab.change(row.id, "cancel")
        outcome = await lab.finish(row, to, output=b"1", rescue=rescue)
        assert (outcome.status, outcome.state) == ("DONE", END_STATES[to])
        assert await lab.state(row.id) == END_STATES[to]

    @pytest.mark.parametrize("rescue", [False, True])
    @back
    async def test_the_others_end_cancelled(self, lab: Lab, to: FinishTo, rescue: bool) -> None:
        row = await lab.running()
        await lab.change(row.id, "cancel")
        outcome = await lab.finish(row, to, when=After(9), rescue=rescue)
        assert (outcome.status, outcome.state) == ("DONE", JobState.CANCELLED)
        after = await lab.row(row.id)
        assert (after.state, after.finished_at) == (JobState.CANCELLED, await lab.now())
        assert await (await lab.session()).fetch() == []
