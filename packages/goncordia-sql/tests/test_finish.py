from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from goncordia.driver import (
    After,
    AttemptError,
    Change,
    Claim,
    FetchRequest,
    Finish,
    JobRow,
    JobState,
    Mark,
    NewJob,
    Outcome,
    QueueFetch,
)

New = Callable[..., NewJob]
Running = Callable[..., list[JobRow]]
DONE = Outcome("DONE", JobState.COMPLETED)


@pytest.fixture
def running(bare: Any, new_job: New, session: UUID) -> Running:
    """Makes running jobs."""
    numbers = iter(range(1, 100))
    bare.run(bare.ops.sessions.session_open(session, "w", 60.0))

    def running(count: int = 1, **fields: Any) -> list[JobRow]:
        bare.run(bare.ops.insert.insert_many([new_job(**fields) for _ in range(count)]))
        asked = (QueueFetch("default", count),)
        request = FetchRequest(session, next(numbers), count, asked, "w")
        rows: list[JobRow] = bare.run(bare.ops.fetch.fetch(request)).jobs
        assert len(rows) == count
        return rows

    return running


def claim(row: JobRow) -> Claim:
    assert row.claim is not None
    return row.claim


def completes(rows: list[JobRow], **fields: Any) -> list[Finish]:
    return [Finish(claim(row), "complete", **fields) for row in rows]


def finish(bare: Any, *finishes: Finish) -> list[Outcome]:
    outcomes: list[Outcome] = bare.run(bare.ops.finish.finish_many(finishes))
    return outcomes


def row_of(bare: Any, row: JobRow) -> JobRow:
    (found,) = bare.run(bare.ops.read.get_many([row.id]))
    assert found is not None
    found_row: JobRow = found
    return found_row


def test_plain_ends_take_two_statements(bare: Any, running: Running) -> None:
    """Of several fetches, too."""
    rows = [*running(30), *running(20)]
    assert finish(bare, *completes(rows)) == [DONE] * 50
    assert len(bare.asked) == 2


def test_outputs_are_stored_in_a_third(bare: Any, running: Running) -> None:
    rows = running(6)
    finishes = [*completes(rows[:3]), *completes(rows[3:], output=b'{"a":"\\u0000"}')]
    assert finish(bare, *finishes) == [DONE] * 6
    assert len(bare.asked) == 3
    assert [row_of(bare, row).output for row in rows] == [None] * 3 + [b'{"a":"\\u0000"}'] * 3


