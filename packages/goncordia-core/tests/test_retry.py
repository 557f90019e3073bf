from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goncordia.errors import ConfigurationError
from goncordia.retry import (
    DEFAULT_RETRY,
    ExponentialRetry,
    FixedRetry,
    NoRetry,
    RetryPolicy,
    as_policy,
    by_error,
)

RNG = random.Random(1)


def delays(policy: RetryPolicy, attempts: int = 5) -> list[float | None]:
    return [policy.delay(attempt, None, RNG) for attempt in range(1, attempts + 1)]


def test_exponential_without_jitter_doubles_up_to_the_cap() -> None:
    policy = ExponentialRetry(1, cap=timedelta(seconds=6), jitter=False)
    assert delays(policy) == [1.0, 2.0, 4.0, 6.0, 6.0]


def test_the_default_is_one_second_doubled_up_to_an_hour_with_full_jitter() -> None:
    spelled_out = ExponentialRetry(1.0, factor=2.0, cap=3600.0, jitter=True)
    assert spelled_out == DEFAULT_RETRY


@given(st.integers(1, 10**9), st.floats(0.001, 1000), st.floats(1, 1000), st.integers())
def test_jitter_stays_between_zero_and_the_full_delay(
    attempt: int, base: float, factor: float, seed: int
) -> None:
    full = ExponentialRetry(base, factor=factor, jitter=False).delay(attempt, None, RNG)
    some = ExponentialRetry(base, factor=factor).delay(attempt, None, random.Random(seed))
    assert full is not None
    assert some is not None
    assert 0 <= some <= full <= 3600


def test_the_same_seed_gives_the_same_delays() -> None:
    first, again = (
        [DEFAULT_RETRY.delay(n, None, rng) for n in range(1, 9)]
        for rng in (random.Random(7), random.Random(7))
    )
    assert first == again


def test_fixed_and_none() -> None:
    assert delays(FixedRetry(timedelta(seconds=3)), 2) == [3.0, 3.0]
    assert delays(FixedRetry(0), 1) == [0.0]
    assert delays(NoRetry(), 2) == [None, None]


def test_by_error_takes_the_nearest_class() -> None:
    policy = by_error(
        {OSError: FixedRetry(1), ConnectionError: FixedRetry(2), ValueError: NoRetry()},
        otherwise=FixedRetry(9),
    )
    answers = {
        error: policy.delay(1, error, RNG)
        for error in (ConnectionResetError(), FileNotFoundError(), UnicodeError(), KeyError(), None)
    }
    assert list(answers.values()) == [2.0, 1.0, None, 9.0, 9.0]


def test_functions_of_one_or_two() -> None:
    assert delays(as_policy("p", lambda attempt: 10 * attempt), 2) == [10.0, 20.0]
    two = as_policy("p", lambda attempt, error: None if error else timedelta(seconds=attempt))
    assert two.delay(4, None, RNG) == 4.0
    assert two.delay(4, KeyError(), RNG) is None
    assert as_policy("p", DEFAULT_RETRY) is DEFAULT_RETRY


def test_a_function_that_answers_nonsense_is_told() -> None:
    answers: list[object] = [-1, "soon", float("nan")]
    policy = as_policy("p", lambda attempt: answers[attempt])
    for attempt in range(3):
        with pytest.raises(ConfigurationError, match=r"^retry_policy's answer: "):
            policy.delay(attempt, None, RNG)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (5, "p: 5 is not a retry policy or a plain function of the attempt"),
        (None, "p: None is not a retry policy"),
        (NoRetry, "write NoRetry()"),
        (lambda: 1, "a policy takes (attempt) or (attempt, error)"),
        (lambda a, b, c: 1, "a policy takes (attempt) or (attempt, error)"),
        (asyncio.sleep, "is not a retry policy or a plain function"),
    ],
)
def test_what_is_no_policy(rule: object, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        as_policy("p", rule)
    assert message in str(caught.value)


def test_bad_numbers() -> None:
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: ExponentialRetry(0), "ExponentialRetry.base: 0 "),
        (lambda: ExponentialRetry(factor=0.5), "ExponentialRetry.factor: 0.5 "),
        (lambda: ExponentialRetry(cap=-1), "ExponentialRetry.cap: -1 "),
        (lambda: ExponentialRetry(jitter=1), "ExponentialRetry.jitter: 1 "),  # type: ignore[arg-type]
        (lambda: FixedRetry(-1), "FixedRetry: -1 "),
        (lambda: by_error({1: NoRetry()}), "by_error: key: 1 "),  # type: ignore[dict-item]
        (lambda: by_error([]), "by_error: [] "),  # type: ignore[arg-type]
        (lambda: by_error({ValueError: 3}), "by_error[ValueError]: 3 "),  # type: ignore[dict-item]
    ]
    for make, message in cases:
        with pytest.raises(ConfigurationError) as caught:
            make()
        assert str(caught.value).startswith(message)
