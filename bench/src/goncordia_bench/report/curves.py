"""Curves over time, on a scale on which ten times as much is the same step everywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from goncordia_bench.harness.model import Key
from goncordia_bench.harness.stats import Spread

__all__ = ["Curves", "Line", "curves"]

_LEFT: Final = 72
_RIGHT: Final = 150
_HEIGHT: Final = 220
_BELOW: Final = 30
_LABEL: Final = 15
_EVERY: Final = 30


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes:
        label: at its right end.
        role: ``ours``, ``peer`` or ``floor``.
        points: the figure at each second; those that are not known are left out.
    """

    label: str
    role: str
    points: Mapping[int, Key]


@dataclass(frozen=True, slots=True)
class Curves:
    """Lines over the same seconds.

    Attributes:
        title: above them.
        case: whose figures they are.
        unit: of the figures.
        lines: whose labels are put beside them.
    """

    title: str
    case: str
    unit: str
    lines: tuple[Line, ...]


def curves(
    panel: Curves, figures: Mapping[tuple[str, Key], Spread], y: int, width: int
) -> tuple[list[str], int]:
    """Draw them.

    Args:
        panel: what to draw.
        figures: by case and key.
        y: the upper edge.
        width: of the whole drawing.

    Returns:
        The elements, none if no figure is known, and the height that they take.
    """
    known: list[tuple[Line, dict[int, float]]] = []
    for line in panel.lines:
        found = {
            seconds: figures[panel.case, key].median
            for seconds, key in line.points.items()
            if (panel.case, key) in figures
        }
        if found:
            known.append((line, found))
    values = [value for _, found in known for value in found.values() if value > 0]
    if not values:
        return [], 0
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    last = max(seconds for _, found in known for seconds in found)

    def x_of(seconds: int) -> float:
        return round(_LEFT + (width - _LEFT - _RIGHT) * seconds / last, 1)

    def y_of(value: float) -> float:
        # A step in which nothing was done lies on the lower edge.
        share = (math.log10(max(value, 10.0**low)) - low) / (high - low)
        return round(y + _HEIGHT * (1 - share), 1)

    parts: list[str] = []
    for power in range(low, high + 1):
        at = y_of(10.0**power)
        parts += [
            f'<line class="grid" x1="{_LEFT}" x2="{x_of(last)}" y1="{at}" y2="{at}"/>',
            f'<text class="note" x="{_LEFT - 6}" y="{at + 4}" text-anchor="end">'
            f"{10**power:,}</text>",
        ]
    parts += [
        f'<text class="note" x="{x_of(seconds)}" y="{y + _HEIGHT + 18}" '
        f'text-anchor="middle">{seconds} s</text>'
        for seconds in range(0, last + 1, _EVERY)
    ]
    ends: list[tuple[float, Line]] = []
    for line, found in known:
        path = " L ".join(f"{x_of(seconds)} {y_of(value)}" for seconds, value in found.items())
        parts.append(f'<path class="{line.role}" d="M {path}"/>')
        ends.append((y_of(found[max(found)]), line))
    above = -math.inf
    for wanted, line in sorted(ends, key=lambda end: end[0]):
        above = max(wanted + 4, above + _LABEL)
        parts.append(f'<text x="{x_of(last) + 6}" y="{above}">{escape(line.label)}</text>')
    return parts, _HEIGHT + _BELOW
