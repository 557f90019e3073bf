"""The seeds of CI: the same two thousand each time, and in the long run some new ones."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable

import pytest

from .seed import simulate

FULL = os.environ.get("GONCORDIA_FULL") == "1"
FIXED = 20_000 if FULL else 2_000
NEW = 2_000
PART = 100

pytestmark = pytest.mark.timeout(600)  # seconds of work, on a machine that may be crowded


def run(seeds: Iterable[int]) -> None:
    for seed in seeds:
        verdict = simulate(seed)
        if verdict.broken:
            pytest.fail(
                f"seed {seed}: {', '.join(verdict.broken)}\n"
                f"repeat it: python packages/goncordia-core/tests/simulation -v {seed}"
            )


@pytest.mark.parametrize("first", range(0, FIXED, PART))
def test_fixed_seeds(first: int) -> None:
    run(range(first, first + PART))


@pytest.mark.skipif(not FULL, reason="GONCORDIA_FULL is not set: the same seeds each time")
@pytest.mark.parametrize("part", range(NEW // PART))
def test_new_seeds(part: int) -> None:
    seeds = random.SystemRandom().sample(range(FIXED, 2**40), PART)
    print(f"new seeds: {seeds}")
    run(seeds)