def test_odd_outputs_come_back_too(
    bare: Any, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = [b'"\x00"', b"\xff", b'"' + b"x" * (64 << 10) + b'"', b"1"]
    rows = running(6)
    finishes = [Finish(claim(row), "complete", output=o) for row, o in zip(rows, odd, strict=False)]
    assert finish(bare, *finishes, *completes(rows[4:])) == [DONE] * 6
    assert [row_of(bare, row).output for row in rows] == [*odd, None, None]
    monkeypatch.setattr("goncordia_sql.ops.finish.LONGEST_SET", 10)
    rows = running(5)
    assert finish(bare, *completes(rows, output=b"[1, 2]")) == [DONE] * 5
    assert [row_of(bare, row).output for row in rows] == [b"[1, 2]"] * 5


def test_exceptions_among_plain_ends_are_found(bare: Any, running: Running) -> None:
    rows = running(7)
    gone = msgspec.structs.replace(claim(rows[0]), job_id=UUID(int=1))
    older = msgspec.structs.replace(claim(rows[1]), fetch_no=99)
    finish(bare, Finish(claim(rows[2]), "retry", After(5)))
    finish(bare, Finish(claim(rows[3]), "complete"))
    bare.run(bare.ops.change.change_many([Change(rows[4].id, "cancel")]))
    asked = [
        Finish(gone, "complete"),
        Finish(older, "complete", output=b"1"),
        *completes(rows[2:6], output=b"2"),
        *completes(rows[6:]),
    ]
    assert finish(bare, *asked) == [
        Outcome("GONE"),
        Outcome("STALE", JobState.RUNNING),
        Outcome("ALREADY", JobState.RETRYABLE),
        Outcome("ALREADY", JobState.COMPLETED),
        DONE,
        DONE,
        DONE,
    ]
    assert row_of(bare, rows[1]).state == JobState.RUNNING
    assert row_of(bare, rows[3]).output is None


def test_of_several_sessions(bare: Any, running: Running, new_job: New) -> None:
    rows = running(3)
    other = UUID(int=77)
    bare.run(bare.ops.sessions.session_open(other, "w", 60.0))
    bare.run(bare.ops.insert.insert_many([new_job(), new_job()]))
    request = FetchRequest(other, 1, 2, (QueueFetch("default", 2),))
    theirs = bare.run(bare.ops.fetch.fetch(request)).jobs
    asked = [*completes(rows[:2]), *completes(theirs), *completes(rows[2:])]
    assert finish(bare, *asked) == [DONE] * 5


def test_a_job_twice_in_one_request(bare: Any, running: Running) -> None:
    rows = running(2)
    asked = [*completes(rows), Finish(claim(rows[0]), "retry")]
    assert finish(bare, *asked) == [DONE, DONE, Outcome("ALREADY", JobState.COMPLETED)]
    (row,) = running(1)
    first, second = Finish(claim(row), "retry"), Finish(claim(row), "complete")
    assert finish(bare, first, second) == [
        Outcome("DONE", JobState.AVAILABLE),
        Outcome("ALREADY", JobState.AVAILABLE),
    ]


def test_a_claim_that_ended_is_known_while_the_job_runs_again(bare: Any, running: Running) -> None:
    (first,) = running(1)
    finish(bare, Finish(claim(first), "release"))
    (second,) = running_again = bare_fetch(bare, claim(first).session, 50)
    assert second.id == first.id
    assert len(running_again) == 1
    assert finish(bare, Finish(claim(first), "complete")) == [Outcome("ALREADY", JobState.RUNNING)]
    assert finish(bare, *completes([second])) == [DONE]
    # Only the last ended claim is remembered.
    assert finish(bare, Finish(claim(first), "complete")) == [Outcome("STALE", JobState.COMPLETED)]


def bare_fetch(bare: Any, session: UUID, number: int) -> list[JobRow]:
    request = FetchRequest(session, number, 10, (QueueFetch("default", 10),))
    rows: list[JobRow] = bare.run(bare.ops.fetch.fetch(request)).jobs
    return rows


def test_errors_are_kept_up_to_twenty(bare: Any, running: Running) -> None:
    (row,) = running(1)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(1, 23):
        error = AttemptError(number, at, "E", f"m{number}", "tb", "w")
        assert finish(bare, Finish(claim(row), "retry", error=error))[0].status == "DONE"
        (row,) = bare_fetch(bare, claim(row).session, 100 + number)
    assert [error.attempt for error in row.errors] == list(range(3, 23))
    assert row.errors[-1] == AttemptError(22, at, "E", "m22", "tb", "w")


def test_a_release_is_due_again_at_its_old_place(bare: Any, running: Running) -> None:
    (row,) = running(1, run_at=None)
    bare.clock.advance(5)
    assert finish(bare, Finish(claim(row), "release")) == [Outcome("DONE", JobState.AVAILABLE)]
    after = row_of(bare, row)
    assert (after.run_at, after.attempt, after.claim) == (row.run_at, 0, None)


@pytest.mark.parametrize("to", ["retry", "snooze", "release"])
def test_a_requested_cancel_ends_what_would_come_back(bare: Any, running: Running, to: Any) -> None:
    (row,) = running(1, unique_key=bytes(32))
    bare.run(bare.ops.change.change_many([Change(row.id, "cancel")]))
    assert finish(bare, Finish(claim(row), to, After(9))) == [Outcome("DONE", JobState.CANCELLED)]
    assert row_of(bare, row).finished_at is not None
    assert bare.value("SELECT count(held_key) FROM goncordia_job") == 0


def test_marks(bare: Any, running: Running) -> None:
    rows = running(3)
    stale = msgspec.structs.replace(claim(rows[2]), fetch_no=99)
    gone = msgspec.structs.replace(claim(rows[2]), job_id=UUID(int=1))
    marks = [
        Mark(claim(rows[0]), started=True),
        Mark(claim(rows[1]), checkpoint=b"[1]"),
        Mark(stale, started=True),
        Mark(gone),
        Mark(claim(rows[0]), checkpoint=b"[2]"),
    ]
    outcomes = bare.run(bare.ops.finish.mark_many(marks))
    assert [outcome.status for outcome in outcomes] == ["DONE", "DONE", "STALE", "GONE", "DONE"]
    after = [row_of(bare, row) for row in rows]
    assert [row.started for row in after] == [True, False, False]
    assert [row.checkpoint for row in after] == [b"[2]", b"[1]", None]
    rescue = Finish(claim(rows[0]), "release", rescue=True)
    assert finish(bare, rescue) == [Outcome("STALE", JobState.RUNNING)]
    assert bare.run(bare.ops.finish.mark_many([])) == []


def test_an_exchange_is_both(bare: Any, running: Running, new_job: New) -> None:
    rows = running(2)
    new = new_job()
    bare.run(bare.ops.insert.insert_many([new]))
    request = FetchRequest(claim(rows[0]).session, 70, 5, (QueueFetch("default", 5),))
    outcomes, result = bare.run(bare.ops.exchange(completes(rows), request))
    assert (outcomes, [row.id for row in result.jobs]) == ([DONE, DONE], [new.id])
    assert bare.run(bare.ops.exchange(completes(result.jobs), None)) == ([DONE], None)
    assert bare.run(bare.ops.exchange([], None)) == ([], None)
