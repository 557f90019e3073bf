"""The table of changes, cell by cell."""

from __future__ import annotations

from uuid import uuid4

import pytest

from goncordia.driver import (
    After,
    At,
    Change,
    ChangeAction,
    Changed,
    ChangeStatus,
    FinishTo,
    JobState,
)

from .box import START, Box, failure, seconds

KEY = b"k" * 32
FINISHED: list[tuple[FinishTo, JobState]] = [
    ("complete", JobState.COMPLETED),
    ("discard", JobState.DISCARDED),
    ("cancel", JobState.CANCELLED),
]


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.mark.parametrize("action", ["cancel", "retry", "reschedule", "delete"])
def test_an_unknown_job_is_gone(box: Box, action: ChangeAction) -> None:
    assert box.change(uuid4(), action) == Changed("GONE")


# -------------------------------------------------------------------- cancel


def test_cancel_of_a_waiting_job(box: Box) -> None:
    job_id = box.insert(run_at=After(60))
    box.tick(1)
    assert box.change(job_id, "cancel") == Changed("CHANGED", JobState.CANCELLED)
    row = box.row(job_id)
    assert (row.state, row.finished_at) == (JobState.CANCELLED, START + seconds(1))
    assert row.cancel_requested is False
    box.tick(60)
    assert box.fetched() == []
    assert box.change(job_id, "cancel") == Changed("ALREADY", JobState.CANCELLED)


def test_cancel_of_a_running_job_is_a_request_each_time(box: Box) -> None:
    job_id = box.insert()
    claim = box.claim()
    for _ in range(2):
        assert box.change(job_id, "cancel") == Changed("REQUESTED", JobState.RUNNING)
    row = box.row(job_id)
    assert (row.state, row.cancel_requested, row.claim) == (JobState.RUNNING, True, claim)


@pytest.mark.parametrize(("to", "state"), FINISHED)
def test_cancel_of_a_finished_job(box: Box, to: FinishTo, state: JobState) -> None:
    job_id = box.insert()
    box.finish(box.claim(), to)
    status: ChangeStatus = "ALREADY" if to == "cancel" else "CONFLICT"
    assert box.change(job_id, "cancel") == Changed(status, state)


# -------------------------------------------------------------------- retry


def test_retry_of_a_job_due_later_makes_it_due_now(box: Box) -> None:
    job_id = box.insert(run_at=After(60))
    box.tick(1)
    assert box.change(job_id, "retry") == Changed("CHANGED", JobState.AVAILABLE)
    assert box.row(job_id).run_at == START + seconds(1)
    assert box.fetched() == [job_id]


def test_retry_of_a_due_job_keeps_its_place(box: Box) -> None:
    first, second = box.insert(), box.insert()
    box.tick(1)
    assert box.change(first, "retry") == Changed("ALREADY", JobState.AVAILABLE)
    assert box.fetched() == [first, second]


def test_retry_of_a_running_job_conflicts(box: Box) -> None:
    job_id = box.insert()
    claim = box.claim()
    assert box.change(job_id, "retry") == Changed("CONFLICT", JobState.RUNNING)
    assert box.row(job_id).claim == claim


@pytest.mark.parametrize(("to", "_state"), FINISHED)
def test_retry_of_a_finished_job(box: Box, to: FinishTo, _state: JobState) -> None:
    job_id = box.insert(max_attempts=1)
    claim = box.claim()
    box.mark(claim)
    box.change(job_id, "cancel")
    box.finish(claim, to, output=b"1", checkpoint=b"2", error=failure(1))
    box.tick(9)
    assert box.change(job_id, "retry") == Changed("CHANGED", JobState.AVAILABLE)
    row = box.row(job_id)
    assert (row.run_at, row.finished_at, row.output) == (START + seconds(9), None, None)
    assert (row.cancel_requested, row.started, row.claim) == (False, False, None)
    assert (row.attempt, row.max_attempts) == (1, 2)
    assert (row.errors, row.checkpoint) == ((failure(1),), b"2")
    assert box.finish(claim, to).status == "ALREADY", "the last ended claim is still known"
    assert box.fetched() == [job_id]
    assert box.row(job_id).attempt == 2


@pytest.mark.parametrize(("given", "kept"), [(None, None), (1, 3), (2, 3), (3, 3), (9, 9)])
def test_retry_raises_max_attempts_no_more_than_it_must(
    box: Box, given: int | None, kept: int | None
) -> None:
    job_id = box.insert(max_attempts=given)
    box.finish(box.claim(), "retry")
    box.finish(box.claim(), "discard")
    box.change(job_id, "retry")
    assert (box.row(job_id).attempt, box.row(job_id).max_attempts) == (2, kept)


def test_retry_conflicts_with_the_holder_of_its_key(box: Box) -> None:
    old = box.insert(unique_key=KEY)
    box.finish(box.claim(), "discard")
    new = box.insert(unique_key=KEY)
    assert box.change(old, "retry") == Changed("CONFLICT", JobState.DISCARDED, new)
    assert box.row(old).state is JobState.DISCARDED
    box.finish(box.claim(), "complete")
    assert box.change(old, "retry") == Changed("CHANGED", JobState.AVAILABLE)
    duplicate = box.put(box.job(unique_key=KEY))
    assert (duplicate.status, duplicate.holder) == ("DUPLICATE", old), "it holds its key again"


