"""Rule 8: what a fetch looks at does not grow with what it does not take."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from goncordia.driver import After, At, QueueFetch

from .box import START, Box, seconds

MANY = 10_000


def fill(box: Box, count: int, **fields: object) -> None:
    box.store.insert_many([box.job(**fields) for _ in range(count)], box.now)


def backlog(box: Box) -> None:
    fill(box, MANY)


def finished(box: Box) -> None:
    fill(box, MANY)
    for row in box.fetch(limit=MANY).jobs:
        assert row.claim is not None
        box.finish(row.claim, "complete")


def cancelled(box: Box) -> None:
    jobs = [box.job() for _ in range(MANY)]
    box.store.insert_many(jobs, box.now)
    for job in jobs:
        box.change(job.id, "cancel")


def scheduled(box: Box) -> None:
    fill(box, MANY, run_at=After(60), priority=9)


def scheduled_at_many_priorities(box: Box) -> None:
    jobs = [box.job(run_at=After(60), priority=number % 30_000) for number in range(MANY)]
    box.store.insert_many(jobs, box.now)


def parked(box: Box) -> None:
    fill(box, MANY, group="g", group_limit=1, priority=9)
    assert len(box.fetch().jobs) == 1


def due_later_in_a_full_group(box: Box) -> None:
    fill(box, 1, group="g", group_limit=1)
    fill(box, MANY, group="g", group_limit=1, priority=9, run_at=After(1))
    assert len(box.fetch().jobs) == 1
    box.tick(1)


def other_queues(box: Box) -> None:
    for number in range(100):
        fill(box, MANY // 100, queue=f"other {number}")


def other_kinds(box: Box) -> None:
    for number in range(100):
        fill(box, MANY // 100, kind=f"other {number}", priority=9)


def group_to_leave(box: Box) -> None:
    fill(box, MANY, group="left", group_limit=MANY, priority=9)


def nothing(box: Box) -> None:
    del box


@pytest.mark.parametrize(
    "around",
    [
        nothing,
        backlog,
        finished,
        cancelled,
        scheduled,
        scheduled_at_many_priorities,
        parked,
        due_later_in_a_full_group,
        other_queues,
        other_kinds,
        group_to_leave,
    ],
    ids=lambda around: around.__name__,
)
def test_fetch_is_flat(around: Callable[[Box], None]) -> None:
    box = Box()
    around(box)
    wanted = QueueFetch("default", 10, {"k": 10}, frozenset({"left"}))
    fill(box, 10, run_at=At(START - seconds(1)))
    before = box.store.touched
    assert len(box.fetched(wanted)) == 10
    assert box.store.touched - before <= 25
    before = box.store.touched
    box.fetch(QueueFetch("default", 0))
    box.fetch("empty")
    assert box.store.touched - before == 0


def test_fetch_is_flat_amid_a_hundred_thousand_rows_of_every_sort() -> None:
    box = Box()
    finished(box)
    for around in (scheduled, parked, other_queues, other_kinds, group_to_leave):
        around(box)
    fill(box, 5 * MANY)
    assert len(box.store.jobs) > 100_000
    wanted = QueueFetch("default", 10, {"k": 10}, frozenset({"left"}))
    before = box.store.touched
    assert len(box.fetched(wanted)) == 10
    assert box.store.touched - before <= 25


def test_what_becomes_due_at_once_is_not_looked_at_at_once() -> None:
    box = Box()
    fill(box, MANY, run_at=After(60))
    assert box.fetched() == []
    box.tick(60)
    before = box.store.touched
    assert len(box.fetched(limit=10)) == 10
    assert box.store.touched - before <= 25


def test_many_groups_that_become_full_and_free_again() -> None:
    box = Box()
    jobs = [box.job(group=f"g{n % 1000}", group_limit=1) for n in range(20_000)]
    box.store.insert_many(jobs, box.now)
    rows = box.fetch(limit=2000).jobs
    assert len(rows) == 1000
    for row in rows:
        assert row.claim is not None
        box.finish(row.claim, "complete")
    before = box.store.touched
    assert len(box.fetched(limit=100)) == 100
    assert box.store.touched - before <= 250
