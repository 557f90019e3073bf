from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from goncordia_bench.cases import CASES, case_named
from goncordia_bench.harness.machine import Machine, describe
from goncordia_bench.harness.model import Key, Measure, Sample
from goncordia_bench.harness.stats import Result, Spread
from goncordia_bench.report.curves import Curves
from goncordia_bench.report.numbers import figure, ratio, spread
from goncordia_bench.report.panels import PANELS, POSTGRES_PANELS, REDIS_PANELS
from goncordia_bench.report.plot import Drawing
from goncordia_bench.report.run import Run, fill_in, restored
from goncordia_bench.report.table import markdown, summary, target

MACHINE = Machine(
    taken_at="2026-01-02T03:04:05+00:00",
    cpu="A <fast> one",
    cores=2,
    system="Linux 6",
    python="3.11.7",
    sqlite="3.40.1",
    versions={"huey": "3"},
    file_system="ext4",
    fsync_us=123.4,
    load_before=0.5,
    real_time=False,
)


def a_run(quick: bool = False) -> Run:
    case = case_named("enqueue_many")
    speeds = {"async": 60.0, "sync": 50.0, "floor": 100.0}
    samples = [
        Sample(case.name, name, number, 1.0 + number, 2.0, {"jobs/s": value * (number + 1)})
        for number in range(2)
        for name, value in speeds.items()
    ]
    return Run(MACHINE, (case,), tuple(samples), 2, quick, 3.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.01234, "0.0123"),
        (1.0, "1.00"),
        (99.96, "100"),
        (123.4, "123"),
        (1234.0, "1,230"),
        (98_765.0, "98,800"),
        (340_123.0, "340,000"),
    ],
)
def test_figures_have_three_digits(value: float, text: str) -> None:
    assert figure(value) == text
    assert figure(value, "ms") == f"{text} ms"


def test_ratios_and_spreads() -> None:
    assert ratio(0.8412) == "0.84x"
    assert ratio(12.34) == "12.3x"
    assert spread(Spread(2, 1, 3), is_ratio=True) == "2.00x (1.00 to 3.00)"
    assert spread(Spread(2, 1, 3), is_ratio=False, unit="ms") == "2.00 ms (1.00 to 3.00)"
    assert spread(Spread(2, 2, 2), is_ratio=True) == "2.00x"


def test_targets_name_their_unit() -> None:
    key, found = Key("a", "x"), Spread(2, 1, 3)
    assert target(Result(Measure("m", key, key, at_least=0.6), found, found, found, 1)) == "≥ 0.6x"
    alone = Measure("m", key, unit="ms", at_most=5)
    assert target(Result(alone, found, found, None, 1)) == "≤ 5 ms"
    assert target(Result(Measure("m", key), found, found, None, 1)) == ""


def test_the_table_shows_what_was_missed() -> None:
    results = a_run().results()
    text = markdown(results)
    assert (
        "| enqueue_many, async, against executemany | 0.60x | ≥ 0.6x | reached "
        "| 90.0 jobs/s | 150 jobs/s |" in text
    )
    assert (
        "| enqueue_many, sync, against executemany | 0.50x | ≥ 0.6x | **missed** "
        "| 75.0 jobs/s | 150 jobs/s |" in text
    )
    told = summary([result for _, found in results for result in found])
    assert told == (
        "1 of 2 targets were reached. "
        "Missed: enqueue_many, sync, against executemany: 0.50x (≥ 0.6x)."
    )


def test_the_conditions_are_told() -> None:
    told = a_run().conditions()
    assert "Taken 2026-01-02 on A <fast> one, 2 cores" in told
    assert "(ext4) takes 123 µs. 2 rounds." in told
    assert "1.0 to 2.0, and 0.5 in the minute before" in told
    assert "real-time" not in told
    assert "figures mean little" in a_run(quick=True).as_markdown()


