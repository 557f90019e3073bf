"""What is stored of a job comes back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goncordia.driver import (
    After,
    At,
    AttemptError,
    Change,
    Finish,
    JobRow,
    JobState,
    Mark,
    NewJob,
    QueueFetch,
)

LONGEST = "\U0001f600" * 128
times = st.datetimes(datetime(1685, 1, 1), datetime(2255, 1, 1)).map(  # noqa: DTZ001  # made aware
    lambda time: At(time.replace(tzinfo=UTC))
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128)
fields = st.fixed_dictionaries(
    {
        "kind": names,
        "queue": names,
        "args": st.binary(max_size=300),
        "priority": st.integers(-32768, 32767),
        "group_limit": st.integers(1, 2**31),
    },
    optional={
        "run_at": st.one_of(st.none(), times),
        "content": names,
        "payload_version": st.integers(1, 2**31),
        "max_attempts": st.one_of(st.none(), st.integers(1, 2**31 - 1)),
        "timeout": st.one_of(st.none(), st.floats(0, 1e9)),
        "tags": st.lists(names, max_size=3).map(tuple),
        "meta": st.dictionaries(names, names, max_size=3),
        "unique_key": st.one_of(st.none(), st.binary(min_size=32, max_size=32)),
        "unique_hold": st.one_of(st.sampled_from(["active", "until_deleted"]), times),
        "group": st.one_of(st.none(), names),
    },
)


def _same(row: JobRow, job: NewJob, now: datetime) -> None:
    due = job.run_at.when if isinstance(job.run_at, At) else now
    expected = {name: getattr(job, name) for name in NewJob.__struct_fields__}
    found = {name: getattr(row, name) for name in NewJob.__struct_fields__}
    assert found == {**expected, "run_at": due}
    assert row.created_at == now


def test_all_that_a_job_may_be(make_bare: Callable[..., Any]) -> None:
    bare = make_bare()

    @settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
    @given(fields, st.text(max_size=200))
    def play(given: dict[str, Any], worker: str) -> None:
        bare.client.flushall()
        job = bare.job(**given)
        (result,) = bare(bare.ops.insert_many([job]))
        now = bare.clock.now()
        assert result.status == "INSERTED"
        _same(bare.row(job.id), job, now)
        bare(bare.ops.change_many([Change(job.id, "retry")]))
        due = bare.row(job.id).run_at
        bare.open()
        queue = _asking(job)
        worker = worker.encode("utf-8", "replace").decode()
        (claimed,) = bare.ask(1, queue, worker=worker).jobs
        assert (claimed.worker_id, claimed.attempt, claimed.state) == (
            worker, 1, JobState.RUNNING,
        )  # fmt: skip
        assert (claimed.args, claimed.tags, claimed.meta) == (job.args, job.tags, job.meta)
        assert bare.row(job.id) == claimed
        error = AttemptError(1, now, "E", worker, "…", worker)
        bare(bare.ops.mark_many([Mark(claimed.claim, started=True, checkpoint=b"\x00\xff")]))
        bare(bare.ops.finish_many([Finish(claimed.claim, "retry", After(9), error)]))
        row = bare.row(job.id)
        assert (row.errors, row.checkpoint, row.state) == (
            (error,), b"\x00\xff", JobState.RETRYABLE,
        )  # fmt: skip
        assert (row.started, row.worker_id) == (True, worker)
        _same_but_due(row, job, due)

    play()


def _asking(job: NewJob) -> QueueFetch:
    return QueueFetch(job.queue, 1, {job.kind: 1})


def _same_but_due(row: JobRow, job: NewJob, due: datetime) -> None:
    assert row.run_at > due
    for name in ("kind", "queue", "unique_key", "unique_hold", "group", "args", "max_attempts"):
        assert getattr(row, name) == getattr(job, name)


def test_the_longest_header(bare: Any) -> None:
    job = bare.job(
        kind=LONGEST, queue=LONGEST, group="pipeline:" + LONGEST, group_limit=1,
        unique_key=b"\x00" * 32, run_at=After(0), max_attempts=2, args=b"x" * 3,
    )  # fmt: skip
    bare(bare.ops.insert_many([job]))
    bare.open()
    (row,) = bare.ask(1, _asking(job), worker=LONGEST).jobs
    bare(bare.ops.finish_many([Finish(row.claim, "retry")]))
    (row,) = bare.ask(1, _asking(job), worker="short").jobs
    assert (row.attempt, row.worker_id, row.args) == (2, "short", b"xxx")
    (outcome,) = bare(bare.ops.finish_many([Finish(row.claim, "complete", output=b"7")]))
    assert outcome.status == "DONE"
    assert bare.row(job.id).output == b"7"


def test_large_args_stay_as_they_are(bare: Any) -> None:
    args = bytes(range(256)) * 4096
    job_id = bare.add(args=args)
    bare.open()
    (row,) = bare.claim()
    assert row.args == args
    bare(bare.ops.finish_many([Finish(row.claim, "snooze", After(1))]))
    assert bare.row(job_id).args == args


def test_the_ends_of_the_calendar(bare: Any) -> None:
    day = timedelta(days=1)
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    early = bare.add(run_at=At(first))
    late = bare.add(run_at=At(last))
    far = bare.add(run_at=After(1e30))
    long_ago = bare.add(run_at=After(-1e30))
    bare.open()
    assert {row.id for row in bare.claim(9)} == {early, long_ago}
    for job_id, end in ((early, first), (late, last), (far, last), (long_ago, first)):
        assert abs(bare.row(job_id).run_at - end) <= day
    bare(bare.ops.change_many([Change(late, "reschedule", At(last))]))
    assert abs(bare.row(late).run_at - last) <= day


def test_errors_are_the_newest_twenty(bare: Any) -> None:
    job_id = bare.add()
    bare.open()
    for attempt in range(1, 24):
        (row,) = bare.claim()
        error = AttemptError(attempt, bare.clock.now(), "E", "")
        bare(bare.ops.finish_many([Finish(row.claim, "retry", None, error)]))
    assert [error.attempt for error in bare.row(job_id).errors] == list(range(4, 24))


def test_a_job_that_was_claimed_is_read_by_those_who_hold_it(bare: Any) -> None:
    for _ in range(450):
        bare.add()
    session = bare.open()
    claimed = bare.claim(450)
    other = bare.claim(1)
    assert other == []
    assert len(bare(bare.ops.held(session, None, 1000))) == 450
    assert len(bare(bare.ops.held(session, 1, 201))) == 201
    assert bare(bare.ops.held(session, 9, 10)) == []
    assert bare(bare.ops.held(UUID(int=99), None, 10)) == []
    assert {row.id for row in bare(bare.ops.held(session, 1, 1000))} == {row.id for row in claimed}
