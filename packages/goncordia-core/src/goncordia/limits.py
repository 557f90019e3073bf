"""Limits of a pool's queues and kinds: how often jobs start, how many of a key run at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from goncordia import _check
from goncordia._check import Duration
from goncordia._handlers import is_async
from goncordia.errors import ConfigurationError
from goncordia.job import Job

__all__ = ["KeyLimit", "KindPolicy", "LimitKey", "QueuePolicy", "RateLimit"]

LimitKey: TypeAlias = Callable[[Job[Any, Any]], str]
"""What jobs share a limit by, such as ``lambda job: job.args.tenant``."""

_SCOPES: Final = ("local", "global")
_ALGORITHMS: Final = ("gcra", "fixed_window")


@dataclass(frozen=True)
class RateLimit:
    """At most so many jobs start in so much time.

    ::

        RateLimit(10, per=timedelta(seconds=1))
        RateLimit(100, per=3600, scope="global", key=lambda job: job.args.tenant)

    Attributes:
        limit: how many jobs.
        per: in how much time: seconds or a ``timedelta``.
        burst: how many may start at once after a quiet time, with ``"gcra"``. Default: ``limit``.
        scope: ``"local"``: each pool for itself; ``"global"``: all pools with the same queue or
            kind together.
        key: jobs of each key have a limit of their own; None: all have one together.
        algorithm: ``"gcra"``: tokens come back evenly; ``"fixed_window"``: all at once, at times
            that are multiples of ``per`` since 1970.

    Raises:
        ConfigurationError: a value is wrong, or ``per`` is missing.
    """

    limit: int
    per: Duration | None = None
    burst: int | None = None
    scope: Literal["local", "global"] = "local"
    key: LimitKey | None = None
    algorithm: Literal["gcra", "fixed_window"] = "gcra"

    def __post_init__(self) -> None:
        _check.whole("RateLimit: limit", self.limit, 1)
        if self.per is None:
            raise ConfigurationError(
                f"RateLimit: per is missing: {self.limit} in what time? give per=1 (a second), or "
                "a timedelta"
            )
        _check.seconds("RateLimit: per", self.per)
        if self.burst is not None:
            _check.whole("RateLimit: burst", self.burst, 1)
        if self.scope not in _SCOPES:
            _check.refuse("RateLimit: scope", self.scope, "'local' or 'global'")
        if self.algorithm not in _ALGORITHMS:
            _check.refuse("RateLimit: algorithm", self.algorithm, "'gcra' or 'fixed_window'")
        if self.algorithm == "fixed_window" and self.burst is not None:
            raise ConfigurationError("RateLimit: burst: a fixed window has none; leave it out")
        if self.key is not None:
            _checked_key("RateLimit: key", self.key)


@dataclass(frozen=True)
class KeyLimit:
    """At most so many jobs of one key run at once in a pool.

    Attributes:
        limit: how many.
        key: from the job to its key.

    Raises:
        ConfigurationError: a value is wrong.
    """

    limit: int
    key: LimitKey

    def __post_init__(self) -> None:
        _check.whole("KeyLimit: limit", self.limit, 1)
        _checked_key("KeyLimit: key", self.key)


def _checked_key(field: str, key: object) -> None:
    if not callable(key) or isinstance(key, type) or is_async(key):
        _check.refuse(field, key, "a plain function of a job, which gives a str")


@dataclass(frozen=True)
class _Policy:
    concurrency: int | None = None
    rate: RateLimit | Sequence[RateLimit] | None = None
    per_key: KeyLimit | None = None

    def __post_init__(self) -> None:
        if self.concurrency is not None:
            _check.whole("concurrency", self.concurrency, 1)
        for index, rate in enumerate(self.rates):
            _check.instance(f"rate[{index}]", rate, RateLimit, "a RateLimit")
        if self.per_key is not None:
            _check.instance("per_key", self.per_key, KeyLimit, "a KeyLimit")

    @property
    def rates(self) -> tuple[RateLimit, ...]:
        """The rates, however they were given."""
        if self.rate is None:
            return ()
        if isinstance(self.rate, RateLimit):
            return (self.rate,)
        right = "a RateLimit, or a sequence of such"
        rates: Sequence[Any] = _check.sequence("rate", self.rate, right)
        return tuple(rates)


@dataclass(frozen=True)
class QueuePolicy(_Policy):
    """What a pool keeps to for one of its queues.

    Attributes:
        concurrency: at most so many of the queue's jobs run in the pool at once; None: no limit
            of its own.
        rate: how often they start: a ``RateLimit``, or several that all hold.
        per_key: how many of one key run in the pool at once.

    Raises:
        ConfigurationError: a value is wrong.
    """


@dataclass(frozen=True)
class KindPolicy(_Policy):
    """What a pool keeps to for one kind of job.

    Attributes:
        concurrency: at most so many jobs of the kind run in the pool at once; None: no limit of
            its own.
        rate: how often they start: a ``RateLimit``, or several that all hold.
        per_key: how many of one key run in the pool at once.

    Raises:
        ConfigurationError: a value is wrong.
    """
