"""Ending claims: fencing, what each end does, replays, and marks."""

from __future__ import annotations

from uuid import uuid4

import pytest

from goncordia.driver import (
    MAX_ERRORS,
    After,
    At,
    Claim,
    Finish,
    FinishTo,
    JobState,
    Mark,
    Outcome,
    When,
)

from .box import START, Box, failure, seconds

DONE_AVAILABLE = Outcome("DONE", JobState.AVAILABLE)


@pytest.fixture
def box() -> Box:
    return Box()


# -------------------------------------------------------------------- what each end does


@pytest.mark.parametrize(
    ("to", "state"),
    [
        ("complete", JobState.COMPLETED),
        ("discard", JobState.DISCARDED),
        ("cancel", JobState.CANCELLED),
    ],
)
def test_a_final_end(box: Box, to: FinishTo, state: JobState) -> None:
    job_id = box.insert()
    claim = box.claim()
    box.tick(1)
    assert box.finish(claim, to, output=b"7") == Outcome("DONE", state)
    row = box.row(job_id)
    assert (row.state, row.attempt, row.claim) == (state, 1, None)
    assert row.finished_at == START + seconds(1)
    assert (row.worker_id, row.claimed_at) == ("worker", START)
    assert row.output == (b"7" if to == "complete" else None)
    assert box.fetched() == []


@pytest.mark.parametrize(
    ("to", "when", "attempt", "run_at"),
    [
        ("retry", None, 1, START + seconds(7)),
        ("retry", After(5), 1, START + seconds(12)),
        ("retry", At(START + seconds(60)), 1, START + seconds(60)),
        ("snooze", None, 0, START + seconds(7)),
        ("snooze", After(5), 0, START + seconds(12)),
        ("release", None, 0, START + seconds(2)),
        ("release", After(5), 0, START + seconds(12)),
    ],
)
def test_an_end_after_which_it_waits(
    box: Box, to: FinishTo, when: When, attempt: int, run_at: object
) -> None:
    job_id = box.insert(run_at=After(2))
    box.tick(3)
    claim = box.claim()
    box.tick(4)
    outcome = box.finish(claim, to, when)
    row = box.row(job_id)
    assert (row.attempt, row.run_at, row.claim, row.finished_at) == (attempt, run_at, None, None)
    later = JobState.RETRYABLE if to == "retry" else JobState.SCHEDULED
    due = row.run_at <= box.now
    assert row.state is (JobState.AVAILABLE if due else later)
    assert outcome == Outcome("DONE", row.state)


def test_a_waiting_job_is_retryable_only_while_its_last_claim_failed(box: Box) -> None:
    job_id = box.insert()
    box.finish(box.claim(), "retry", After(5))
    assert box.row(job_id).state is JobState.RETRYABLE
    box.tick(5)
    assert box.row(job_id).state is JobState.AVAILABLE
    box.finish(box.claim(), "snooze", After(5))
    assert box.row(job_id).state is JobState.SCHEDULED


def test_a_released_job_keeps_its_place_in_the_order(box: Box) -> None:
    first, second = box.insert(), box.insert()
    claim = box.claim()
    box.tick(9)
    assert box.finish(claim, "release") == DONE_AVAILABLE
    assert box.fetched() == [first, second]


def test_errors_are_kept_the_newest_twenty_oldest_first(box: Box) -> None:
    job_id = box.insert()
    for number in range(1, MAX_ERRORS + 4):
        box.finish(box.claim(), "retry", error=failure(number))
    assert box.row(job_id).errors == tuple(failure(n) for n in range(4, MAX_ERRORS + 4))


@pytest.mark.parametrize("to", ["complete", "retry", "snooze", "release", "discard", "cancel"])
def test_an_error_is_kept_by_every_end_that_gives_one(box: Box, to: FinishTo) -> None:
    job_id = box.insert()
    box.finish(box.claim(), to, error=failure(1))
    assert box.row(job_id).errors == (failure(1),)


def test_a_checkpoint_stays_until_another_replaces_it(box: Box) -> None:
    job_id = box.insert()
    box.finish(box.claim(), "retry", checkpoint=b"1")
    box.finish(box.claim(), "retry")
    assert box.row(job_id).checkpoint == b"1"
    box.finish(box.claim(), "complete", checkpoint=b"2")
    assert box.row(job_id).checkpoint == b"2"


@pytest.mark.parametrize(
    ("to", "attempt"), [("retry", 1), ("snooze", 0), ("release", 0), ("cancel", 1)]
)
def test_a_requested_cancel_ends_what_would_wait(box: Box, to: FinishTo, attempt: int) -> None:
    job_id = box.insert()
    claim = box.claim()
    box.change(job_id, "cancel")
    assert box.finish(claim, to, After(5)) == Outcome("DONE", JobState.CANCELLED)
    row = box.row(job_id)
    assert (row.state, row.attempt, row.finished_at) == (JobState.CANCELLED, attempt, START)


