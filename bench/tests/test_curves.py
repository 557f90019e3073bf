from __future__ import annotations

from xml.etree import ElementTree

from goncordia_bench.harness.model import Key
from goncordia_bench.harness.stats import Spread
from goncordia_bench.report.curves import Curves, Line, curves


def line(name: str, role: str = "peer") -> Line:
    return Line(name, role, {seconds: Key(name, f"at {seconds}") for seconds in (10, 20, 30)})


def figures(**lines: tuple[float, ...]) -> dict[tuple[str, Key], Spread]:
    return {
        ("c", Key(name, f"at {(n + 1) * 10}")): Spread(value, value, value)
        for name, values in lines.items()
        for n, value in enumerate(values)
    }


def drawn(*lines: Line, **values: tuple[float, ...]) -> ElementTree.Element:
    parts, height = curves(Curves("t", "c", "jobs/s", lines), figures(**values), 100, 700)
    assert height > 200
    return ElementTree.fromstring(f"<svg>{''.join(parts)}</svg>")


def points(path: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = path.get("d", "").removeprefix("M ").split(" L ")
    return [(float(x), float(y)) for x, y in (pair.split() for pair in pairs)]


def test_ten_times_as_much_is_the_same_step_everywhere() -> None:
    root = drawn(line("a", "ours"), a=(10_000, 1_000, 100))
    (path,) = root.findall("path")
    assert path.get("class") == "ours"
    (x1, y1), (x2, y2), (x3, y3) = points(path)
    assert (y1, y3) == (100, 320)
    assert y2 - y1 == y3 - y2
    assert abs((x2 - x1) - (x3 - x2)) < 0.2
    assert [text.text for text in root.findall("text")][:3] == ["100", "1,000", "10,000"]


def test_a_stop_lies_on_the_lower_edge() -> None:
    (path,) = drawn(line("a"), a=(1_000, 0, 500)).findall("path")
    assert points(path)[1][1] == 320


def test_labels_lie_apart() -> None:
    root = drawn(line("a"), line("b"), line("c"), a=(500,), b=(500,), c=(501,))
    labels = {text.text: float(text.get("y", "0")) for text in root.findall("text")}
    heights = sorted(labels[name] for name in "abc")
    assert heights[1] - heights[0] >= 15
    assert heights[2] - heights[1] >= 15


def test_lines_without_a_figure_are_left_out() -> None:
    root = drawn(line("a"), line("b"), a=(500, 600, 700))
    assert len(root.findall("path")) == 1
    assert curves(Curves("t", "c", "jobs/s", (line("a"),)), {}, 0, 700) == ([], 0)
