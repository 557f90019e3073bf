"""No job of a group waits in vain, and none is claimed out of order, whatever happens."""

from __future__ import annotations

import contextlib
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goncordia.driver import After, Change, FetchRequest, Finish, JobRow, NewJob, QueueFetch
from goncordia_sql.states import Stored

SESSION = UUID(int=1)
SEEDS = st.integers(0, 2**32)


class World:
    """Jobs of two groups with mixed limits, in two queues, of two kinds."""

    def __init__(self, bare: Any, new_job: Callable[..., NewJob], seed: int) -> None:
        self.bare = bare
        self.new_job = new_job
        self.rng = random.Random(seed)
        self.fetches = 0
        self.running: list[JobRow] = []
        bare.run(bare.ops.sessions.session_open(SESSION, "w", 60.0))

    def step(self) -> None:
        self.rng.choice(
            [self.insert, self.insert, self.fetch, self.finish, self.change, self.wait, self.close]
        )()
        self.check()

    def insert(self) -> None:
        fields: dict[str, Any] = {
            "group": self.rng.choice("gh"),
            "group_limit": self.rng.choice([1, 1, 2, 3]),
            "queue": self.rng.choice("ab"),
            "kind": self.rng.choice("kl"),
            "priority": self.rng.randint(0, 1),
            "run_at": self.rng.choice([None, None, After(1)]),
        }
        jobs = [self.new_job(**fields) for _ in range(self.rng.randint(1, 4))]
        self.rng.shuffle(jobs)
        self.bare.run(self.bare.ops.insert.insert_many(jobs))

    def fetch(self) -> None:
        self.fetches += 1
        kinds = self.rng.choice([None, {"k": 1, "l": 1}, {"k": 9}])
        queues = tuple(QueueFetch(name, 3, kinds) for name in self.rng.choice(["ab", "b"]))
        request = FetchRequest(SESSION, self.fetches, self.rng.randint(1, 5), queues)
        self.running += self.bare.run(self.bare.ops.fetch.fetch(request)).jobs

    def finish(self) -> None:
        self.rng.shuffle(self.running)
        ended = [self.running.pop() for _ in range(min(len(self.running), self.rng.randint(1, 3)))]
        finishes = [
            Finish(row.claim, self.rng.choice(["complete", "retry", "release", "snooze"]))
            for row in ended
            if row.claim
        ]
        self.bare.run(self.bare.ops.finish.finish_many(finishes))

    def change(self) -> None:
        query = "SELECT id FROM goncordia_job WHERE state < ? ORDER BY random() LIMIT 2"
        found = self.bare.connection.execute(query, (Stored.RUNNING,)).fetchall()
        changes = [
            Change(
                UUID(bytes=job_id),
                self.rng.choice(["cancel", "retry", "reschedule", "delete"]),
                After(self.rng.choice([-1, 0, 1])),
            )
            for (job_id,) in found
        ]
        self.bare.run(self.bare.ops.change.change_many(changes))

    def wait(self) -> None:
        self.bare.clock.advance(self.rng.choice([0.1, 1.0]))

    def close(self) -> None:
        """The session ends, rarely; another takes over."""
        if self.rng.random() < 0.8:
            return
        self.bare.run(self.bare.ops.sessions.session_close(SESSION))
        self.running = []
        self.bare.run(self.bare.ops.sessions.session_open(SESSION, "w", 60.0))

    def check(self) -> None:
        """While a group has room, the first of each class that would fit are not parked."""
        rows = self.bare.connection.execute(
            "SELECT group_name, queue, kind, group_limit, state FROM goncordia_job "
            "WHERE state IN (1, 2, 3) ORDER BY nice, run_at, id"
        ).fetchall()
        running: dict[str, int] = defaultdict(int)
        waiting: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for *group_class, state in rows:
            if state == Stored.RUNNING:
                running[group_class[0]] += 1
            else:
                waiting[tuple(group_class)].append(state)
        assert set(running.values()) <= {0, 1, 2, 3}
        for group_class, states in waiting.items():
            room = max(0, group_class[3] - running[group_class[0]])
            assert Stored.PARKED not in states[:room], (group_class, running, states)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_nobody_waits_in_vain(
    make_bare: Callable[[], Any], new_job: Callable[..., NewJob], seed: int
) -> None:
    with contextlib.closing(make_bare()) as bare:
        world = World(bare, new_job, seed)
        for _ in range(40):
            world.step()


@pytest.mark.parametrize("limit", [1, 3])
def test_a_group_is_worked_off_in_order(
    bare: Any, new_job: Callable[..., NewJob], limit: int
) -> None:
    jobs = [new_job(group="g", group_limit=limit, priority=n % 2) for n in range(20)]
    bare.run(bare.ops.insert.insert_many(jobs))
    bare.run(bare.ops.sessions.session_open(SESSION, "w", 60.0))
    worked: list[UUID] = []
    for number in range(20):
        request = FetchRequest(SESSION, number, 5, (QueueFetch("default", 5),))
        rows = bare.run(bare.ops.fetch.fetch(request)).jobs
        assert len(rows) <= limit
        worked += [row.id for row in rows]
        bare.run(bare.ops.finish.finish_many([Finish(row.claim, "complete") for row in rows]))
    expected = sorted(jobs, key=lambda job: (-job.priority, job.id.int))
    assert worked == [job.id for job in expected]
