"""Limits by key: which of the claimed jobs may start, and when the others shall come again.

A job that may not start goes back until there will be a token for it, each of a key a token later
than the one before: so each is claimed about twice and not again and again, and a key with many
jobs keeps nobody from the others.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final

from goncordia.clock import Clock
from goncordia.engine.buckets import Bucket, Rule
from goncordia.engine.logs import Failures
from goncordia.engine.shared_buckets import Grant, SharedBuckets
from goncordia.engine.tokens import local_time
from goncordia.errors import ConfigurationError
from goncordia.job import Job
from goncordia.limits import LimitKey

__all__ = ["KeySlots", "KeyedRate", "Later", "SharedKeyedRate", "key_of"]

_LONGEST: Final = 300.0
"""Seconds for which a job goes back at most, beyond the next token: the limit may be changed."""

_SWEEP: Final = 1000
_PAUSE: Final = 1.0
"""Seconds after which a job comes again when the backend gave no answer."""

_SLOT: Final = 0.1
"""The same for one whose key has as many running as it may."""


def key_of(place: str, key: LimitKey, job: Job[Any, Any]) -> str:
    """The job's key.

    Raises:
        ConfigurationError: the function raised, or gave no str; the attempt has failed.
    """
    try:
        found: Any = key(job)
    except Exception as error:
        raise ConfigurationError(f"{place}.key raised {type(error).__name__}") from error
    if not isinstance(found, str):
        raise ConfigurationError(f"{place}.key gave a {type(found).__name__}, not a str")
    return found


class Later:
    """When jobs that may not start now shall come again: one after the other.

    Args:
        interval: seconds between two of one key.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._last: dict[str, float] = {}
        self._sweep = _SWEEP

    def delay(self, key: str, now: float, wait: float) -> float:
        """Seconds for the next job of that key; not less than ``wait``."""
        at = max(self._last.get(key, 0.0) + self._interval, now + wait)
        at = min(at, now + max(_LONGEST, wait))
        self._last[key] = at
        if len(self._last) > self._sweep:
            self._last = {key: last for key, last in self._last.items() if last > now}
            self._sweep = max(_SWEEP, 2 * len(self._last))
        return at - now


class KeyedRate:
    """A bucket for each key, in this pool.

    Args:
        place: where the user wrote it.
        key: from a job to its key.
        rule: the rate.
        clock: the pool's.
    """

    def __init__(self, place: str, key: LimitKey, rule: Rule, clock: Clock) -> None:
        self._place = place
        self._key = key
        self._rule = rule
        self._time = local_time(clock)
        self._buckets: dict[str, Bucket] = {}
        self._later = Later(rule.interval)
        self._sweep = _SWEEP

    async def admit(self, job: Job[Any, Any]) -> float:
        """0: the job may start; else the seconds after which it shall come again."""
        key, now, rule = key_of(self._place, self._key, job), self._time(), self._rule
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = Bucket()
            self._forget(now)
        if rule.free(bucket, now) > 0:
            rule.take(bucket, now, 1)
            return 0.0
        return self._later.delay(key, now, rule.wait(bucket, now))

    def _forget(self, now: float) -> None:
        """Drop the buckets of keys that were quiet."""
        if len(self._buckets) <= self._sweep:
            return
        is_full = self._rule.is_full
        self._buckets = {key: one for key, one in self._buckets.items() if not is_full(one, now)}
        self._sweep = max(_SWEEP, 2 * len(self._buckets))


class SharedKeyedRate:
    """A bucket for each key, shared by all pools. Jobs that come together ask together.

    Args:
        place: where the user wrote it.
        key: from a job to its key.
        rule: the rate.
        buckets: the rate's.
        clock: the pool's.
    """

    def __init__(
        self, place: str, key: LimitKey, rule: Rule, buckets: SharedBuckets, clock: Clock
    ) -> None:
        self._place = place
        self._key = key
        self._buckets = buckets
        self._time = local_time(clock)
        self._later = Later(rule.interval)
        self._failures = Failures("asking for tokens of a rate limit")
        self._asking: list[tuple[str, asyncio.Future[Grant]]] = []
        self._task: asyncio.Task[None] | None = None

    async def admit(self, job: Job[Any, Any]) -> float:
        """0: the job may start; else the seconds after which it shall come again."""
        key = key_of(self._place, self._key, job)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Grant] = loop.create_future()
        self._asking.append((key, answer))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._ask())
        grant = await answer
        return 0.0 if grant.tokens else self._later.delay(key, self._time(), grant.wait)

    async def close(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for _, answer in self._asking:
            answer.cancel()

    async def _ask(self) -> None:
        while self._asking:
            asking, self._asking = self._asking, []
            wanted = Counter(key for key, answer in asking if not answer.done())
            try:
                granted = await self._buckets.take(wanted)
            except asyncio.CancelledError:
                for _, answer in asking:
                    answer.cancel()
                raise
            except Exception as error:  # noqa: BLE001  # whatever it is: they come again
                self._failures.failed(error)
                granted = dict.fromkeys(wanted, Grant(0, 0.0, _PAUSE))
            else:
                self._failures.succeeded()
            left = {key: grant.tokens for key, grant in granted.items()}
            for key, answer in asking:
                if answer.done():
                    continue  # interrupted meanwhile; a token that was for it is lost
                grant = granted[key]
                has = left[key] > 0
                left[key] -= has
                answer.set_result(grant if has else Grant(0, 0.0, grant.wait))


class KeySlots:
    """How many jobs of each key run in this pool.

    Args:
        place: where the user wrote it.
        key: from a job to its key.
        limit: how many may.
        clock: the pool's.
    """

    def __init__(self, place: str, key: LimitKey, limit: int, clock: Clock) -> None:
        self._place = place
        self._key = key
        self._limit = limit
        self._running: Counter[str] = Counter()
        self._later = Later(_SLOT / limit)
        self._clock = clock

    def enter(self, job: Job[Any, Any]) -> tuple[str, float]:
        """The key, and 0: the job may start; else the seconds after which it shall come again."""
        key = key_of(self._place, self._key, job)
        if self._running[key] < self._limit:
            self._running[key] += 1
            return key, 0.0
        return key, self._later.delay(key, self._clock.monotonic(), _SLOT)

    def leave(self, key: str) -> None:
        """A job of that key has ended."""
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
