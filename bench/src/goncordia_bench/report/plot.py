"""The plot: bars and curves of jobs per second, ours beside the others, as an SVG of plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from xml.sax.saxutils import escape

from goncordia_bench.harness.model import Key
from goncordia_bench.harness.stats import Spread
from goncordia_bench.report.curves import Curves, curves
from goncordia_bench.report.numbers import figure

__all__ = ["Bar", "Drawing", "Panel", "svg"]

_WIDTH: Final = 760
_LABELS: Final = 250
_ROW: Final = 22
_BAR: Final = 14
_PANEL_HEAD: Final = 34
_NUMBERS: Final = 110
_NOTE: Final = 20
# Colours that are told apart on white and on black, also by the colour-blind.
_STYLE: Final = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .head { font-weight: 600 } .note { fill: #6e7781; font-weight: 400 }
  .ours { fill: #0969da } .peer { fill: #bf8700 } .floor { fill: #8c959f }
  .range { stroke: #24292f; stroke-width: 1.5 } .grid { stroke: #d0d7de; stroke-width: 0.5 }
  path.ours { fill: none; stroke: #0969da; stroke-width: 2.5 }
  path.peer { fill: none; stroke: #bf8700; stroke-width: 1.5 }
  path.floor { fill: none; stroke: #8c959f; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .note { fill: #9198a1 } .range { stroke: #e6edf3 }
    .ours { fill: #4493f8 } .peer { fill: #d29922 } .floor { fill: #6e7681 }
    .grid { stroke: #3d444d } path.ours { stroke: #4493f8 } path.peer { stroke: #d29922 }
    path.floor { stroke: #6e7681 }
  }
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar.

    Attributes:
        label: beside it.
        key: the figure.
        role: ``ours``, ``peer`` or ``floor``.
    """

    label: str
    key: Key
    role: str


@dataclass(frozen=True, slots=True)
class Panel:
    """Bars on a scale of their own.

    Attributes:
        title: above them.
        case: whose figures they are.
        unit: of the figures.
        bars: from top to bottom.
    """

    title: str
    case: str
    unit: str
    bars: tuple[Bar, ...]


Drawing: TypeAlias = Panel | Curves


def svg(drawings: Sequence[Drawing], figures: Mapping[tuple[str, Key], Spread], note: str) -> str:
    """The drawing. Bars and lines without a figure are left out, and what is empty then.

    Args:
        drawings: from top to bottom.
        figures: by case and key.
        note: lines below all.
    """
    parts: list[str] = []
    y = 8
    for panel in drawings:
        if isinstance(panel, Curves):
            drawn, height = curves(panel, figures, y + _PANEL_HEAD, _WIDTH)
            if drawn:
                y += _PANEL_HEAD
                parts += [_head(panel.title, panel.unit, y), *drawn]
                y += height
            continue
        known = [
            (bar, found) for bar in panel.bars if (found := figures.get((panel.case, bar.key)))
        ]
        if not known:
            continue
        top = max(found.high for _, found in known)
        y += _PANEL_HEAD
        parts.append(_head(panel.title, panel.unit, y))
        for bar, found in known:
            parts.append(_bar(bar, found, top, y))
            y += _ROW
    y += 8
    for line in note.splitlines():
        y += _NOTE
        parts.append(f'<text class="note" x="8" y="{y - 10}">{escape(line)}</text>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" '
            f'width="{_WIDTH}" height="{y}" role="img" aria-label="Benchmarks">',
            f"<style>{_STYLE}</style>",
            *parts,
            "</svg>",
            "",
        ]
    )


def _head(title: str, unit: str, y: int) -> str:
    return (
        f'<text class="head" x="8" y="{y - 12}">{escape(title)} '
        f'<tspan class="note">{escape(unit)}</tspan></text>'
    )


def _bar(bar: Bar, found: Spread, top: float, y: int) -> str:
    def at(value: float) -> float:
        return round(_LABELS + (_WIDTH - _LABELS - _NUMBERS) * value / top, 1)

    middle = y + _BAR / 2
    end = at(found.median)
    parts = [
        f'<text x="{_LABELS - 8}" y="{y + 12}" text-anchor="end">{escape(bar.label)}</text>',
        f'<rect class="{bar.role}" x="{_LABELS}" y="{y}" height="{_BAR}" '
        f'width="{max(1.0, round(end - _LABELS, 1))}"/>',
    ]
    if found.low < found.high:
        parts.append(
            f'<line class="range" x1="{at(found.low)}" x2="{at(found.high)}" '
            f'y1="{middle}" y2="{middle}"/>'
        )
    parts.append(
        f'<text x="{max(end, at(found.high)) + 6}" y="{y + 12}">{figure(found.median)}</text>'
    )
    return "\n".join(parts)
