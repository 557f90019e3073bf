"""Every fetch of a random history, compared with sorting all jobs of the store."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from math import inf

import pytest

from goncordia.driver import (
    After,
    At,
    ChangeAction,
    FetchRequest,
    FinishTo,
    JobState,
    QueueFetch,
)
from goncordia.memory import Store
from goncordia.memory.job import Job, derive_state

from .box import Box, seconds

QUEUES = ("a", "b", "c")
KINDS = ("k", "l", "m")
GROUPS = (None, None, None, "g", "h")
ENDS: tuple[FinishTo, ...] = ("complete", "retry", "release", "snooze", "discard")
ACTIONS: tuple[ChangeAction, ...] = ("cancel", "retry", "reschedule", "delete")


def candidates(store: Store, queue: QueueFetch, now: datetime) -> list[Job]:
    """Due jobs of the queue that the request allows, in order; groups not yet considered."""
    jobs = [
        job
        for job in store.jobs.values()
        if derive_state(job, now) is JobState.AVAILABLE
        and job.new.queue == queue.name
        and (queue.kinds is None or queue.kinds.get(job.new.kind, 0) > 0)
        and job.new.group not in queue.skip_groups
    ]
    return sorted(jobs, key=Job.order)


def running(store: Store) -> Counter[str | None]:
    return Counter(job.new.group for job in store.jobs.values() if job.state is JobState.RUNNING)


def expected(store: Store, request: FetchRequest, now: datetime) -> list[Job]:
    busy = running(store)
    taken: list[Job] = []
    for queue in request.queues:
        mine: Counter[str] = Counter()
        for job in candidates(store, queue, now):
            full = job.new.group is not None and busy[job.new.group] >= job.new.group_limit
            no_room = mine.total() >= queue.limit or len(taken) >= request.limit
            of_kind = queue.limit if queue.kinds is None else queue.kinds[job.new.kind]
            if not full and not no_room and mine[job.new.kind] < of_kind:
                mine[job.new.kind] += 1
                busy[job.new.group] += 1
                taken.append(job)
    return taken


def expected_due_in(store: Store, request: FetchRequest, now: datetime) -> float:
    """After the fetch: 0 if there is more to claim, else until the next job is due."""
    if expected(store, request, now):
        return 0
    asked = {queue.name: queue for queue in request.queues if queue.limit > 0}
    times = [
        job.run_at
        for job in store.jobs.values()
        if job.state is None
        and job.run_at > now
        and (queue := asked.get(job.new.queue)) is not None
        and (queue.kinds is None or queue.kinds.get(job.new.kind, 0) > 0)
    ]
    return (min(times) - now).total_seconds() if times else inf


class History:
    """A random history on one store."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.box = Box()
        self.fetches = 0
        self.claimed = 0

    def step(self) -> None:
        getattr(
            self,
            self.random.choices(
                ("insert", "fetch", "finish", "change", "tick"), (30, 25, 25, 12, 8)
            )[0],
        )()

    def insert(self) -> None:
        pick = self.random.choice
        group = pick(GROUPS)
        self.box.insert(
            queue=pick(QUEUES),
            kind=pick(KINDS),
            priority=pick((-1, 0, 0, 0, 5)),
            run_at=pick((None, None, After(pick((1, 5, 30))), At(self.box.now - seconds(3)))),
            group=group,
            group_limit=0 if group is None else pick((1, 2, 2, 3)),
        )

    def request(self) -> FetchRequest:
        pick = self.random.choice
        names = self.random.sample(QUEUES, pick((1, 2, 3)))
        self.fetches += 1
        queues = tuple(
            QueueFetch(
                name,
                pick((0, 1, 3, 50)),
                pick((None, None, {"k": 2, "l": 0}, {"m": 1, "x": 4, "y": 1, "z": 1})),
                pick((frozenset(), frozenset(), frozenset({"g"}))),
            )
            for name in names
        )
        return FetchRequest(self.box.session, self.fetches, pick((1, 2, 5, 50)), queues)

    def fetch(self) -> None:
        request, store, now = self.request(), self.box.store, self.box.now
        want = [job.new.id for job in expected(store, request, now)]
        result = store.fetch(request, now)
        assert [row.id for row in result.jobs] == want
        assert result.next_due_in == expected_due_in(store, request, now)
        assert result.more is (result.next_due_in == 0)
        self.claimed += len(want)

    def finish(self) -> None:
        for row in self.box.store.held(self.box.session, None, 3, self.box.now):
            assert row.claim is not None
            to = self.random.choice(ENDS)
            when = self.random.choice((None, After(4)))
            assert self.box.finish(row.claim, to, when).status == "DONE"

    def change(self) -> None:
        if self.box.store.jobs:
            job = self.random.choice(list(self.box.store.jobs.values()))
            action = self.random.choice(ACTIONS)
            self.box.change(job.new.id, action, After(2) if action == "reschedule" else None)

    def tick(self) -> None:
        self.box.tick(self.random.choice((0.5, 1, 5)))


def shown(store: Store) -> Iterator[int]:
    for lines in store.waiting._queues.values():
        for line in lines.values():
            for lane in line._lanes.values():
                for order in lane:
                    yield order[2]


def check_parking(store: Store) -> None:
    """A group shows the first job of each lane where it has room, and no other."""
    busy = running(store)
    lanes: dict[tuple[object, ...], list[Job]] = {}
    for job in store.jobs.values():
        if job.state is None:
            new = job.new
            key = (new.group, new.group_limit, new.queue, new.kind, new.priority)
            lanes.setdefault(key, []).append(job)
    want: set[int] = set()
    for (group, limit, *_), jobs in lanes.items():
        assert isinstance(limit, int)
        if group is None:
            want |= {job.key for job in jobs}
        elif isinstance(group, str) and busy[group] < limit:
            want.add(min(jobs, key=Job.order).key)
    assert sorted(shown(store)) == sorted(want)
    assert {job.key for job in store.jobs.values() if job.shown} == want


@pytest.mark.parametrize("seed", range(60))
def test_a_random_history(seed: int) -> None:
    history = History(seed)
    for _ in range(250):
        history.step()
        check_parking(history.box.store)
    assert history.claimed > 10


def test_when_all_is_deleted_nothing_is_left_behind() -> None:
    history = History(1234)
    for _ in range(400):
        history.step()
    box = history.box
    while history.box.store.held(box.session, None, 1, box.now):
        history.finish()
    for job in list(box.store.jobs.values()):
        assert box.change(job.new.id, "delete").status == "CHANGED"
    waiting = box.store.waiting
    assert not waiting._queues
    assert not waiting._groups
    assert not box.store.unfinished
    assert not any(box.store.finished.values())
    assert not list(box.store.ids)
