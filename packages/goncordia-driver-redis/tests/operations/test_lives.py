"""Unique keys, sessions, retention, and keys that were taken away from us."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from redis.exceptions import OutOfMemoryError

from goncordia.driver import (
    After,
    At,
    Change,
    Claim,
    Finish,
    FinishTo,
    JobState,
    ListFilter,
    Mark,
    PruneRequest,
    QueueState,
    QueueStats,
)

KEY = b"\x00key" * 8
Audit = Callable[[Any], None]


def _states(bare: Any) -> list[JobState]:
    return [row.state for row in bare(bare.ops.list_jobs(ListFilter(), None, 100)).jobs]


def test_a_key_within_a_batch(bare: Any, audit: Audit) -> None:
    over = At(bare.clock.now())
    jobs = [
        bare.job(unique_key=KEY, unique_hold=over),
        bare.job(unique_key=KEY),
        bare.job(unique_key=KEY),
    ]
    results = bare(bare.ops.insert_many(jobs))
    # The hold of the first is over as soon as it is there.
    assert [one.status for one in results] == ["INSERTED", "INSERTED", "DUPLICATE"]
    assert results[2].holder == jobs[1].id
    again = bare(bare.ops.insert_many(jobs))
    assert [one.status for one in again] == ["REPLAYED", "REPLAYED", "DUPLICATE"]
    audit(bare)


def test_held_until_a_time_and_pruned_after_it(bare: Any, audit: Audit) -> None:
    hold = At(bare.clock.now() + timedelta(seconds=10))
    job_id = bare.add(unique_key=KEY, unique_hold=hold)
    kept = bare.add(unique_key=b"x" * 32, unique_hold="until_deleted")
    bare.open()
    bare(bare.ops.finish_many([Finish(row.claim, "complete") for row in bare.claim(2)]))
    audit(bare)
    all_of_it = PruneRequest(completed=bare.clock.now() + timedelta(days=9))
    assert bare(bare.ops.prune(all_of_it)) == 0
    assert bare(bare.ops.count(ListFilter(states=frozenset({JobState.COMPLETED})))) == 2
    bare.advance(11)
    taken = bare.add(unique_key=KEY)
    assert bare(bare.ops.prune(all_of_it)) == 1
    audit(bare)
    assert bare(bare.ops.get_many([job_id])) == [None]
    assert {row.id for row in bare(bare.ops.list_jobs(ListFilter(), None, 9)).jobs} == {kept, taken}
    (answer,) = bare(bare.ops.change_many([Change(kept, "delete")]))
    assert answer.status == "CHANGED"
    bare.add(unique_key=b"x" * 32)
    audit(bare)


def test_so_many_finished_jobs_are_kept(make_bare: Callable[..., Any], audit: Audit) -> None:
    bare = make_bare(keep_finished=3)
    bare.open()
    bare(bare.ops.insert_many([bare.job(unique_key=bytes([n]) * 32) for n in range(12)]))
    order = []
    for _ in range(4):
        rows = bare.claim(3)
        bare.advance(1)
        outcomes = bare(
            bare.ops.finish_many(
                [Finish(row.claim, "complete", output=b"1", checkpoint=b"2") for row in rows]
            )
        )
        assert {one.status for one in outcomes} == {"DONE"}
        order += [row.id for row in rows]
        audit(bare)
    left = bare(bare.ops.list_jobs(ListFilter(), None, 100)).jobs
    assert sorted(row.id for row in left) == sorted(order[-3:])
    assert len([key for key in bare.dump() if key.startswith(bare.key(b"x:"))]) == 3


def test_a_used_session_id_stays_used(bare: Any) -> None:
    session = bare.open()
    bare(bare.ops.session_close(session))
    assert bare.client.ttl(bare.key(b"s:" + session.bytes)) > 86_000
    bare.open(session)
    assert bare(bare.ops.session_list()) == []
    assert bare.ask(1, session=session).lost
    assert not bare(bare.ops.session_beat(session, 9)).held


def test_an_ended_session_is_listed_while_it_holds(bare: Any, audit: Audit) -> None:
    dead, watcher = bare.open(UUID(int=1), 10), UUID(int=2)
    bare.add()
    (row,) = bare.claim(session=dead)
    bare.advance(20)
    bare.open(watcher, 10)
    for _ in range(3):
        bare.advance(4)
        bare(bare.ops.session_beat(watcher, 10))
    (held,) = bare(bare.ops.expire(watcher, 5))
    assert held.claim == row.claim
    assert {one.id: one.open for one in bare(bare.ops.session_list())} == {
        dead: False,
        watcher: True,
    }
    # It is over for good: to close it releases nothing.
    bare(bare.ops.session_close(dead))
    assert bare(bare.ops.expire(watcher, 5)) == [held]
    bare(bare.ops.finish_many([Finish(row.claim, "release", rescue=True)]))
    assert [one.id for one in bare(bare.ops.session_list())] == [watcher]
    assert bare.client.ttl(bare.key(b"s:" + dead.bytes)) > 86_000
    audit(bare)


def test_jobs_whose_strings_are_gone(bare: Any) -> None:
    """As after an eviction: nothing goes on for ever, and all else goes on."""
    bare.open(UUID(int=1), 10)
    lost = [bare.add(), bare.add(group="g", group_limit=2), bare.add(unique_key=KEY)]
    kept = [bare.add(), bare.add(group="g", group_limit=2)]
    running = bare.claim(1, session=UUID(int=1))
    assert [row.id for row in running] == lost[:1]
    for job_id in lost:
        bare.client.delete(bare.key(b"j:" + job_id.bytes))
    assert {row.id for row in bare.claim(9, session=UUID(int=1))} <= set(kept)
    bare.add(unique_key=KEY)
    held = bare(bare.ops.held(UUID(int=1), None, 9))
    assert {row.id for row in held} <= set(kept)
    assert bare(bare.ops.finish_many([Finish(running[0].claim, "complete")]))[0].status == "GONE"
    bare(bare.ops.session_close(UUID(int=1)))
    assert bare(bare.ops.session_list()) == []
    assert {row.id for row in bare(bare.ops.list_jobs(ListFilter(), None, 9)).jobs} >= set(kept)


def test_a_group_goes_on_without_a_job_that_is_gone(bare: Any) -> None:
    bare.open()
    gone = bare.add(group="g", group_limit=1)
    left = [bare.add(group="g", group_limit=1) for _ in range(2)]
    bare.client.delete(bare.key(b"j:" + gone.bytes))
    assert bare.claim(5) == []
    bare.add(group="g", group_limit=1, run_at=After(99))
    (row,) = bare.claim(5)
    assert row.id == left[0]
    bare.client.delete(bare.key(b"j:" + left[1].bytes))
    later = bare.add(group="g", group_limit=1)
    bare(bare.ops.finish_many([Finish(row.claim, "complete")]))
    assert [row.id for row in bare.claim(5)] == [later]


def test_a_close_that_is_repeated_goes_on(bare: Any) -> None:
    session = bare.open()
    for _ in range(3):
        bare(bare.ops.insert_many([bare.job() for _ in range(400)]))
    assert len(bare.claim(1000) + bare.claim(1000)) == 1200
    closing = bare.ops.session_close(session)
    call = next(closing)
    bare.client.evalsha(
        bare.client.script_load(call.script.text.decode()), 1, call.key, *call.arguments
    )  # and its answer is lost
    assert bare(bare.ops.count(ListFilter(states=frozenset({JobState.RUNNING})))) == 200
    bare(bare.ops.session_close(session))
    assert bare(bare.ops.count(ListFilter(states=frozenset({JobState.RUNNING})))) == 0
    assert bare(bare.ops.session_list()) == []


def test_large_jobs_come_as_an_answer_can_hold_them(bare: Any, audit: Audit) -> None:
    bare.open(UUID(int=1), 10)
    large = bytes(6 << 20)
    ids = [bare.add(args=large, group="g" if n % 2 else None, group_limit=9) for n in range(7)]
    first = bare.ask(9, session=UUID(int=1))
    # 16 MiB are full with the third; the fourth was read with it.
    assert [row.id for row in first.jobs] == ids[:4]
    assert first.more
    audit(bare)
    rest = bare.ask(9, session=UUID(int=1))
    assert ([row.id for row in rest.jobs], rest.more) == (ids[4:], False)
    audit(bare)
    bare.calls = 0
    assert {row.id for row in bare(bare.ops.held(UUID(int=1), None, 10))} == set(ids)
    assert [row.id for row in bare(bare.ops.get_many(ids))] == ids
    assert bare.calls == 14
    bare.open(UUID(int=2), 10)
    for _ in range(4):
        bare.advance(4)
        bare(bare.ops.session_beat(UUID(int=2), 10))
    assert len(bare(bare.ops.expire(UUID(int=2), 10))) == 1
    audit(bare)


def test_with_memory_full_jobs_end_and_none_begin(bare: Any) -> None:
    bare.open()
    bare.add()
    waits, gone = bare.add(), bare.add()
    (row,) = bare.claim()
    bare.client.config_set("maxmemory", 1)
    try:
        with pytest.raises(OutOfMemoryError):
            bare.add()
        bare(bare.ops.session_beat(row.claim.session, 60))
        outcomes = bare(bare.ops.finish_many([Finish(row.claim, "complete")]))
        assert outcomes[0].status == "DONE"
        changes = [Change(gone, "delete"), Change(waits, "cancel")]
        answers = bare(bare.ops.change_many(changes))
        assert [one.status for one in answers] == ["CHANGED", "CHANGED"]
        bare.advance(1)
        request = PruneRequest(completed=bare.clock.now(), cancelled=bare.clock.now())
        assert bare(bare.ops.prune(request)) == 2
        bare(bare.ops.session_close(row.claim.session))
    finally:
        bare.client.config_set("maxmemory", 0)
    assert _states(bare) == []


def test_queues_are_known_while_they_hold_something(bare: Any) -> None:
    bare.open()
    bare.add(queue="b")
    bare.add(queue="a", group="g", group_limit=1)
    bare.add(queue="a", group="g", group_limit=1, run_at=After(5))
    bare.add(queue="a", run_at=After(7))
    bare(bare.ops.queue_pause("z"))
    names = [QueueState("a", False), QueueState("b", False), QueueState("z", True)]
    assert bare(bare.ops.queue_list()) == names
    now = bare.clock.now()
    assert bare(bare.ops.queue_stats()) == [
        QueueStats("a", 1, 2, 0, 0, now),
        QueueStats("b", 1, 0, 0, 0, now),
    ]
    ids = [row.id for row in bare(bare.ops.list_jobs(ListFilter(), None, 9)).jobs]
    bare(bare.ops.change_many([Change(each, "delete") for each in ids]))
    assert bare(bare.ops.queue_list()) == names[2:]
    assert bare(bare.ops.queue_stats()) == []
    bare(bare.ops.prune(PruneRequest()))
    assert not {bare.key(b"qs"), bare.key(b"told")} & bare.dump().keys()
    many = [f"q{n:04}" for n in range(1500)]
    bare(bare.ops.insert_many([bare.job(queue=name) for name in many[:1000]]))
    bare(bare.ops.insert_many([bare.job(queue=name) for name in many[1000:]]))
    assert [one.name for one in bare(bare.ops.queue_list())] == [*many, "z"]
    assert [one.available for one in bare(bare.ops.queue_stats())] == [1] * 1500


def test_counts_by_state_are_those_of_a_look_at_each_job(bare: Any) -> None:
    bare.open()
    bare(bare.ops.insert_many([bare.job() for _ in range(8)]))
    bare.add(run_at=After(9))
    ends: list[FinishTo] = ["complete", "discard", "cancel", "retry"]
    rows = bare.claim(6)
    bare(
        bare.ops.finish_many(
            [Finish(row.claim, to, After(5)) for row, to in zip(rows, ends, strict=False)]
        )
    )
    listed = _states(bare)
    for states in ([JobState.RUNNING], [JobState.AVAILABLE, JobState.COMPLETED], list(JobState)):
        expected = sum(state in states for state in listed)
        assert expected > 0
        assert bare(bare.ops.count(ListFilter(states=frozenset(states)))) == expected
    kinds = ListFilter(states=frozenset(JobState), kinds=frozenset({"work"}))
    assert bare(bare.ops.count(kinds)) == 9


def test_records_come_in_pieces(bare: Any) -> None:
    token = iter(range(1000))

    def put(name: str, value: bytes) -> int:
        sign = b"%016d" % next(token)
        result = bare(bare.ops.record_put(name, value, 0, sign))
        assert result.done
        version: int = result.version
        return version

    names = sorted(f"p/{'é' * (n % 3)}{n}" for n in range(130))
    versions = {name: put(name, name.encode()) for name in reversed(names)}
    put("p", b"")
    put("q", b"")
    found = bare(bare.ops.record_list("p/"))
    assert [(one.name, one.value, one.version) for one in found] == [
        (name, name.encode(), versions[name]) for name in names
    ]
    assert len(bare(bare.ops.record_list(""))) == 132


def test_layouts(bare: Any) -> None:
    assert bare(bare.ops.schema_read()) is None
    assert [bare(bare.ops.schema_write()) for _ in range(2)] == [0, 1]
    layout = bare(bare.ops.schema_read())
    assert (layout.version, layout.oldest) == (1, 1)
    bare.client.hset(bare.key(b"schema"), mapping={"version": 9, "oldest": 4})
    assert bare(bare.ops.schema_write()) == 9
    assert bare(bare.ops.schema_read()).version == 9


def test_a_failed_job_runs_again_and_is_cancelled(bare: Any, audit: Audit) -> None:
    bare.open()
    job_id = bare.add()
    bare(bare.ops.finish_many([Finish(bare.claim()[0].claim, "retry", After(5))]))
    assert bare(bare.ops.queue_stats()) == [QueueStats("default", retryable=1)]
    audit(bare)
    bare.advance(6)
    (row,) = bare.claim()
    audit(bare)
    bare(bare.ops.change_many([Change(job_id, "cancel")]))
    assert bare(bare.ops.session_beat(row.claim.session, 60)).cancels == (row.claim,)
    audit(bare)
    (outcome,) = bare(bare.ops.finish_many([Finish(row.claim, "retry")]))
    assert outcome.state is JobState.CANCELLED
    assert bare(bare.ops.session_beat(row.claim.session, 60)).cancels == ()
    audit(bare)


def test_a_queue_comes_back_with_a_retry(bare: Any, audit: Audit) -> None:
    job_id = bare.add()
    bare(bare.ops.change_many([Change(job_id, "cancel")]))
    assert bare(bare.ops.queue_list()) == []
    bare(bare.ops.change_many([Change(job_id, "retry")]))
    assert bare(bare.ops.queue_list()) == [QueueState("default", False)]
    audit(bare)


def test_few_jobs_of_a_state_are_found_without_a_look_at_the_others(bare: Any) -> None:
    bare.open()
    hold = At(bare.clock.now() + timedelta(seconds=99))
    ids = [
        bare.add(unique_key=KEY, unique_hold=hold),
        bare.add(unique_key=b"x" * 32, unique_hold="until_deleted"),
        bare.add(tags=("t",)),
        bare.add(),
    ]
    rows = bare.claim(4)
    bare(bare.ops.finish_many([Finish(row.claim, "discard") for row in rows[:3]]))
    bare(bare.ops.insert_many([bare.job() for _ in range(900)]))
    discarded = ListFilter(states=frozenset({JobState.DISCARDED}))
    bare.calls = 0
    page = bare(bare.ops.list_jobs(discarded, None, 2))
    assert [row.id for row in page.jobs] == ids[2:0:-1]
    last = bare(bare.ops.list_jobs(discarded, page.next, 2))
    assert ([row.id for row in last.jobs], last.next) == ([ids[0]], None)
    running = ListFilter(states=frozenset({JobState.RUNNING, JobState.COMPLETED}))
    assert [row.id for row in bare(bare.ops.list_jobs(running, None, 9)).jobs] == ids[3:]
    tagged = ListFilter(states=frozenset({JobState.DISCARDED}), tags=frozenset({"t"}))
    assert bare(bare.ops.count(tagged)) == 1
    assert bare.calls == 8


def test_many_jobs_of_a_state_are_found_by_the_index(bare: Any) -> None:
    for _ in range(6):
        jobs = [bare.job() for _ in range(1000)]
        bare(bare.ops.insert_many(jobs))
        bare(bare.ops.change_many([Change(job.id, "cancel") for job in jobs]))
    cancelled = ListFilter(states=frozenset({JobState.CANCELLED}), kinds=frozenset({"work"}))
    assert bare(bare.ops.count(cancelled)) == 6000
    assert len(bare(bare.ops.list_jobs(cancelled, None, 3)).jobs) == 3


def test_a_claim_of_nobody_ends_nothing(bare: Any, audit: Audit) -> None:
    """What stands where a job has no claim is no claim."""
    job_id = bare.add()
    nobody = Claim(job_id, UUID(int=0), 0)
    outcomes = bare(bare.ops.finish_many([Finish(nobody, "complete")]))
    outcomes += bare(bare.ops.mark_many([Mark(nobody, started=True)]))
    assert [one.status for one in outcomes] == ["STALE", "STALE"]
    assert bare.row(job_id).state is JobState.AVAILABLE
    audit(bare)
