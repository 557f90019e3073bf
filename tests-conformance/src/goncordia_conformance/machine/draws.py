"""What the machine draws: jobs, finishes and fetches, before they meet the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from hypothesis import strategies as st

from goncordia.driver import After, ChangeAction, FinishTo

__all__ = [
    "LEASES",
    "FinishSpec",
    "JobSpec",
    "QueueSpec",
    "WhenSpec",
    "change_specs",
    "finishes",
    "index",
    "jobs",
    "offsets",
    "queues",
    "sometimes",
    "whens",
]

LEASES = (9.0, 30.0)

WhenSpec: TypeAlias = After | int | None
"""An offset stands for a point in time: so many seconds from now."""


@dataclass(frozen=True)
class JobSpec:
    """A job; ``key`` and ``group`` are left out where the driver does not claim them."""

    kind: str
    queue: str
    priority: int
    run_at: WhenSpec
    key: int | None
    hold: Literal["active", "until_deleted"] | int
    group: tuple[str, int] | None
    max_attempts: int | None
    tags: tuple[str, ...]


@dataclass(frozen=True)
class FinishSpec:
    """A finish of the claim that was given ``claim`` claims ago."""

    claim: int
    to: FinishTo
    when: WhenSpec
    error: bool
    output: bytes | None
    checkpoint: bytes | None
    rescue: bool


@dataclass(frozen=True)
class QueueSpec:
    """One queue of a fetch; ``kinds`` are left out where the driver does not claim them."""

    name: str
    limit: int
    kinds: dict[str, int] | None = None
    skip: frozenset[str] = frozenset()


index = st.integers(0, 40)
sometimes = st.sampled_from([True, False, False])
offsets = st.sampled_from([-10, 0, 3, 20])
whens: st.SearchStrategy[WhenSpec] = st.one_of(
    st.none(), st.sampled_from([After(0), After(3), After(40)]), offsets
)

jobs = st.builds(
    JobSpec,
    kind=st.sampled_from("kl"),
    queue=st.sampled_from("ab"),
    priority=st.sampled_from([0, 0, 5, -5]),
    run_at=st.one_of(st.none(), st.none(), whens),
    key=st.sampled_from([None, None, None, 1, 2]),
    hold=st.sampled_from(["active", "active", "until_deleted", 15]),
    group=st.sampled_from([None, None, ("g", 1), ("g", 2), ("h", 1)]),
    max_attempts=st.sampled_from([None, 1, 3]),
    tags=st.sampled_from([(), ("t",)]),
)

ends: list[FinishTo] = ["complete", "retry", "snooze", "release", "discard", "cancel"]
finishes = st.builds(
    FinishSpec,
    claim=index,
    to=st.sampled_from(ends),
    when=st.one_of(st.none(), whens),
    error=sometimes,
    output=st.sampled_from([None, b"1"]),
    checkpoint=st.sampled_from([None, None, b"2", b"3"]),
    rescue=sometimes,
)

queues = st.lists(
    st.builds(
        QueueSpec,
        name=st.sampled_from("ab"),
        limit=st.integers(1, 4),
        kinds=st.sampled_from([None, None, {"k": 2}, {"k": 1, "l": 1}]),
        skip=st.sampled_from([frozenset[str](), frozenset[str](), frozenset({"g"})]),
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda spec: spec.name,
)

actions: list[ChangeAction] = ["cancel", "retry", "reschedule", "delete"]
change_specs = st.lists(
    st.tuples(index, st.sampled_from(actions), whens),
    min_size=1,
    max_size=3,
)