@pytest.mark.parametrize(
    ("to", "state"), [("complete", JobState.COMPLETED), ("discard", JobState.DISCARDED)]
)
def test_complete_and_discard_win_over_a_requested_cancel(
    box: Box, to: FinishTo, state: JobState
) -> None:
    job_id = box.insert()
    claim = box.claim()
    box.change(job_id, "cancel")
    assert box.finish(claim, to).state is state


# -------------------------------------------------------------------- rule 3: fencing


def test_another_session_or_fetch_is_stale_and_changes_nothing(box: Box) -> None:
    job_id = box.insert()
    claim = box.claim()
    before = box.row(job_id)
    for stranger in (
        Claim(job_id, uuid4(), claim.fetch_no),
        Claim(job_id, claim.session, claim.fetch_no + 1),
    ):
        assert box.finish(stranger, "complete") == Outcome("STALE", JobState.RUNNING)
        assert box.mark(stranger, checkpoint=b"1") == Outcome("STALE", JobState.RUNNING)
    assert box.row(job_id) == before


def test_a_claim_is_compared_by_value_whatever_the_ref(box: Box) -> None:
    job_id = box.insert()
    claim = box.claim()
    copy = Claim(job_id, claim.session, claim.fetch_no, ref=b"other")
    assert box.finish(copy, "complete").status == "DONE"


def test_an_unknown_job_is_gone(box: Box) -> None:
    claim = Claim(uuid4(), box.session, 1)
    assert box.finish(claim, "complete") == Outcome("GONE")
    assert box.mark(claim) == Outcome("GONE")


def test_a_waiting_job_that_was_never_claimed_is_stale(box: Box) -> None:
    job_id = box.insert()
    claim = Claim(job_id, box.session, 1)
    assert box.finish(claim, "complete") == Outcome("STALE", JobState.AVAILABLE)


# -------------------------------------------------------------------- rule 9: replay


@pytest.mark.parametrize("to", ["complete", "retry", "snooze", "release", "discard", "cancel"])
def test_a_repeated_finish_is_already_done_and_changes_nothing(box: Box, to: FinishTo) -> None:
    job_id = box.insert()
    claim = box.claim()
    state = box.finish(claim, to, After(5), error=failure(1)).state
    before = box.row(job_id)
    box.tick(1)
    assert box.finish(claim, to, After(5), error=failure(1)) == Outcome("ALREADY", state)
    assert box.row(job_id) == before


def test_already_also_while_the_job_runs_again_and_stale_after_a_later_end(box: Box) -> None:
    box.insert()
    first = box.claim()
    box.finish(first, "retry")
    second = box.claim()
    assert box.finish(first, "retry") == Outcome("ALREADY", JobState.RUNNING)
    box.finish(second, "retry")
    assert box.finish(second, "retry") == Outcome("ALREADY", JobState.AVAILABLE)
    assert box.finish(first, "retry") == Outcome("STALE", JobState.AVAILABLE)


def test_twice_in_one_batch(box: Box) -> None:
    box.insert()
    claim = box.claim()
    finishes = [Finish(claim, "complete"), Finish(claim, "discard")]
    assert box.store.finish_many(finishes, box.now) == [
        Outcome("DONE", JobState.COMPLETED),
        Outcome("ALREADY", JobState.COMPLETED),
    ]


# -------------------------------------------------------------------- marks and rescue


def test_a_mark_notes_the_start_and_the_checkpoint(box: Box) -> None:
    job_id = box.insert()
    claim = box.claim()
    assert box.row(job_id).started is False
    assert box.mark(claim) == Outcome("DONE", JobState.RUNNING)
    assert (box.row(job_id).started, box.row(job_id).checkpoint) == (True, None)
    box.store.mark_many([Mark(claim, checkpoint=b"5")], box.now)
    assert (box.row(job_id).started, box.row(job_id).checkpoint) == (True, b"5")


def test_the_claim_clears_the_mark_of_the_claim_before(box: Box) -> None:
    job_id = box.insert()
    claim = box.claim()
    box.mark(claim)
    box.finish(claim, "retry")
    second = box.claim()
    assert box.row(job_id).started is False
    assert box.mark(claim) == Outcome("STALE", JobState.RUNNING), "an ended claim is stale"
    assert box.row(job_id).started is False
    assert box.mark(second).status == "DONE"


def test_a_rescuing_release_applies_only_while_the_job_is_not_started(box: Box) -> None:
    job_id = box.insert()
    claim = box.claim()
    box.mark(claim)
    assert box.finish(claim, "release", rescue=True) == Outcome("STALE", JobState.RUNNING)
    assert box.row(job_id).claim == claim
    assert box.finish(claim, "retry", rescue=True) == DONE_AVAILABLE
    again = box.claim()
    assert box.finish(again, "release", rescue=True) == DONE_AVAILABLE
    assert box.row(job_id).attempt == 1


def test_the_owner_may_release_what_has_started(box: Box) -> None:
    box.insert()
    claim = box.claim()
    box.mark(claim)
    assert box.finish(claim, "release") == DONE_AVAILABLE
