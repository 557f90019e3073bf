"""Limits in a simulation: what the pools are told, and whether they keep to it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from typing import Any

from goncordia import Job, KeyLimit, KindPolicy, QueuePolicy, RateLimit
from goncordia._check import seconds
from goncordia.driver import JobRow

__all__ = ["Rates"]

_QUEUE = "default"
_KEYED = "plain"
_SLOTTED = "steps"


def _queue_of(job: Job[Any, Any]) -> str:
    return job.queue


class Rates:
    """The limits of one seed, the same in all of its pools.

    Without the backend's time shared rates are left out: their buckets go by the clocks of the
    machines then, which are hours apart here.

    Args:
        seed: decides; by a source of its own, so that all else stays as it is without limits.
        wanted: whether there are any; None: chance decides.
        shared: whether pools may share rates.
    """

    def __init__(self, seed: int, *, wanted: bool | None, shared: bool) -> None:
        rng = random.Random(f"limits {seed}")
        self.on = rng.random() < 0.3 if wanted is None else wanted
        self._all = self._rate(rng, shared=shared)
        self._by_key = self._rate(rng, shared=shared, key=_queue_of)
        self._started: Counter[str] = Counter()

    def _rate(self, rng: random.Random, *, shared: bool, **more: Any) -> RateLimit:
        return RateLimit(
            rng.choice([1, 2]),
            per=rng.choice([1, 2, 3]),
            burst=rng.choice([1, 2, 5]),
            scope="global" if shared else "local",
            **more,
        )

    def settings(self, kinds: Collection[str]) -> dict[str, dict[str, Any]]:
        """What a pool with these kinds is told."""
        if not self.on:
            return {"queue_policies": {}, "kind_policies": {}}
        of_kinds = {
            _KEYED: KindPolicy(rate=self._by_key),
            _SLOTTED: KindPolicy(per_key=KeyLimit(1, _queue_of)),
        }
        return {
            "queue_policies": {_QUEUE: QueuePolicy(rate=self._all)},
            "kind_policies": {kind: one for kind, one in of_kinds.items() if kind in kinds},
        }

    def starts(self, row: JobRow, now: float, beside: list[JobRow]) -> str | None:
        """A job starts, beside others of the same process; what is wrong with it.

        More than a rate may start in a moment, when a frozen pool goes on. But whatever befalls
        the pools, no more starts in all than there ever were tokens.
        """
        if not self.on:
            return None
        if row.kind == _SLOTTED:
            same = [one for one in beside if (one.kind, one.queue) == (row.kind, row.queue)]
            if len(same) > 1:
                return "a pool runs more of a key than its limit"
        for rate, key in (
            (self._all, "all" if row.queue == _QUEUE else None),
            (self._by_key, row.queue if row.kind == _KEYED else None),
        ):
            if rate.scope == "local" or key is None:
                continue
            self._started[key] += 1
            per, burst = seconds("per", rate.per), rate.burst or rate.limit
            if self._started[key] > burst + (now + 0.1) * rate.limit / per:
                return "more jobs have started than there were tokens"
        return None
