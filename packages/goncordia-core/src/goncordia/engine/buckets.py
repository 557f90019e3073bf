"""Token buckets, as arithmetic: what is free now, and when the next token comes.

A bucket is two numbers. For GCRA ``at`` is the time until which tokens are spent: each one moves it
on by one interval, and it may be ahead of now by the burst. For a fixed window ``at`` is the
window's start, and ``used`` what was spent in it.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from goncordia._check import seconds
from goncordia.limits import RateLimit

__all__ = ["Bucket", "Rule"]

_ROUNDING: Final = 1e-3
"""Of a token; times since 1970 are exact to less than a microsecond."""

_INEXACT: Final = 1e-6
"""Seconds: more than the rounding of a time since 1970."""

_CLOCKS: Final = 60.0
"""Seconds that the clocks of two machines may differ by, where the backend has none of its own."""


_AT_HAND: Final = 0.1
"""Seconds for which a token that has come over the network may be used, however soon it is over."""


class Bucket(msgspec.Struct, array_like=True, gc=False):
    """The state of one bucket."""

    at: float = 0.0
    used: int = 0


class Rule:
    """The arithmetic of one rate.

    Attributes:
        interval: seconds that one token stands for.
        per: the rate's own unit.
    """

    def __init__(self, rate: RateLimit) -> None:
        self.per = seconds("RateLimit: per", rate.per)
        self._limit = rate.limit
        self._burst = rate.burst or rate.limit
        self._fixed = rate.algorithm == "fixed_window"
        self.interval = self.per / rate.limit

    def free(self, bucket: Bucket, now: float) -> int:
        """How many tokens can be taken now."""
        self._doubt(bucket, now)
        if self._fixed:
            return self._limit - (bucket.used if bucket.at >= self._window(now) else 0)
        ahead = max(bucket.at - now, 0.0) / self.interval
        return max(0, math.floor(self._burst - ahead + _ROUNDING))

    def take(self, bucket: Bucket, now: float, tokens: int) -> float:
        """Take tokens that are free; gives what :meth:`give_back` asks for."""
        if self._fixed:
            if bucket.at < (window := self._window(now)):
                bucket.at, bucket.used = window, 0
            bucket.used += tokens
            return bucket.at
        base = max(bucket.at, now)
        bucket.at = base + tokens * self.interval
        return base

    def give_back(self, bucket: Bucket, now: float, tokens: int, base: float) -> None:
        """Return unused tokens, less what a full bucket would have lost meanwhile."""
        if self._fixed:
            if bucket.at == base:
                bucket.used = max(0, bucket.used - tokens)
            return
        bucket.at -= max(0.0, tokens * self.interval - max(0.0, now - base))

    def lasts(self, base: float, number: int, now: float) -> float:
        """Seconds for which one of the tokens that were taken together may wait for its use.

        Used later, it would come on top of those that the bucket has got instead meanwhile.

        Args:
            base: what :meth:`take` gave.
            number: which of them, from 0.
            now: when they were taken.
        """
        if self._fixed:
            # Of windows that are shorter than the way to the backend, none would ever be used.
            spare = _AT_HAND if self.per < 10 * _AT_HAND else -_INEXACT
            return base + self.per + spare - now
        return base + number * self.interval - now + max(self.interval, _AT_HAND)

    def wait(self, bucket: Bucket, now: float) -> float:
        """Seconds until a token is free; 0: one is."""
        if self.free(bucket, now) > 0:
            return 0.0
        if self._fixed:
            return max(0.0, bucket.at + self.per - now) + _INEXACT
        return max(_ROUNDING * self.interval, bucket.at - (self._burst - 1) * self.interval - now)

    def is_full(self, bucket: Bucket, now: float) -> bool:
        """Whether it is as good as new, and need not be kept."""
        return bucket.at < self._window(now) if self._fixed else bucket.at <= now

    def _doubt(self, bucket: Bucket, now: float) -> None:
        """Begin anew with what this rule, by this clock, cannot have come to."""
        furthest = self.per if self._fixed else self._burst * self.interval
        if bucket.at > now + furthest + _CLOCKS:
            bucket.at, bucket.used = 0.0, 0

    def _window(self, now: float) -> float:
        return math.floor(now / self.per) * self.per
