"""Inserting: replays, unique keys, the backend's time, and payloads byte for byte."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from goncordia.driver import (
    NO_TIMEOUT,
    After,
    At,
    FinishTo,
    InsertResult,
    JobState,
    NewJob,
    UniqueHold,
    When,
)

from .box import START, Box, seconds

KEY = b"k" * 32


@pytest.fixture
def box() -> Box:
    return Box()


def test_every_field_comes_back(box: Box) -> None:
    new = NewJob(
        id=box.new_id(),
        kind="send",
        args=b'{"a":"\\u0000 \xf0\x9f\x90\x98",  "n": 36893488147419103232}',
        queue="mail",
        priority=-32768,
        run_at=At(START + seconds(60)),
        content="sealed",
        payload_version=3,
        max_attempts=7,
        timeout=NO_TIMEOUT,
        tags=("a", "b"),
        meta={"trace": "1"},
        unique_key=KEY,
        unique_hold="until_deleted",
        group="p:1",
        group_limit=1,
    )
    box.put(new)
    row = box.row(new.id)
    for field in NewJob.__struct_fields__:
        if field != "run_at":
            assert getattr(row, field) == getattr(new, field), field
    assert row.run_at == START + seconds(60)
    assert (row.state, row.attempt, row.claim, row.started) == (JobState.SCHEDULED, 0, None, False)
    assert (row.created_at, row.claimed_at, row.finished_at) == (START, None, None)
    assert (row.worker_id, row.errors, row.checkpoint, row.output) == (None, (), None, None)
    assert row.cancel_requested is False


def test_what_the_caller_does_to_meta_later_changes_nothing(box: Box) -> None:
    meta = {"trace": "1"}
    job_id = box.insert(meta=meta)
    meta["trace"] = "2"
    row = box.row(job_id)
    assert row.meta == {"trace": "1"}
    assert isinstance(row.meta, dict)
    row.meta["trace"] = "3"
    assert box.row(job_id).meta == {"trace": "1"}


@pytest.mark.parametrize(
    ("run_at", "due"),
    [
        (None, START),
        (After(0), START),
        (After(90.5), START + seconds(90.5)),
        (At(START - timedelta(days=1)), START - timedelta(days=1)),
        (At(START + timedelta(days=1)), START + timedelta(days=1)),
    ],
)
def test_run_at_is_resolved_by_the_stores_time(box: Box, run_at: When, due: object) -> None:
    assert box.row(box.insert(run_at=run_at)).run_at == due


def test_the_same_id_again_is_replayed_and_changes_nothing(box: Box) -> None:
    job = box.job(args=b"1")
    again = box.job(id=job.id, args=b"2", priority=5)
    assert box.store.insert_many([job, again], box.now) == [
        InsertResult(job.id, "INSERTED"),
        InsertResult(job.id, "REPLAYED"),
    ]
    assert box.put(again) == InsertResult(job.id, "REPLAYED")
    assert (box.row(job.id).args, box.row(job.id).priority) == (b"1", 0)


def test_the_id_is_looked_at_before_the_key(box: Box) -> None:
    """A repeated insert says what the first one did, also when another holds the key since."""
    first = box.job(unique_key=KEY)
    box.put(first)
    box.finish(box.claim(), "complete")
    box.insert(unique_key=KEY)
    assert box.put(first) == InsertResult(first.id, "REPLAYED")


def test_a_held_key_is_answered_with_its_holder(box: Box) -> None:
    holder = box.insert(unique_key=KEY)
    job = box.job(unique_key=KEY)
    assert box.put(job) == InsertResult(job.id, "DUPLICATE", holder)
    assert box.store.job(job.id) is None
    assert box.put(box.job(unique_key=b"x" * 32)).status == "INSERTED"


def test_the_second_of_one_key_in_one_batch_is_a_duplicate_of_the_first(box: Box) -> None:
    first, second = box.job(unique_key=KEY), box.job(unique_key=KEY)
    assert box.store.insert_many([first, second], box.now) == [
        InsertResult(first.id, "INSERTED"),
        InsertResult(second.id, "DUPLICATE", first.id),
    ]


def held(box: Box) -> UUID | None:
    """Who holds the key, as an insert sees it; the probe goes away again."""
    probe = box.job(unique_key=KEY)
    answer = box.put(probe)
    if answer.status == "INSERTED":
        assert box.change(probe.id, "delete").status == "CHANGED"
    return answer.holder


@pytest.mark.parametrize("to", ["complete", "discard", "cancel"])
def test_an_active_key_is_held_while_the_job_waits_or_runs(box: Box, to: FinishTo) -> None:
    job_id = box.insert(unique_key=KEY, run_at=After(10))
    assert held(box) == job_id
    box.tick(10)
    assert held(box) == job_id
    claim = box.claim()
    assert held(box) == job_id
    box.finish(claim, "retry", After(5))
    assert held(box) == job_id
    box.tick(5)
    box.finish(box.claim(), to)
    assert held(box) is None


def test_an_active_key_is_freed_by_cancelling_the_waiting_job(box: Box) -> None:
    job_id = box.insert(unique_key=KEY)
    box.change(job_id, "cancel")
    assert held(box) is None


@pytest.mark.parametrize("hold", ["active", "until_deleted", At(START + seconds(99))])
def test_deleting_frees_the_key(box: Box, hold: UniqueHold) -> None:
    job_id = box.insert(unique_key=KEY, unique_hold=hold)
    box.change(job_id, "delete")
    assert held(box) is None


def test_a_key_held_until_deleted_outlives_the_job(box: Box) -> None:
    job_id = box.insert(unique_key=KEY, unique_hold="until_deleted")
    box.finish(box.claim(), "complete")
    box.tick(1e6)
    assert held(box) == job_id
    box.change(job_id, "delete")
    assert held(box) is None


def test_a_key_held_until_a_time_is_held_in_every_state_and_not_longer(box: Box) -> None:
    job_id = box.insert(unique_key=KEY, unique_hold=At(START + seconds(60)))
    box.finish(box.claim(), "complete")
    box.tick(59.999)
    assert held(box) == job_id
    box.tick(0.001)
    assert held(box) is None


def test_a_waiting_job_loses_its_key_when_the_time_is_over(box: Box) -> None:
    old = box.insert(unique_key=KEY, unique_hold=At(START + seconds(60)), run_at=After(3600))
    box.tick(60)
    new = box.insert(unique_key=KEY)
    assert held(box) == new
    box.change(old, "delete")
    assert held(box) == new, "deleting the old one does not free the new one's key"