def test_two_retries_in_one_batch_for_one_key(box: Box) -> None:
    jobs = []
    for _ in range(2):
        jobs.append(box.insert(unique_key=KEY))
        box.finish(box.claim(), "discard")
    changes = [Change(job_id, "retry") for job_id in jobs]
    assert box.store.change_many(changes, box.now) == [
        Changed("CHANGED", JobState.AVAILABLE),
        Changed("CONFLICT", JobState.DISCARDED, jobs[0]),
    ]


def test_retry_conflicts_with_a_holder_whose_key_is_kept_until_deleted(box: Box) -> None:
    old = box.insert(unique_key=KEY)
    box.finish(box.claim(), "discard")
    new = box.insert(unique_key=KEY, unique_hold="until_deleted")
    box.finish(box.claim(), "complete")
    assert box.change(old, "retry") == Changed("CONFLICT", JobState.DISCARDED, new)


def test_a_job_that_still_holds_its_key_is_retried(box: Box) -> None:
    kept = box.insert(unique_key=KEY, unique_hold="until_deleted")
    box.finish(box.claim(), "complete")
    assert box.change(kept, "retry").status == "CHANGED"
    assert box.put(box.job(unique_key=KEY)).holder == kept
    timed = box.insert(unique_key=b"t" * 32, unique_hold=At(START + seconds(60)), priority=1)
    box.finish(box.claim(), "complete")
    assert box.change(timed, "retry").status == "CHANGED"


def test_a_key_whose_time_is_over_is_no_conflict(box: Box) -> None:
    """Neither when it is free, nor when another took it over."""
    old = box.insert(unique_key=KEY, unique_hold=At(START + seconds(60)))
    box.finish(box.claim(), "discard")
    box.tick(60)
    new = box.insert(unique_key=KEY)
    assert box.change(old, "retry").status == "CHANGED"
    assert box.put(box.job(unique_key=KEY)).holder == new


# -------------------------------------------------------------------- reschedule


def test_reschedule_of_a_waiting_job(box: Box) -> None:
    job_id = box.insert()
    later = At(START + seconds(60))
    assert box.change(job_id, "reschedule", later) == Changed("CHANGED", JobState.SCHEDULED)
    assert box.change(job_id, "reschedule", later) == Changed("ALREADY", JobState.SCHEDULED)
    assert box.fetched() == []
    assert box.change(job_id, "reschedule") == Changed("CHANGED", JobState.AVAILABLE)
    assert box.fetched() == [job_id]


def test_reschedule_keeps_a_failed_job_retryable(box: Box) -> None:
    job_id = box.insert()
    box.finish(box.claim(), "retry")
    answer = box.change(job_id, "reschedule", After(60))
    assert answer == Changed("CHANGED", JobState.RETRYABLE)


def test_reschedule_of_any_other_job_conflicts(box: Box) -> None:
    job_id = box.insert()
    claim = box.claim()
    assert box.change(job_id, "reschedule", After(1)) == Changed("CONFLICT", JobState.RUNNING)
    box.finish(claim, "complete")
    assert box.change(job_id, "reschedule", After(1)) == Changed("CONFLICT", JobState.COMPLETED)


# -------------------------------------------------------------------- delete


def test_delete_of_a_waiting_job(box: Box) -> None:
    job_id = box.insert()
    assert box.change(job_id, "delete") == Changed("CHANGED")
    assert box.store.get_many([job_id], box.now) == [None]
    assert box.fetched() == []
    assert box.change(job_id, "delete") == Changed("GONE")


def test_delete_of_a_running_job_conflicts(box: Box) -> None:
    job_id = box.insert()
    claim = box.claim()
    assert box.change(job_id, "delete") == Changed("CONFLICT", JobState.RUNNING)
    assert box.finish(claim, "complete").status == "DONE"


@pytest.mark.parametrize(("to", "_state"), FINISHED)
def test_delete_of_a_finished_job(box: Box, to: FinishTo, _state: JobState) -> None:
    job_id = box.insert()
    claim = box.claim()
    box.finish(claim, to)
    assert box.change(job_id, "delete") == Changed("CHANGED")
    assert box.finish(claim, to).status == "GONE"
    assert box.put(box.job(id=job_id)).status == "INSERTED", "nothing remembers it"


@pytest.mark.parametrize(
    ("to", "state"),
    [
        ("complete", JobState.SCHEDULED),
        ("cancel", JobState.SCHEDULED),
        ("discard", JobState.RETRYABLE),
    ],
)
def test_a_retried_job_due_later_is_retryable_if_it_had_failed(
    box: Box, to: FinishTo, state: JobState
) -> None:
    job_id = box.insert()
    box.finish(box.claim(), to)
    box.change(job_id, "retry")
    assert box.change(job_id, "reschedule", After(60)) == Changed("CHANGED", state)
