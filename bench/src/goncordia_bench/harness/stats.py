"""Medians, spreads and verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from goncordia_bench.harness.model import Case, Key, Measure, Sample

__all__ = ["Result", "Spread", "evaluate", "percentile"]


@dataclass(frozen=True, slots=True)
class Spread:
    """A median, and the lowest and the highest of all rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of at least one value."""
        known = list(values)
        return cls(median(known), min(known), max(known))


@dataclass(frozen=True, slots=True)
class Result:
    """What a measure came to.

    Attributes:
        measure: which.
        value: the ratio, or the figure that stands for itself.
        of: the figure.
        against: the figure that it was divided by.
        rounds: how many rounds gave it.
    """

    measure: Measure
    value: Spread
    of: Spread
    against: Spread | None
    rounds: int

    @property
    def verdict(self) -> Literal["reached", "missed", "reported"]:
        """Whether the median is what it has to be."""
        measure, value = self.measure, self.value.median
        if measure.at_least is None and measure.at_most is None:
            return "reported"
        enough = measure.at_least is None or value >= measure.at_least
        little = measure.at_most is None or value <= measure.at_most
        return "reached" if enough and little else "missed"


def evaluate(case: Case, samples: Sequence[Sample]) -> list[Result]:
    """The case's measures. A ratio is taken round by round, of what ran side by side."""
    figures = {
        (sample.round, Key(sample.subject, name)): value
        for sample in samples
        if sample.case == case.name
        for name, value in sample.figures.items()
    }
    rounds = sorted({number for number, _ in figures})
    results: list[Result] = []
    for measure in case.measures:
        keys = [measure.of] if measure.against is None else [measure.of, measure.against]
        complete = [n for n in rounds if all((n, key) in figures for key in keys)]
        if measure.against is not None:  # there is no ratio to nothing
            complete = [n for n in complete if figures[n, measure.against]]
        if not complete:
            continue
        of = [figures[n, measure.of] for n in complete]
        against = None
        value = of
        if measure.against is not None:
            against = [figures[n, measure.against] for n in complete]
            value = [mine / theirs for mine, theirs in zip(of, against, strict=True)]
        results.append(
            Result(
                measure,
                Spread.of(value),
                Spread.of(of),
                None if against is None else Spread.of(against),
                len(complete),
            )
        )
    return results


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
