"""Retry policies: how long to wait after a failure, or that it was the last.

A policy is an object with :meth:`RetryPolicy.delay`, or simply a function::

    ExponentialRetry(cap=timedelta(minutes=10))
    by_error({RateLimited: FixedRetry(60), ValueError: NoRetry()})
    lambda attempt: 10 * attempt

The engine asks the policy only while attempts are left (``max_attempts``).
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, runtime_checkable

from goncordia._check import Duration, flag, mapping, number, refuse, seconds
from goncordia._typing import signature
from goncordia.errors import ConfigurationError

__all__ = [
    "DEFAULT_RETRY",
    "ExponentialRetry",
    "FixedRetry",
    "NoRetry",
    "RetryPolicy",
    "RetryRule",
    "as_policy",
    "by_error",
]


@runtime_checkable
class RetryPolicy(Protocol):
    """How long to wait before the next attempt."""

    def delay(
        self, attempt: int, error: BaseException | None, rng: random.Random, /
    ) -> float | None:
        """Seconds to wait, or None: no more attempts.

        Args:
            attempt: the number of the attempt that has failed, from 1.
            error: what the worker raised; None where that is not known, as when a job is taken
                back from a worker that died.
            rng: where randomness comes from.
        """


RetryRule: TypeAlias = (
    RetryPolicy
    | Callable[[int], Duration | None]
    | Callable[[int, BaseException | None], Duration | None]
)
"""What every ``retry_policy=`` takes: a policy, or a function of the attempt, or of the attempt and
the error, that gives seconds, a ``timedelta``, or None for no more attempts."""


@dataclass(frozen=True, slots=True, init=False)
class ExponentialRetry:
    """``base * factor ** (attempt - 1)``, at most ``cap``, by default with full jitter.

    Full jitter draws the delay evenly from 0 to that value, so that jobs which failed together do
    not come back together.

    Attributes:
        base: seconds after the first failure.
        factor: what each further failure multiplies them with, at least 1.
        cap: the longest delay in seconds.
        jitter: draw from 0 to the delay; False: the delay itself.

    Raises:
        ConfigurationError: a value is out of range.
    """

    base: float
    factor: float
    cap: float
    jitter: bool

    def __init__(
        self,
        base: Duration = 1.0,
        *,
        factor: float = 2.0,
        cap: Duration = 3600.0,
        jitter: bool = True,
    ) -> None:
        object.__setattr__(self, "base", seconds("ExponentialRetry.base", base))
        object.__setattr__(self, "factor", number("ExponentialRetry.factor", factor, 1, 1000))
        object.__setattr__(self, "cap", seconds("ExponentialRetry.cap", cap))
        object.__setattr__(self, "jitter", flag("ExponentialRetry.jitter", jitter))

    def delay(
        self, attempt: int, _error: BaseException | None, rng: random.Random, /
    ) -> float | None:
        """See :meth:`RetryPolicy.delay`."""
        try:
            longest = min(self.cap, self.base * self.factor ** (attempt - 1))
        except OverflowError:
            longest = self.cap
        return rng.uniform(0.0, longest) if self.jitter else longest


@dataclass(frozen=True, slots=True, init=False)
class FixedRetry:
    """The same delay after every failure.

    Attributes:
        seconds: the delay.

    Raises:
        ConfigurationError: it is no duration.
    """

    seconds: float

    def __init__(self, delay: Duration) -> None:
        object.__setattr__(self, "seconds", seconds("FixedRetry", delay, zero=True))

    def delay(
        self, _attempt: int, _error: BaseException | None, _rng: random.Random, /
    ) -> float | None:
        """See :meth:`RetryPolicy.delay`."""
        return self.seconds


@dataclass(frozen=True, slots=True)
class NoRetry:
    """The first failure is the last."""

    def delay(
        self, _attempt: int, _error: BaseException | None, _rng: random.Random, /
    ) -> float | None:
        """See :meth:`RetryPolicy.delay`."""
        return None


DEFAULT_RETRY: Final = ExponentialRetry()
"""One second, doubled after each failure, up to an hour, with full jitter."""


@dataclass(frozen=True, slots=True)
class _ByError:
    rules: Mapping[type[BaseException], RetryPolicy]
    otherwise: RetryPolicy

    def delay(
        self, attempt: int, error: BaseException | None, rng: random.Random, /
    ) -> float | None:
        for cls in type(error).__mro__:
            if (policy := self.rules.get(cls)) is not None:
                return policy.delay(attempt, error, rng)
        return self.otherwise.delay(attempt, error, rng)


@dataclass(frozen=True, slots=True)
class _Function:
    function: Callable[..., object]
    takes_error: bool

    def delay(
        self, attempt: int, error: BaseException | None, _rng: random.Random, /
    ) -> float | None:
        answer = self.function(attempt, error) if self.takes_error else self.function(attempt)
        return None if answer is None else seconds("retry_policy's answer", answer, zero=True)


def by_error(
    rules: Mapping[type[BaseException], RetryRule], otherwise: RetryRule = DEFAULT_RETRY
) -> RetryPolicy:
    """A policy for each type of error; the nearest base class counts.

    Args:
        rules: what applies to errors of this class and of its subclasses.
        otherwise: what applies to every other error, and where the error is not known.

    Raises:
        ConfigurationError: a key is no exception class, or a value no policy.
    """
    found: dict[type[BaseException], RetryPolicy] = {}
    given = mapping("by_error", rules, "a mapping of exception classes to policies")
    for cls, rule in given.items():
        key: object = cls
        if not isinstance(cls, type) or not issubclass(cls, BaseException):
            refuse("by_error: key", key, "an exception class")
        found[cls] = as_policy(f"by_error[{cls.__name__}]", rule)
    return _ByError(found, as_policy("by_error: otherwise", otherwise))


def as_policy(field: str, rule: object) -> RetryPolicy:
    """The policy that the rule stands for.

    Args:
        field: what the user calls it, for the error.
        rule: a :data:`RetryRule`; anything else is refused.

    Raises:
        ConfigurationError: it is neither, or takes the wrong number of arguments. A function that
            answers with something else than a duration or None raises it when it is asked.
    """
    if isinstance(rule, type):
        refuse(field, rule, f"an instance; write {rule.__name__}()")
    if isinstance(rule, RetryPolicy):
        return rule
    if not callable(rule) or inspect.iscoroutinefunction(rule):
        refuse(field, rule, "a retry policy or a plain function of the attempt")
    try:
        takes = signature(rule)
    except ValueError:  # written in C: no signature to look at
        return _Function(rule, takes_error=False)
    for arguments in ((1, None), (1,)):
        try:
            takes.bind(*arguments)
        except TypeError:
            continue
        return _Function(rule, takes_error=len(arguments) == 2)
    raise ConfigurationError(
        f"{field}: {rule!r} takes {takes}; a policy takes (attempt) or (attempt, error)"
    )
