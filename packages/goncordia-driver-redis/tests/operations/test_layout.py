"""Whatever is done, everything that is stored fits the jobs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goncordia.driver import (
    After,
    At,
    AttemptError,
    Change,
    Finish,
    Mark,
    PruneRequest,
    QueueFetch,
)

SESSIONS = [UUID(int=1), UUID(int=2)]

jobs = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["a", "b"]),
        "queue": st.sampled_from(["q", "z"]),
        "priority": st.sampled_from([0, 0, 3, -2]),
        "run_at": st.sampled_from([None, None, After(5), After(-5)]),
        "max_attempts": st.sampled_from([None, 1, 3]),
        "group": st.sampled_from([None, None, "g", "h"]),
        "group_limit": st.sampled_from([1, 2]),
        "unique_key": st.sampled_from([None, None, b"k" * 32, b"K" * 32]),
        "unique_hold": st.sampled_from(["active", "until_deleted", 3]),
    }
)
ends = st.sampled_from(["complete", "retry", "snooze", "release", "discard", "cancel"])
whens = st.sampled_from([None, After(4), After(-1)])
number = st.integers(0, 40)
steps = st.one_of(
    st.tuples(st.just("insert"), st.lists(jobs, min_size=1, max_size=6)),
    st.tuples(
        st.just("fetch"),
        st.integers(0, 1),
        st.integers(0, 4),
        st.lists(
            st.tuples(
                st.sampled_from(["q", "z"]),
                st.integers(0, 4),
                st.sampled_from([None, {"a": 1, "b": 2}, {"a": 5}]),
                st.sampled_from([frozenset(), frozenset({"g"})]),
            ),
            max_size=2,
        ),
        st.lists(st.tuples(number, ends, whens), max_size=3),
    ),
    st.tuples(st.just("finish"), st.lists(st.tuples(number, ends, whens), min_size=1, max_size=4)),
    st.tuples(st.just("mark"), number),
    st.tuples(
        st.just("change"),
        st.lists(
            st.tuples(number, st.sampled_from(["cancel", "retry", "reschedule", "delete"]), whens),
            min_size=1,
            max_size=4,
        ),
    ),
    st.tuples(st.just("close"), st.integers(0, 1)),
    st.tuples(st.just("expire"), st.integers(0, 1)),
    st.tuples(st.just("prune"), st.integers(0, 10)),
    st.tuples(st.just("wait"), st.sampled_from([0.5, 3.0, 6.0])),
)


class Play:
    """Plays steps; what it picks of its jobs and claims is picked by number."""

    def __init__(self, bare: Any) -> None:
        self.bare = bare
        self.ids: list[UUID] = []
        self.claims: list[Any] = []

    def step(self, what: str, *values: Any) -> None:
        getattr(self, what)(*values)

    def insert(self, specs: list[dict[str, Any]]) -> None:
        jobs = []
        for spec in specs:
            fields = dict(spec)
            if fields["unique_hold"] == 3:
                fields["unique_hold"] = At(self.bare.clock.now() + timedelta(seconds=3))
            jobs.append(self.bare.job(**fields))
        self.ids += [job.id for job in jobs]
        self.bare(self.bare.ops.insert_many(jobs))

    def fetch(self, who: int, limit: int, queues: list[Any], some: list[Any]) -> None:
        bare = self.bare
        for session in SESSIONS:
            bare.open(session, 8)
        request = bare.request(SESSIONS[who], limit, [QueueFetch(*queue) for queue in queues])
        _, fetched = bare(bare.ops.exchange(self.finishes(some), request))
        self.claims += [row.claim for row in fetched.jobs]

    def finishes(self, some: list[Any]) -> list[Finish]:
        error = AttemptError(1, self.bare.clock.now(), "ValueError", "no")
        return [
            Finish(self.claims[at % len(self.claims)], to, when, error, b"1", b"2", at % 5 == 0)
            for at, to, when in some
            if self.claims
        ]

    def finish(self, some: list[Any]) -> None:
        self.bare(self.bare.ops.finish_many(self.finishes(some)))

    def mark(self, at: int) -> None:
        if self.claims:
            claim = self.claims[at % len(self.claims)]
            self.bare(self.bare.ops.mark_many([Mark(claim, started=True, checkpoint=b"3")]))

    def change(self, some: list[Any]) -> None:
        changes = [
            Change(self.ids[at % len(self.ids)], action, when)
            for at, action, when in some
            if self.ids
        ]
        self.bare(self.bare.ops.change_many(changes))

    def close(self, who: int) -> None:
        self.bare(self.bare.ops.session_close(SESSIONS[who]))

    def expire(self, who: int) -> None:
        self.bare(self.bare.ops.expire(SESSIONS[who], 3))

    def prune(self, limit: int) -> None:
        now = self.bare.clock.now()
        self.bare(self.bare.ops.prune(PruneRequest(completed=now, cancelled=now, limit=limit)))

    def wait(self, seconds: float) -> None:
        self.bare.advance(seconds)


@pytest.mark.parametrize("keep_finished", [None, 2])
def test_everything_fits_the_jobs(
    make_bare: Callable[..., Any], audit: Callable[[Any], None], keep_finished: int | None
) -> None:
    @settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(steps, min_size=3, max_size=25))
    def play(plan: list[Any]) -> None:
        bare = make_bare(keep_finished=keep_finished)
        game = Play(bare)
        for step in plan:
            game.step(*step)
            audit(bare)

    play()
