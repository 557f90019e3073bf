"""Keys that were evicted, or deleted by hand: what runs, is held and is counted comes in step."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from math import inf
from typing import Any
from uuid import UUID

import pytest

from goncordia.driver import (
    After,
    At,
    AttemptError,
    Change,
    Finish,
    JobState,
    ListFilter,
    PruneRequest,
    QueueFetch,
    QueueStats,
)

Audit = Callable[..., None]
OWN = UUID(int=7)
DEAD, WATCHER = UUID(int=1), UUID(int=2)


def _running(bare: Any, session: UUID = OWN, **fields: Any) -> Any:
    bare.open(session)
    bare.add(**fields)
    (row,) = bare.claim(session=session)
    return row


def _evict(bare: Any, *names: bytes) -> None:
    assert bare.client.delete(*map(bare.key, names)) == len(names)


def _mend(bare: Any) -> None:
    assert bare(bare.ops.prune(PruneRequest())) == 0


def _states(bare: Any) -> list[JobState]:
    return [row.state for row in bare(bare.ops.list_jobs(ListFilter(), None, 100)).jobs]


def _expired(bare: Any) -> Any:
    """What a watcher finds once all others are silent."""
    bare.advance(100)
    bare.open(WATCHER, 10)
    for _ in range(5):
        bare.advance(4)
        bare(bare.ops.session_beat(WATCHER, 10))
    return bare(bare.ops.expire(WATCHER, 10))


@pytest.mark.parametrize("end", ["finish", "close", "rescue"])
def test_a_job_that_is_gone_keeps_no_slot(bare: Any, audit: Audit, end: str) -> None:
    row = _running(bare, group="g", group_limit=2)
    gone = _running(bare, group="g", group_limit=2)
    bare.add(group="g", group_limit=2)
    assert bare.claim() == []
    _evict(bare, b"j:" + gone.id.bytes)
    if end == "finish":
        outcomes = bare(bare.ops.finish_many([Finish(gone.claim, "complete")]))
        assert outcomes[0].status == "GONE"
    elif end == "close":
        bare(bare.ops.session_close(OWN))
        bare.open(DEAD)
    else:
        assert [each.id for each in _expired(bare)] == [row.id]
    _mend(bare)
    audit(bare, gone=True)
    session = DEAD if end == "close" else WATCHER
    bare.open(session)
    assert len(bare.claim(9, session=session)) == (2 if end == "close" else 1)
    audit(bare, gone=True)


def test_what_is_gone_and_still_held_is_let_go(bare: Any, audit: Audit) -> None:
    gone, cancelled = _running(bare, group="g", group_limit=1), _running(bare)
    bare(bare.ops.change_many([Change(cancelled.id, "cancel")]))
    left = _running(bare)
    _evict(bare, b"j:" + gone.id.bytes, b"j:" + cancelled.id.bytes, b"gr", b"r")
    _mend(bare)
    assert bare(bare.ops.queue_stats()) == [QueueStats("default", running=1)]
    assert [row.id for row in bare(bare.ops.held(OWN, None, 9))] == [left.id]
    assert bare(bare.ops.session_beat(OWN, 60)).cancels == ()
    bare(bare.ops.finish_many([Finish(left.claim, "complete")]))
    bare(bare.ops.session_close(OWN))
    audit(bare, gone=True)


@pytest.mark.parametrize("lost", [b"c:" + DEAD.bytes, b"se", b"so"])
def test_a_job_that_nobody_holds_is_taken_back(bare: Any, audit: Audit, lost: bytes) -> None:
    row = _running(bare, DEAD, group="g", group_limit=1)
    bare.add()  # what runs is found among others
    if lost == b"se":
        assert [each.id for each in _expired(bare)] == [row.id]
    _evict(bare, lost)
    sums = bare(bare.ops.sums())
    assert (sums.counted, sums.held, sums.slots_agree, sums.all_placed) == (1, 0, False, True)
    assert bare(bare.ops.strays(9)) == [row.id]
    _mend(bare)
    assert bare(bare.ops.strays(9)) == []
    (found,) = _expired(bare)
    assert found.claim == row.claim
    bare(bare.ops.finish_many([Finish(found.claim, "release", rescue=True)]))
    assert _states(bare) == [JobState.AVAILABLE] * 2
    audit(bare)


def test_who_runs_it_still_ends_it(bare: Any, audit: Audit) -> None:
    row = _running(bare)
    _evict(bare, b"c:" + OWN.bytes)
    _mend(bare)
    assert bare(bare.ops.held(OWN, None, 9)) == [row]
    audit(bare)
    assert bare(bare.ops.finish_many([Finish(row.claim, "complete")]))[0].status == "DONE"
    audit(bare)


def test_nothing_is_mended_where_nothing_is_missing(bare: Any) -> None:
    bare.open()
    bare(bare.ops.insert_many([bare.job() for _ in range(1000)]))
    assert len(bare.ask(9, QueueFetch("default", 9)).jobs) == 9
    bare.calls = 0
    before = bare.dump()
    _mend(bare)
    assert bare.calls == 2
    assert bare.dump() == before


# ---------------------------------------------------------------- what waits, and what is finished


def _world(bare: Any) -> None:
    """Jobs of all sorts: running, waiting and finished."""
    hold = At(bare.clock.now() + timedelta(seconds=99))
    bare.open()
    bare.add()
    bare.add(unique_key=b"t" * 32, unique_hold=hold)
    bare.add(unique_key=b"d" * 32, unique_hold="until_deleted")
    bare.add(unique_key=b"a" * 32)
    bare(bare.ops.finish_many([Finish(row.claim, "complete") for row in bare.claim(4)]))
    for limit in (1, 2):
        for run_at in (None, None, None, After(50)):
            bare.add(group=f"g{limit}", group_limit=limit, priority=limit, run_at=run_at)
    bare.add(kind="fails")
    rows = bare.claim(3)
    assert len(rows) == 3
    bare(bare.ops.finish_many([Finish(rows[0].claim, "complete")]))
    (row,) = bare.ask(1, QueueFetch("default", 1, {"fails": 1})).jobs
    bare(bare.ops.finish_many([Finish(row.claim, "retry", After(40))]))
    for priority in (0, 7):
        for run_at in (None, After(30)):
            bare.add(priority=priority, run_at=run_at)


PLAIN = [b"l:0:p:7:default:work", b"l:7:p:7:default:work", b"l:0:p:7:default:fails"]
SHOWN = [b"l:1:g:7:default:work", b"l:2:g:7:default:work"]
HEADS = [b"h:7:default:work", b"hq:default", b"hg:default", b"gq:7:default:work", b"qs"]
LANES = [b"gl:g1", b"gl:g2", b"w:1:1:7:default:4:work:g1", b"w:2:2:7:default:4:work:g2"]
ENDS = [b"d:completed", b"dh:completed", b"dk:completed"]
SLOTS = [b"r", b"gr", b"c:" + OWN.bytes]
OTHERS = [b"f:default", b"h:p:7:default:work"]


@pytest.mark.parametrize("name", [*PLAIN, *HEADS, *ENDS, *SLOTS])
def test_what_is_gone_is_missed_and_put_back(bare: Any, audit: Audit, name: bytes) -> None:
    _world(bare)
    audit(bare)
    sums = bare(bare.ops.sums())
    assert sums.slots_agree
    assert sums.all_placed
    before = bare.dump()
    _evict(bare, name)
    _mend(bare)
    audit(bare)
    told = bare.key(b"told")
    assert bare.dump() | {told: None} == before | {told: None}


@pytest.mark.parametrize("name", [*SHOWN, *LANES, *OTHERS])
def test_what_is_missed_brings_back_the_rest(bare: Any, audit: Audit, name: bytes) -> None:
    """Nothing tells that one of these is gone, until something else is."""
    _world(bare)
    _evict(bare, b"qs")
    bare.client.delete(bare.key(name))
    _mend(bare)
    audit(bare)


@pytest.mark.parametrize("lost", [b"l:0:g:7:default:work", b"gl:g", b"w:1:0:7:default:4:work:g"])
def test_a_fetch_misses_what_is_gone_of_a_group(bare: Any, audit: Audit, lost: bytes) -> None:
    bare.open()
    ids = [bare.add(group="g", group_limit=1) for _ in range(3)]
    _evict(bare, lost)
    rows = bare.claim(1)
    _mend(bare)
    audit(bare)
    ran = []
    while rows := rows or bare.claim(9):
        ran += [row.id for row in rows]
        bare(bare.ops.finish_many([Finish(row.claim, "complete") for row in rows]))
        rows = []
    assert ran == ids
    audit(bare)


def test_a_group_that_is_full_misses_its_lane_when_it_goes_on(bare: Any, audit: Audit) -> None:
    row = _running(bare, group="g", group_limit=1)
    left = bare.add(group="g", group_limit=1)
    _evict(bare, b"w:1:0:7:default:4:work:g")
    bare(bare.ops.finish_many([Finish(row.claim, "complete")]))
    assert bare.claim() == []
    _mend(bare)
    audit(bare)
    assert [row.id for row in bare.claim()] == [left]


@pytest.mark.parametrize("lost", [b"gl:g", b"w:1:0:7:default:4:work:g"])
def test_who_waits_behind_what_is_gone_is_moved_to_its_place(bare: Any, lost: bytes) -> None:
    row = _running(bare, group="g", group_limit=1)
    left = bare.add(group="g", group_limit=1)
    _evict(bare, lost)
    bare(bare.ops.finish_many([Finish(row.claim, "complete")]))
    assert bare.claim() == []
    (changed,) = bare(bare.ops.change_many([Change(left, "reschedule", After(1))]))
    assert changed.status == "CHANGED"
    bare.advance(2)
    assert [row.id for row in bare.claim()] == [left]


def test_a_group_goes_on_behind_a_job_that_is_gone(bare: Any, audit: Audit) -> None:
    bare.open()
    gone, left = (bare.add(group="g", group_limit=1) for _ in range(2))
    _evict(bare, b"j:" + gone.bytes)
    assert bare.claim(9) == []
    _mend(bare)
    audit(bare)
    assert [row.id for row in bare.claim(9)] == [left]


@pytest.mark.parametrize("mended", [False, True])
def test_a_group_goes_on_when_its_count_was_gone(bare: Any, audit: Audit, mended: bool) -> None:
    row = _running(bare, group="g", group_limit=1)
    left = bare.add(group="g", group_limit=1)
    _evict(bare, b"gr")
    sums = bare(bare.ops.sums())
    assert (sums.counted, sums.held, sums.grouped, sums.grouped_held) == (1, 1, 0, 1)
    if mended:
        _mend(bare)
        audit(bare)
        assert bare.claim(9) == []
    bare(bare.ops.finish_many([Finish(row.claim, "complete")]))
    audit(bare)
    assert [row.id for row in bare.claim(9)] == [left]


def test_a_line_that_is_gone_has_nothing_due(bare: Any) -> None:
    bare.open()
    bare.add()
    _evict(bare, b"l:0:p:7:default:work")
    # Else who asks would ask again at once, and go on so.
    fetched = bare.ask(1)
    assert (fetched.jobs, fetched.next_due_in) == ([], inf)
    _mend(bare)
    assert bare.ask(1).jobs


def test_who_sleeps_is_woken_for_what_is_put_back(bare: Any) -> None:
    bare.open()
    bare.add()
    _evict(bare, b"h:7:default:work")
    assert bare.claim() == []
    assert not bare.client.sismember(bare.key(b"told"), "default")
    _mend(bare)
    assert bare.client.sismember(bare.key(b"told"), "default")


def test_what_is_gone_counts_no_more(bare: Any, audit: Audit) -> None:
    bare.open()
    ids = [bare.add() for _ in range(8)]
    _evict(bare, *[b"j:" + each.bytes for each in ids[:2]])
    assert bare(bare.ops.count(ListFilter())) == 8
    assert [row.id for row in bare.claim(4)] == ids[2:4]
    _mend(bare)
    assert bare(bare.ops.count(ListFilter())) == 6
    audit(bare)
    bare(bare.ops.change_many([Change(ids[4], "delete")]))
    _evict(bare, b"in")
    assert bare(bare.ops.count(ListFilter())) == 8
    _mend(bare)
    assert bare(bare.ops.count(ListFilter())) == 5
    audit(bare)
    _evict(bare, *[b"j:" + each.bytes for each in [*ids[2:4], *ids[5:]]])
    assert bare.claim(9) == []
    _mend(bare)
    assert bare(bare.ops.count(ListFilter())) == 0
    assert bare.client.keys(bare.key(b"i*")) == []
    audit(bare)


def test_nothing_is_left_of_what_is_gone(bare: Any, audit: Audit) -> None:
    bare.open()
    retried, parked, over = bare.add(), bare.add(group="g", group_limit=1), bare.add()
    first, second, third = bare.claim(3)
    error = AttemptError(1, bare.clock.now(), "E", "it failed")
    bare(bare.ops.finish_many([Finish(first.claim, "retry", After(9), error=error)]))
    bare(bare.ops.finish_many([Finish(second.claim, "retry", After(9), checkpoint=b"1")]))
    bare(bare.ops.finish_many([Finish(third.claim, "complete", output=b"1")]))
    _evict(bare, *[b"j:" + each.bytes for each in (retried, parked, over)])
    bare.client.set(bare.key(b"lost"), 1)
    _mend(bare)
    sums = bare(bare.ops.sums())
    assert (sums.indexed, sums.placed, sums.lost) == (0, 0, 0)
    bare.advance(10)
    assert bare.claim(9) == []
    _mend(bare)
    assert bare(bare.ops.queue_list()) == []
    names = {key.removeprefix(bare.keys.tag).split(b":")[0] for key in bare.client.keys(b"*")}
    # The lane is rid of it when the next comes.
    assert names == set(b"s so gl w".split())
    bare.add(group="g", group_limit=1)
    audit(bare)


def test_a_kind_without_lines_and_jobs_is_missed_once(bare: Any, audit: Audit) -> None:
    gone = bare.add()
    _evict(bare, b"j:" + gone.bytes, b"h:7:default:work")
    _mend(bare)
    sums = bare(bare.ops.sums())
    assert sums.slots_agree
    assert sums.all_placed
    assert bare(bare.ops.queue_list()) == []


def test_an_index_that_lacks_a_part_is_no_obstacle(bare: Any) -> None:
    bare.open()
    bare.add()
    _evict(bare, b"i:" + bytes(16), b"l:0:p:7:default:work")
    assert bare.claim() == []
    _mend(bare)
    job_id = bare.add()
    assert [row.id for row in bare.claim()] == [job_id]
    assert bare(bare.ops.count(ListFilter())) == 1


def test_it_goes_step_by_step(bare: Any, audit: Audit) -> None:
    for _ in range(4):
        bare(bare.ops.insert_many([bare.job() for _ in range(1000)]))
    line = b"l:0:p:7:default:work"
    before = bare.client.zrange(bare.key(line), 0, -1, withscores=True)
    _evict(bare, line)
    chunks = bare.client.zcard(bare.key(b"i"))
    assert chunks > 7
    bare.calls = 0
    _mend(bare)
    # The sums, two walks with their ends, the count, and the queues.
    assert bare.calls == 2 * (chunks + 1) + 3
    assert bare.client.zrange(bare.key(line), 0, -1, withscores=True) == before
    audit(bare)