def test_the_plot_is_xml_with_a_bar_for_each_known_figure() -> None:
    root = ElementTree.fromstring(a_run().as_svg())
    bars = [each for each in root.iter() if each.tag.endswith("rect")]
    assert [each.get("class") for each in bars] == ["ours", "ours", "floor"]
    widths = [float(each.get("width", "0")) for each in bars]
    assert widths[0] / widths[2] == pytest.approx(0.6, abs=0.01)


def test_a_run_comes_back_from_its_json() -> None:
    run = a_run()
    assert restored(json.loads(run.as_json()), CASES) == run


def test_figures_go_between_the_marks_of_a_page(tmp_path: Path) -> None:
    begin, end = "<!-- figures: written by the bench -->", "<!-- figures end -->"
    page = tmp_path / "benchmarks.md"
    page.write_text(f"# Title\n\n{begin}\nold \\1\n{end}\n\nafter\n")
    a_run().write_docs(tmp_path)
    text = page.read_text()
    assert text.startswith(f"# Title\n\n{begin}\n\n![")
    assert "](benchmarks.svg)\n\nTaken 2026" in text
    assert text.endswith(f"\n\n{end}\n\nafter\n")
    assert "old" not in text
    a_run().write_docs(tmp_path)
    assert page.read_text() == text
    assert (tmp_path / "benchmarks.svg").read_text() == a_run().as_svg()
    with pytest.raises(ValueError, match="no lines"):
        fill_in("# Title", "x")


def test_everything_is_written(tmp_path: Path) -> None:
    a_run().write(tmp_path / "new")
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == ["latest.json", "latest.md", "latest.svg"]


@pytest.mark.parametrize(
    "panels", [PANELS, POSTGRES_PANELS, REDIS_PANELS], ids=["SQLite", "PostgreSQL", "Redis"]
)
def test_the_panels_draw_figures_that_exist(panels: Sequence[Drawing]) -> None:
    for panel in panels:
        subjects = {subject.name for subject in case_named(panel.case).subjects}
        if isinstance(panel, Curves):
            drawn = {key.subject for line in panel.lines for key in line.points.values()}
            roles = {line.role for line in panel.lines}
        else:
            drawn = {bar.key.subject for bar in panel.bars}
            roles = {bar.role for bar in panel.bars}
        assert drawn <= subjects
        assert roles <= {"ours", "peer", "floor"}


def test_each_database_has_a_page_and_a_plot_of_its_own(tmp_path: Path) -> None:
    case = case_named("postgres-drain")
    mine = a_run()
    both = replace(
        mine,
        machine=replace(MACHINE, postgres="15.1, fsync=off"),
        cases=(*mine.cases, case),
        samples=(
            *mine.samples,
            Sample(case.name, "goncordia", 0, 1.0, 2.0, {"WAL bytes/job": 7.0}),
        ),
    )
    both.write(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["latest-postgresql.svg", "latest.json", "latest.md", "latest.svg"]
    assert "SQLite 3.40.1, PostgreSQL 15.1, fsync=off" in both.conditions()
    begin, end = "<!-- figures: written by the bench -->", "<!-- figures end -->"
    pages = [tmp_path / f"{name}.md" for name in ("benchmarks", "benchmarks-postgresql")]
    for page in pages:
        page.write_text(f"{begin}\n{end}\n")
    both.write_docs(tmp_path)
    sqlite, postgresql = (page.read_text() for page in pages)
    assert "SQLite: enqueueing many" in sqlite
    assert "PostgreSQL" not in sqlite
    assert "PostgreSQL: working jobs off" in postgresql
    assert "SQLite" not in postgresql
    plot = (tmp_path / "benchmarks-postgresql.svg").read_text()
    assert plot == (tmp_path / "latest-postgresql.svg").read_text()
    assert "PostgreSQL 15.1, fsync=off" in plot


def test_this_machine_is_described(tmp_path: Path) -> None:
    machine = describe(tmp_path)
    assert machine.fsync_us > 0
    assert machine.cores >= 1
    assert "goncordia-core" in machine.versions
    assert list(tmp_path.iterdir()) == []
