"""Keys that were evicted, or deleted by hand: what runs, is held and is counted comes in step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from goncordia.driver import (
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
    sums = bare(bare.ops.running())
    assert (sums.counted, sums.held) == (1, 0)
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
