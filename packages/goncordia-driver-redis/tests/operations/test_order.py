"""The order of jobs, to the last byte of their ids."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from goncordia.driver import After, Finish, QueueFetch

# They differ only behind a NUL, or in a byte that some locales order otherwise.
CLOSE = [
    b"\x00" * 15 + b"\x01",
    b"\x00" * 15 + b"\x02",
    b"\x01" + b"\x00" * 14 + b"\x7f",
    b"\x01" + b"\x00" * 14 + b"\x80",
    b"\x01" + b"\x00" * 14 + b"\xe4",
    b"\x01\x00" + b"a" * 14,
    b"\x01\x00" + b"a" * 13 + b"b",
    b"\x80" + b"\x00" * 15,
    b"\xff" * 15 + b"\x00",
    b"\xff" * 16,
]


@pytest.mark.parametrize("kinds", [1, 3])
def test_equal_times_go_by_id(bare: Any, kinds: int) -> None:
    ids = [UUID(bytes=each) for each in CLOSE]
    jobs = [bare.job(id=each, kind=f"k{n % kinds}") for n, each in enumerate(ids)]
    random.Random(1).shuffle(jobs)
    bare(bare.ops.insert_many(jobs))
    bare.open()
    claimed = bare.claim(4) + bare.claim(10)
    assert [row.id for row in claimed] == ids


def test_priority_then_time_then_id_over_all_kinds(bare: Any) -> None:
    rng = random.Random(2)
    for _ in range(200):
        bare.add(
            kind=rng.choice("abc"),
            priority=rng.choice([-32768, -1, 0, 0, 7, 32767]),
            run_at=After(-rng.randrange(5)),
        )
    bare.open()
    claimed = [row for limit in (1, 2, 50, 300) for row in bare.claim(limit)]
    assert len(claimed) == 200
    assert claimed == sorted(claimed, key=lambda row: (-row.priority, row.run_at, row.id))


@pytest.mark.parametrize("levels", [100, 3000])
def test_many_priorities(bare: Any, audit: Callable[[Any], None], levels: int) -> None:
    rng = random.Random(levels)
    middle = levels // 2
    jobs = [
        bare.job(
            kind=rng.choice("ab"),
            priority=rng.randrange(levels) - middle,
            run_at=After(rng.choice([-1, 0, 99])),
            group=rng.choice([None, None, "g"]),
            group_limit=1000,
        )
        for _ in range(1000)
    ]
    jobs += [bare.job(priority=0, kind=kind) for kind in "aab"]
    for start in range(0, len(jobs), 100):
        bare(bare.ops.insert_many(jobs[start : start + 100]))
    audit(bare)
    bare.open()
    claimed = bare.claim(1)
    for kinds in (None, {"a": 3, "b": 90}, {"b": 400}, None):
        claimed_now = bare.ask(200, QueueFetch("default", 200, kinds)).jobs
        order = sorted(claimed_now, key=lambda row: (-row.priority, row.run_at, row.id))
        assert claimed_now == order
        if kinds is None:
            claimed += claimed_now
        else:
            assert {row.kind for row in claimed_now} <= kinds.keys()
            assert sum(row.kind == "a" for row in claimed_now) <= kinds.get("a", 0)
            bare(bare.ops.finish_many([Finish(row.claim, "release") for row in claimed_now]))
        audit(bare)
    claimed += bare.claim(1000)
    audit(bare)
    assert len(claimed) == sum(job.run_at != After(99) for job in jobs)
    assert claimed == sorted(claimed, key=lambda row: (-row.priority, row.run_at, row.id))


def test_a_queue_that_is_asked_twice_gives_each_job_once(bare: Any) -> None:
    ids = [bare.add() for _ in range(6)]
    bare.open()
    result = bare.ask(10, QueueFetch("default", 2), QueueFetch("default", 3))
    assert [row.id for row in result.jobs] == ids[:5]
    assert (result.more, result.next_due_in) == (True, 0)


def test_kinds_with_their_own_limits_over_priorities(bare: Any) -> None:
    high = bare.add(kind="a", priority=5)
    bare.add(kind="a")
    other = [bare.add(kind="b") for _ in range(3)]
    bare.open()
    result = bare.ask(9, QueueFetch("default", 9, {"a": 1, "b": 2, "c": 3}))
    assert [row.id for row in result.jobs] == [high, *other[:2]]
    assert result.more


def test_more_than_a_call_gives(bare: Any) -> None:
    for _ in range(2):
        bare(bare.ops.insert_many([bare.job() for _ in range(700)]))
    bare.open()
    first = bare.ask(1400)
    second = bare.ask(1400)
    assert [len(first.jobs), first.more, len(second.jobs), second.more] == [1000, True, 400, False]


def test_just_as_many_as_a_call_gives_are_fewer_than_were_asked_for(bare: Any) -> None:
    bare(bare.ops.insert_many([bare.job() for _ in range(1000)]))
    bare.open()
    result = bare.ask(1400)
    assert (len(result.jobs), result.more, result.next_due_in) == (1000, False, float("inf"))
    # Who asked may sleep now: the next job is told.
    assert bare.key(b"told") not in bare.dump()


def test_a_claim_hides_the_heads_of_its_group_in_other_lines(bare: Any) -> None:
    bare.open()
    first = bare.add(kind="a", group="g", group_limit=2)
    second = bare.add(kind="b", group="g", group_limit=2)
    bare.add(kind="c", group="g", group_limit=2)
    other = bare.add(kind="c", group="h", group_limit=1)
    assert [row.id for row in bare.claim(9)] == [first, second, other]


def test_skipped_groups_are_read_past(bare: Any) -> None:
    for _ in range(70):
        bare.add(group="a", group_limit=1000)
    for _ in range(70):
        bare.add(group=f"g{_}", group_limit=1)
    wanted = bare.add(group="b", group_limit=1)
    bare.open()
    skip = frozenset(["a", *(f"g{n}" for n in range(70))])
    result = bare.ask(5, QueueFetch("default", 5, None, skip))
    assert [row.id for row in result.jobs] == [wanted]
    assert (result.more, result.next_due_in) == (False, float("inf"))
    assert len(bare.claim(200)) == 71 + 69
