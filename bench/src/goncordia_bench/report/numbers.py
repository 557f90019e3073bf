"""How figures are written."""

from __future__ import annotations

from goncordia_bench.harness.stats import Spread

__all__ = ["figure", "ratio", "spread"]

_GROUPED_FROM = 1000


def figure(value: float, unit: str = "") -> str:
    """A figure with three digits that mean something: ``12,300 jobs/s``, ``0.0123 commits``."""
    if value == 0:
        text = "0"
    elif abs(value) >= _GROUPED_FROM:
        digits = len(str(int(abs(value)))) - 3
        text = f"{round(value, -digits):,.0f}"
    else:
        text = f"{value:#.3g}".rstrip(".")
    return f"{text} {unit}".rstrip()


def ratio(value: float) -> str:
    """A ratio: ``0.84x``."""
    return f"{value:.3g}x" if value >= 10 else f"{value:.2f}x"


def spread(found: Spread, *, is_ratio: bool, unit: str = "") -> str:
    """A median with the lowest and the highest."""
    if is_ratio:
        text, low, high = ratio(found.median), ratio(found.low), ratio(found.high)
        low = low.removesuffix("x")
        high = high.removesuffix("x")
    else:
        text, low, high = figure(found.median, unit), figure(found.low), figure(found.high)
    return text if found.low == found.high else f"{text} ({low} to {high})"
