from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from goncordia.driver import (
    After,
    At,
    Change,
    Changed,
    FetchRequest,
    Finish,
    JobRow,
    JobState,
    NewJob,
    QueueFetch,
)

New = Callable[..., NewJob]
KEY = bytes(range(32))
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def insert(bare: Any, *jobs: NewJob) -> list[UUID]:
    bare.run(bare.ops.insert.insert_many(jobs))
    return [job.id for job in jobs]


def change(bare: Any, job_id: UUID, action: Any, when: Any = None) -> Changed:
    (answer,) = bare.run(bare.ops.change.change_many([Change(job_id, action, when)]))
    changed: Changed = answer
    return changed


def row_of(bare: Any, job_id: UUID) -> JobRow:
    (row,) = bare.run(bare.ops.read.get_many([job_id]))
    found: JobRow = row
    return found


def run_all(bare: Any, number: int = 1) -> list[JobRow]:
    session = UUID(int=5)
    bare.run(bare.ops.sessions.session_open(session, "w", 60.0))
    request = FetchRequest(session, number, 100, (QueueFetch("default", 100),))
    rows: list[JobRow] = bare.run(bare.ops.fetch.fetch(request)).jobs
    return rows


def end_all(bare: Any, to: Any = "discard") -> None:
    finishes = [Finish(row.claim, to) for row in run_all(bare) if row.claim]
    bare.run(bare.ops.finish.finish_many(finishes))


@pytest.mark.parametrize("action", ["cancel", "retry", "reschedule", "delete"])
def test_what_is_not_there_is_gone(bare: Any, action: Any) -> None:
    assert change(bare, UUID(int=1), action) == Changed("GONE")


def test_one_request_sees_what_the_one_before_it_did(bare: Any, new_job: New) -> None:
    (job_id,) = insert(bare, new_job())
    changes = [
        Change(job_id, "cancel"),
        Change(job_id, "cancel"),
        Change(job_id, "retry"),
        Change(job_id, "reschedule", After(5)),
        Change(job_id, "delete"),
        Change(job_id, "delete"),
    ]
    answers = bare.run(bare.ops.change.change_many(changes))
    assert [answer.status for answer in answers] == [
        "CHANGED", "ALREADY", "CHANGED", "CHANGED", "CHANGED", "GONE",
    ]  # fmt: skip
    assert bare.value("SELECT count(*) FROM goncordia_job") == 0


def test_reschedule_moves_between_later_and_ready(bare: Any, new_job: New) -> None:
    (job_id,) = insert(bare, new_job())
    assert change(bare, job_id, "reschedule", After(5)) == Changed("CHANGED", JobState.SCHEDULED)
    assert run_all(bare, 1) == []
    past = At(datetime(2020, 1, 1, tzinfo=UTC))
    assert change(bare, job_id, "reschedule", past) == Changed("CHANGED", JobState.AVAILABLE)
    assert change(bare, job_id, "reschedule", past) == Changed("ALREADY", JobState.AVAILABLE)
    assert [row.id for row in run_all(bare, 2)] == [job_id]


def test_retry_of_a_finished_job(bare: Any, new_job: New) -> None:
    (job_id,) = insert(bare, new_job(max_attempts=1))
    end_all(bare)
    bare.clock.advance(60)
    assert change(bare, job_id, "retry") == Changed("CHANGED", JobState.AVAILABLE)
    row = row_of(bare, job_id)
    assert (row.max_attempts, row.finished_at, row.attempt) == (2, None, 1)
    assert (row.run_at - NOW).total_seconds() == 60
    assert change(bare, job_id, "retry") == Changed("ALREADY", JobState.AVAILABLE)


def test_a_failed_job_put_off_is_retryable(bare: Any, new_job: New) -> None:
    (job_id,) = insert(bare, new_job())
    end_all(bare)
    change(bare, job_id, "retry")
    assert change(bare, job_id, "reschedule", After(1)) == Changed("CHANGED", JobState.RETRYABLE)


def test_retry_meets_the_unique_key(bare: Any, new_job: New) -> None:
    (first,) = insert(bare, new_job(unique_key=KEY))
    end_all(bare)
    (second,) = insert(bare, new_job(unique_key=KEY))
    assert change(bare, first, "retry") == Changed("CONFLICT", JobState.DISCARDED, second)
    change(bare, second, "delete")
    assert change(bare, first, "retry").status == "CHANGED"
    (third,) = bare.run(bare.ops.insert.insert_many([new_job(unique_key=KEY)]))
    assert (third.status, third.holder) == ("DUPLICATE", first)


def test_retry_takes_a_key_whose_time_is_over(bare: Any, new_job: New) -> None:
    (first,) = insert(bare, new_job(unique_key=KEY))
    end_all(bare)
    until = At(datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
    (second,) = insert(bare, new_job(unique_key=KEY, unique_hold=until))
    assert change(bare, first, "retry").holder == second
    bare.clock.advance(60)
    assert change(bare, first, "retry").status == "CHANGED"


def test_retry_without_a_key_any_more(bare: Any, new_job: New) -> None:
    until = At(datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
    (first,) = insert(bare, new_job(unique_key=KEY, unique_hold=until))
    end_all(bare)
    bare.clock.advance(60)
    insert(bare, new_job(unique_key=KEY))
    assert change(bare, first, "retry").status == "CHANGED"


def test_a_running_job_is_only_asked_to_end(bare: Any, new_job: New) -> None:
    (job_id,) = insert(bare, new_job())
    run_all(bare)
    for _ in range(2):
        assert change(bare, job_id, "cancel") == Changed("REQUESTED", JobState.RUNNING)
    for action in ("retry", "reschedule", "delete"):
        assert change(bare, job_id, action) == Changed("CONFLICT", JobState.RUNNING)


def test_cancel_inside_a_transaction_is_the_same(bare: Any, new_job: New) -> None:
    (job_id,) = insert(bare, new_job(unique_key=KEY))
    answers = bare.run(bare.ops.change.cancel_many([job_id, UUID(int=1)]))
    assert answers == [Changed("CHANGED", JobState.CANCELLED), Changed("GONE")]
    assert bare.value("SELECT count(held_key) FROM goncordia_job") == 0
    assert bare.run(bare.ops.change.change_many([])) == []
