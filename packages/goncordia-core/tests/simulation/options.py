"""What a seed is made of, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass

from .network import Faults

__all__ = ["Options", "Verdict"]


@dataclass(frozen=True)
class Options:
    """What a seed is made of.

    Attributes:
        faults: how bad the network is; None: each seed its own.
        jobs: how many jobs, at least and at most.
        kinds: how often each kind of job is enqueued.
        hot_admin: cancels, each soon followed by a retry, all the time; None: now and then.
        focus: something always befalls the processes, and while one of these is under way.
        records: sessions are records and not the backend's own; None: now and then.
        cron: there are periodic jobs and schedulers; None: now and then.
        limits: pools keep to rates and limits by key; None: now and then.
        weak: the backend does all that the contract allows a weak one.
        keep_trace: keep the trace as text, for a person.
    """

    faults: Faults | None = None
    jobs: tuple[int, int] = (20, 45)
    kinds: tuple[int, int, int, int] = (60, 22, 15, 3)
    hot_admin: bool | None = None
    focus: tuple[str, ...] = ()
    records: bool | None = None
    cron: bool | None = None
    limits: bool | None = None
    weak: bool = True
    keep_trace: bool = False


@dataclass(frozen=True)
class Verdict:
    """What came of a seed.

    Attributes:
        seed: the seed.
        broken: which rules were broken, and how often.
        first: when the first was broken, and which.
        counts: what happened how often.
        digest: of the trace; the same seed gives the same.
        trace: the trace, if it was kept.
    """

    seed: int
    broken: dict[str, int]
    first: tuple[float, str] | None
    counts: dict[str, int]
    digest: str
    trace: list[str]
