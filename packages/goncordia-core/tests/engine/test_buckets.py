"""The arithmetic of token buckets: as many tokens as the rate allows, never more."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goncordia.engine.buckets import Bucket, Rule
from goncordia.limits import RateLimit

EPOCH = 1_767_225_600.0


def drained(rule: Rule, bucket: Bucket, now: float) -> int:
    free = rule.free(bucket, now)
    if free:
        rule.take(bucket, now, free)
    return free


def test_gcra_bursts_and_then_comes_back_evenly() -> None:
    rule, bucket = Rule(RateLimit(10, per=1, burst=4)), Bucket()
    assert drained(rule, bucket, EPOCH) == 4
    assert rule.wait(bucket, EPOCH) == pytest.approx(0.1, rel=1e-4)
    assert [drained(rule, bucket, EPOCH + 0.1 * n) for n in range(1, 6)] == [1] * 5
    assert drained(rule, bucket, EPOCH + 100) == 4


def test_the_burst_is_the_limit_unless_said() -> None:
    assert Rule(RateLimit(7, per=60)).free(Bucket(), EPOCH) == 7


def test_a_fixed_window_comes_back_at_once() -> None:
    rule, bucket = Rule(RateLimit(3, per=60, algorithm="fixed_window")), Bucket()
    assert drained(rule, bucket, EPOCH + 59) == 3
    assert rule.wait(bucket, EPOCH + 59) == pytest.approx(1.0, rel=1e-4)
    assert drained(rule, bucket, EPOCH + 59.9) == 0
    assert drained(rule, bucket, EPOCH + 60) == 3


@pytest.mark.parametrize("algorithm", ["gcra", "fixed_window"])
def test_what_is_given_back_at_once_was_never_taken(algorithm: Any) -> None:
    rule, bucket = Rule(RateLimit(5, per=60, algorithm=algorithm)), Bucket()
    rule.take(bucket, EPOCH + 1, 2)
    base = rule.take(bucket, EPOCH + 1, 3)
    rule.give_back(bucket, EPOCH + 1, 3, base)
    assert rule.free(bucket, EPOCH + 1) == 3


def test_what_is_given_back_late_makes_no_more_than_a_burst() -> None:
    """Ten are held while the bucket fills up again; others take ten; the ten that come back are
    those that would have overflowed."""
    rule, bucket = Rule(RateLimit(1, per=1, burst=10)), Bucket()
    base = rule.take(bucket, EPOCH, 10)
    assert drained(rule, bucket, EPOCH + 10) == 10
    rule.give_back(bucket, EPOCH + 10, 10, base)
    assert rule.free(bucket, EPOCH + 10) == 0


def test_a_bucket_of_another_rule_or_clock_is_begun_anew() -> None:
    hourly, quick = Rule(RateLimit(1, per=3600)), Rule(RateLimit(10, per=1))
    bucket = Bucket()
    hourly.take(bucket, EPOCH, 1)
    assert quick.free(bucket, EPOCH + 1) == 10


@given(
    limit=st.integers(1, 50),
    per=st.floats(0.01, 100),
    burst=st.integers(1, 50),
    algorithm=st.sampled_from(["gcra", "fixed_window"]),
    seed=st.integers(0, 2**32),
)
def test_never_more_than_the_rate(
    limit: int, per: float, burst: int, algorithm: Any, seed: int
) -> None:
    options: dict[str, Any] = {"burst": burst} if algorithm == "gcra" else {}
    rule, bucket = Rule(RateLimit(limit, per=per, algorithm=algorithm, **options)), Bucket()
    rng = random.Random(seed)
    now, taken = EPOCH, []
    for _ in range(60):
        now += rng.choice([0.0, rule.interval / 3, rule.interval, per, 3 * per]) * rng.random()
        wait = rule.wait(bucket, now)
        free = rule.free(bucket, now)
        assert (wait == 0.0) is (free > 0)
        if not free:
            later = Bucket(bucket.at, bucket.used)
            assert rule.free(later, now + wait) >= 1
            continue
        number = rng.randint(1, free)
        base = rule.take(bucket, now, number)
        if rng.random() < 0.2:
            now += rng.random() * rule.interval
            rule.give_back(bucket, now, number, base)
        else:
            taken.append((now, number))
    for start, _ in taken:
        for length in (per, 5 * per):
            within = sum(number for at, number in taken if start <= at < start + length)
            if algorithm == "gcra":
                assert within <= burst + length / rule.interval + 1e-2
            else:
                assert within <= limit * (length / per + 1) + 1e-2


@given(
    limit=st.integers(1, 50),
    per=st.floats(0.01, 100),
    burst=st.integers(1, 50),
    fixed=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_tokens_that_are_kept_as_long_as_they_last_make_no_larger_burst(
    limit: int, per: float, burst: int, fixed: bool, seed: int
) -> None:
    """Each is used at some time before it is over: later by a token's time than the rate has it."""
    algorithm: Any = "fixed_window" if fixed else "gcra"
    rule, bucket = Rule(RateLimit(limit, per=per, algorithm=algorithm)), Bucket()
    if not fixed:
        rule = Rule(RateLimit(limit, per=per, burst=burst))
    rng = random.Random(seed)
    now, used = EPOCH, []
    for _ in range(40):
        now += rng.choice([0.0, rule.interval, per, 3 * per]) * rng.random()
        number = rule.free(bucket, now)
        if not number:
            continue
        base = rule.take(bucket, now, number)
        last = [rule.lasts(base, index, now) for index in range(number)]
        assert last == sorted(last)
        assert last[0] > -1e-5
        used += [now + rng.choice([0.0, rng.random(), 1.0]) * lasts for lasts in last]
    if fixed and per >= 1:
        windows = Counter(math.floor(at / per) for at in used)
        assert max(windows.values()) <= limit
    if not fixed:
        late = max(rule.interval, 0.1)
        for start in used:
            for length in (0.0, per, 5 * per):
                within = sum(start <= at <= start + length for at in used)
                assert within <= burst + (length + late) / rule.interval + 1e-2
