"""The Markdown table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from goncordia_bench.harness.model import Case
from goncordia_bench.harness.stats import Result
from goncordia_bench.report.numbers import figure, ratio, spread

__all__ = ["markdown", "summary", "target"]

_VERDICTS = {"reached": "reached", "missed": "**missed**", "reported": ""}


def target(result: Result) -> str:
    """What the measure has to be: ``≥ 4x``."""
    measure = result.measure
    for sign, value in (("≥", measure.at_least), ("≤", measure.at_most)):
        if value is not None:
            told = f"{value:g}x" if measure.against else f"{value:g} {measure.unit}".rstrip()
            return f"{sign} {told}"
    return ""


def _cells(result: Result) -> tuple[str, ...]:
    measure = result.measure
    value = spread(result.value, is_ratio=measure.against is not None, unit=measure.unit)
    if result.against is None:
        sides = ("", "")
    else:
        sides = (
            figure(result.of.median, measure.unit),
            figure(result.against.median, measure.unit),
        )
    return (measure.title, value, target(result), _VERDICTS[result.verdict], *sides)


def markdown(sections: Iterable[tuple[Case, Sequence[Result]]]) -> str:
    """A section with a table for each case: what was done, and what came out."""
    lines: list[str] = []
    for case, results in sections:
        if not results:
            continue
        lines += [f"### {case.title}", "", case.about.strip(), ""]
        lines += [
            "| measure | median (lowest to highest) | to reach | | ours | the other |",
            "|---|---|---|---|---|---|",
        ]
        lines += [f"| {' | '.join(_cells(result))} |" for result in results]
        lines.append("")
    return "\n".join(lines)


def summary(results: Sequence[Result]) -> str:
    """One line: how many targets there are, and which were missed."""
    judged = [result for result in results if result.verdict != "reported"]
    missed = [result for result in judged if result.verdict == "missed"]
    text = f"{len(judged) - len(missed)} of {len(judged)} targets were reached."
    if not missed:
        return text
    told = "; ".join(
        f"{result.measure.title}: "
        + (ratio(result.value.median) if result.against else figure(result.value.median))
        + f" ({target(result)})"
        for result in missed
    )
    return f"{text} Missed: {told}."
