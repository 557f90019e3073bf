from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from goncordia.driver import (
    FINISHED_STATES,
    After,
    Change,
    FetchRequest,
    Finish,
    JobRow,
    JobState,
    ListFilter,
    NewJob,
    QueueFetch,
    row_matches,
)
from goncordia.errors import InvalidCursorError
from goncordia_sql.ops import listing

New = Callable[..., NewJob]
SESSION = UUID(int=1)


@pytest.fixture
def filled(bare: Any, new_job: New) -> Any:
    """Jobs in every state, with all that can be filtered by."""
    rng = random.Random(4)
    bare.run(bare.ops.sessions.session_open(SESSION, "w", 60.0))
    for number in range(20):
        jobs = [
            new_job(
                kind=rng.choice("kl"),
                queue=rng.choice(["a", "b"]),
                tags=tuple(rng.sample(["x", "y", "z"], rng.randint(0, 3))),
                group=rng.choice([None, "g"]),
                group_limit=2,
                run_at=rng.choice([None, None, After(1000)]),
            )
            for _ in range(4)
        ]
        bare.run(bare.ops.insert.insert_many(jobs))
        request = FetchRequest(SESSION, number, 3, (QueueFetch("a", 3), QueueFetch("b", 3)))
        finishes = []
        for row in bare.run(bare.ops.fetch.fetch(request)).jobs:
            to: Any = rng.choice(["complete", "retry", "discard", "cancel", None])
            if to is not None:
                finishes.append(Finish(row.claim, to, After(500) if to == "retry" else None))
        bare.run(bare.ops.finish.finish_many(finishes))
        bare.run(bare.ops.change.change_many([Change(jobs[0].id, "cancel")]))
        bare.clock.advance(1)
    return bare


def everything(bare: Any) -> list[JobRow]:
    jobs: list[JobRow] = bare.run(bare.ops.listing.list_jobs(ListFilter(), None, 1000)).jobs
    return jobs


def filters(rows: list[JobRow]) -> list[ListFilter]:
    rng = random.Random(5)
    middle = rows[len(rows) // 2].created_at

    def some(of: Any) -> Any:
        return frozenset(rng.sample(sorted(of), rng.randint(0, 2)))

    return [
        ListFilter(
            states=some(JobState),
            kinds=rng.choice([frozenset(), frozenset("k")]),
            queues=rng.choice([frozenset(), frozenset("a"), frozenset("ab")]),
            tags=rng.choice([frozenset(), frozenset("x"), frozenset("xy")]),
            group=rng.choice([None, None, "g"]),
            created_from=rng.choice([None, None, middle]),
            created_until=rng.choice([None, None, middle + timedelta(seconds=2)]),
        )
        for _ in range(150)
    ] + [ListFilter(states=frozenset({state})) for state in JobState]


@pytest.mark.parametrize("few", [0, 1000], ids=["by id", "by state"])
def test_what_is_listed_and_counted_is_what_matches(
    filled: Any, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(listing, "_FEW", few)
    rows = everything(filled)
    assert {row.state for row in rows} == set(JobState)
    for where in filters(rows):
        expected = [row for row in rows if row_matches(row, where)]
        found = filled.run(filled.ops.listing.list_jobs(where, None, 1000))
        assert (found.jobs, found.next) == (expected, None), where
        assert filled.run(filled.ops.listing.count(where)) == len(expected), where


@pytest.mark.parametrize(
    "states",
    [frozenset[JobState](), frozenset({JobState.RUNNING, JobState.SCHEDULED}), FINISHED_STATES],
    ids=["all", "unfinished", "finished"],
)
def test_pages_follow_one_another(filled: Any, states: frozenset[JobState]) -> None:
    where = ListFilter(states=states)
    expected = [row for row in everything(filled) if row_matches(row, where)]
    seen: list[JobRow] = []
    page = None
    while True:
        found = filled.run(filled.ops.listing.list_jobs(where, page, 3))
        seen += found.jobs
        page = found.next
        if page is None:
            break
        assert len(found.jobs) == 3
    assert seen == expected


def test_foreign_cursors_are_refused(filled: Any) -> None:
    page = filled.run(filled.ops.listing.list_jobs(ListFilter(), None, 3)).next
    other = ListFilter(kinds=frozenset("k"))
    for where, cursor, why in [
        (other, page, "other filters"),
        (ListFilter(), b"", "not given by this driver"),
        (ListFilter(), page + b"x", "not given by this driver"),
    ]:
        with pytest.raises(InvalidCursorError, match=why):
            filled.run(filled.ops.listing.list_jobs(where, cursor, 3))


def test_the_statements_of_filters_are_kept_but_not_without_end(
    bare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_MOST_SHAPES", 3)
    shapes = [ListFilter(tags=frozenset(map(str, range(n)))) for n in range(8)]
    first = bare.ops.listing.shape("count", shapes[0])
    assert bare.ops.listing.shape("count", shapes[0]) is first
    for shape in shapes:
        bare.run(bare.ops.listing.count(shape))
        assert len(bare.ops.listing._shapes) <= 3
