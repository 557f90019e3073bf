"""The index of ids lists what a plain sorted set of them would."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goncordia.driver import Change, ListFilter

ALL = ListFilter()
NEWEST = UUID(int=2**128 - 1)


def _listed(bare: Any, limit: int = 1000) -> list[UUID]:
    ids: list[UUID] = []
    page = None
    while True:
        found = bare(bare.ops.list_jobs(ALL, page, limit))
        ids += [row.id for row in found.jobs]
        page = found.next
        if page is None:
            return ids


def _insert(bare: Any, ids: list[UUID]) -> None:
    for start in range(0, len(ids), 1000):
        jobs = [bare.job(id=each) for each in ids[start : start + 1000]]
        assert {one.status for one in bare(bare.ops.insert_many(jobs))} <= {"INSERTED"}


def _delete(bare: Any, ids: list[UUID]) -> None:
    changes = [Change(each, "delete") for each in ids]
    assert {one.status for one in bare(bare.ops.change_many(changes))} <= {"CHANGED"}


@pytest.mark.parametrize("order", ["upwards", "downwards", "anyhow", "two at once"])
def test_many_come_and_go(bare: Any, audit: Callable[[Any], None], order: str) -> None:
    rng = random.Random(order)
    ids = sorted(UUID(int=rng.getrandbits(128)) for _ in range(3000))
    came = list(ids)
    if order == "downwards":
        came.reverse()
    elif order == "anyhow":
        rng.shuffle(came)
    elif order == "two at once":
        came = [each for pair in zip(ids[:1500], ids[1500:], strict=True) for each in pair]
    for start in range(0, 3000, 170):
        _insert(bare, came[start : start + 170])
    assert _listed(bare) == ids[::-1]
    assert bare(bare.ops.count(ALL)) == 3000
    audit(bare)
    gone = set(rng.sample(ids, 2900))
    _delete(bare, list(gone))
    left = [each for each in reversed(ids) if each not in gone]
    assert _listed(bare, 7) == left
    assert bare(bare.ops.count(ALL)) == 100
    audit(bare)
    # What is gone takes no room: so many ids were 48 KB.
    stored = bare.dump()
    assert sum(len(held) for key, held in stored.items() if b":i:" in key) < 16 * 500
    _insert(bare, list(gone))
    assert _listed(bare) == ids[::-1]
    audit(bare)
    _delete(bare, ids)
    assert _listed(bare) == []
    assert not [key for key in bare.dump() if key.startswith(bare.key(b"i"))]


def test_any_order_of_inserts_and_deletes(
    make_bare: Callable[..., Any], audit: Callable[[Any], None]
) -> None:
    # Close together and far apart, the first and the last there are.
    some = st.one_of(
        st.integers(0, 300), st.integers(2**127, 2**127 + 300), st.just(2**128 - 1)
    ).map(lambda number: UUID(int=number))
    batches = st.lists(st.tuples(st.booleans(), st.lists(some, max_size=60, unique=True)))

    @settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
    @given(batches)
    def play(plan: list[tuple[bool, list[UUID]]]) -> None:
        bare, there = make_bare(), set[UUID]()
        for coming, ids in plan:
            if coming:
                _insert(bare, [each for each in ids if each not in there])
                there |= set(ids)
            else:
                _delete(bare, [each for each in ids if each in there])
                there -= set(ids)
            assert _listed(bare, 50) == sorted(there, reverse=True)
            assert bare(bare.ops.count(ALL)) == len(there)
        audit(bare)

    play()


def test_a_page_begins_below_its_bound(bare: Any) -> None:
    ids = [UUID(int=number) for number in (1, 2, 3)]
    _insert(bare, ids)
    first = bare(bare.ops.list_jobs(ALL, None, 2))
    assert [row.id for row in first.jobs] == [ids[2], ids[1]]
    _insert(bare, [NEWEST])
    rest = bare(bare.ops.list_jobs(ALL, first.next, 2))
    assert ([row.id for row in rest.jobs], rest.next) == ([ids[0]], None)


def test_a_full_page_of_large_jobs_comes_in_pieces(bare: Any) -> None:
    ids = [bare.add(args=bytes(1 << 20)) for _ in range(12)]
    bare.calls = 0
    page = bare(bare.ops.list_jobs(ALL, None, 10))
    assert [row.id for row in page.jobs] == ids[:1:-1]
    assert bare.calls > 2


def test_jobs_whose_part_of_the_index_is_gone_can_be_deleted(bare: Any) -> None:
    lost, later = UUID(int=1), UUID(int=2)
    _insert(bare, [lost, later])
    (part,) = [key for key in bare.dump() if key.startswith(bare.key(b"i:"))]
    bare.client.delete(part)
    _delete(bare, [lost])
    _delete(bare, [later])
    _insert(bare, [UUID(int=3)])
    assert _listed(bare) == [UUID(int=3)]
