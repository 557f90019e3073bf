"""One whole run, as it is written down and shown."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from goncordia_bench.harness.machine import Machine
from goncordia_bench.harness.model import Case, Key, Sample
from goncordia_bench.harness.stats import Result, Spread, evaluate
from goncordia_bench.report.panels import PANELS, POSTGRES_PANELS, REDIS_PANELS
from goncordia_bench.report.plot import Drawing, svg
from goncordia_bench.report.table import markdown, summary

__all__ = ["Page", "Run", "fill_in", "restored"]

_REAL_TIME: Final = (
    " Other work was going on: the bench ran at real-time priority, so that it had the processor, "
    "but not the disk, as if it were alone."
)
_BRIEF: Final = (
    "A brief run: those who are slow were given a part of the jobs, as told at each case."
)
_BEGIN: Final = "<!-- figures: written by the bench -->"
_END: Final = "<!-- figures end -->"


@dataclass(frozen=True, slots=True)
class Page:
    """Where the cases of one database are shown.

    Attributes:
        name: of the page and the plot in the docs.
        suffix: of the plot beside the results.
        alt: what the plot shows, in words.
        panels: what is drawn.
        needs: the server of the cases that are shown there; empty: those that need none.
    """

    name: str
    suffix: str
    alt: str
    panels: tuple[Drawing, ...]
    needs: str


_PAGES: Final = (
    Page(
        "benchmarks",
        "",
        "Jobs per second of Goncordia, huey and the bare library",
        PANELS,
        needs="",
    ),
    Page(
        "benchmarks-postgresql",
        "-postgresql",
        "Jobs per second of Goncordia, its peers and bare asyncpg on PostgreSQL",
        POSTGRES_PANELS,
        needs="postgres",
    ),
    Page(
        "benchmarks-redis",
        "-redis",
        "Jobs per second of Goncordia, its peers and bare redis-py on Redis",
        REDIS_PANELS,
        needs="redis",
    ),
)


@dataclass(frozen=True, slots=True)
class Run:
    """All samples of one run.

    Attributes:
        machine: what it ran on.
        cases: what was run.
        samples: what came out.
        rounds: how many.
        quick: the sizes were small, and the figures mean little.
        load_after: the load in the minute before the end.
        brief: those who are slow were given less to do.
    """

    machine: Machine
    cases: tuple[Case, ...]
    samples: tuple[Sample, ...]
    rounds: int
    quick: bool
    load_after: float
    brief: bool = False

    def results(self) -> list[tuple[Case, list[Result]]]:
        """What each case's measures came to."""
        return [(case, evaluate(case, self.samples)) for case in self.cases]

    def spreads(self) -> Mapping[tuple[str, Key], Spread]:
        """Every figure over all rounds."""
        values: defaultdict[tuple[str, Key], list[float]] = defaultdict(list)
        for sample in self.samples:
            for name, value in sample.figures.items():
                values[sample.case, Key(sample.subject, name)].append(value)
        return {key: Spread.of(found) for key, found in values.items()}

    # ---------------------------------------------------------------- forms

    def as_json(self) -> str:
        """Every sample, and the machine."""
        data: dict[str, Any] = {
            "machine": self.machine.as_dict(),
            "rounds": self.rounds,
            "quick": self.quick,
            "brief": self.brief,
            "load_after": self.load_after,
            "samples": [asdict(sample) for sample in self.samples],
        }
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"

    def as_markdown(self) -> str:
        """The conditions, the verdict and the tables."""
        results = self.results()
        flat = [result for _, found in results for result in found]
        parts = [self.conditions(), summary(flat), markdown(results).rstrip()]
        if self.quick:
            parts.insert(0, "**A quick run with small sizes: the figures mean little.**")
        if self.brief:
            parts.insert(1, _BRIEF)
        return "\n\n".join(parts) + "\n"

    def as_svg(self, page: Page = _PAGES[0]) -> str:
        """The plot of a page."""
        machine = self.machine
        note = (
            f"{self._told_rounds()}: bars are medians, lines reach from lowest to highest\n"
            f"{machine.cpu}, "
            f"{machine.cores} cores · Python {machine.python}, {self._database(page.needs)}"
        )
        return svg(page.panels, self.spreads(), note)

    def of_page(self, page: Page) -> Run:
        """Only the cases of that page."""
        cases = tuple(case for case in self.cases if case.needs == page.needs)
        names = {case.name for case in cases}
        samples = tuple(sample for sample in self.samples if sample.case in names)
        return replace(self, cases=cases, samples=samples)

    def _database(self, needs: str) -> str:
        machine = self.machine
        if needs == "postgres":
            return f"PostgreSQL {machine.postgres}"
        return machine.redis if needs == "redis" else f"SQLite {machine.sqlite}"

    def conditions(self) -> str:
        """A paragraph: when, where, on what."""
        machine = self.machine
        versions = ", ".join(f"{name} {found}" for name, found in machine.versions.items())
        loads = [sample.load for sample in self.samples]
        kinds = sorted({case.needs for case in self.cases})
        databases = ", ".join(self._database(kind) for kind in kinds)
        return (
            f"Taken {machine.taken_at[:10]} on {machine.cpu}, {machine.cores} cores, "
            f"{machine.system}, Python {machine.python}, {databases} ({versions}). "
            f"Writing 4 KiB and pressing it to this disk ({machine.file_system}) takes "
            f"{machine.fsync_us:,.0f} µs. {self._told_rounds()}. "
            f"The load of the machine, this run included, was {min(loads):.1f} to "
            f"{max(loads):.1f}, and {machine.load_before:.1f} in the minute before."
            + (_REAL_TIME if machine.real_time else "")
        )

    def _told_rounds(self) -> str:
        return "1 round" if self.rounds == 1 else f"{self.rounds} rounds"

    # ---------------------------------------------------------------- files

    def write(self, folder: Path) -> None:
        """The JSON, the table and the plots, as ``latest….…``."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "latest.json").write_text(self.as_json(), encoding="utf-8")
        (folder / "latest.md").write_text(self.as_markdown(), encoding="utf-8")
        for page in self._pages():
            path = folder / f"latest{page.suffix}.svg"
            path.write_text(self.of_page(page).as_svg(page), encoding="utf-8")

    def write_docs(self, docs: Path) -> None:
        """The plots and the figures of what ran, on their pages between the two marks."""
        for page in self._pages():
            run = self.of_page(page)
            path = docs / f"{page.name}.md"
            figures = f"![{page.alt}]({page.name}.svg)\n\n{run.as_markdown()}"
            text = fill_in(path.read_text(encoding="utf-8"), figures)
            path.write_text(text, encoding="utf-8")
            (docs / f"{page.name}.svg").write_text(run.as_svg(page), encoding="utf-8")

    def _pages(self) -> list[Page]:
        return [page for page in _PAGES if self.of_page(page).samples]


def fill_in(page: str, figures: str) -> str:
    """The page with the figures between its marks.

    Raises:
        ValueError: the page has no such marks.
    """
    pattern = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"the page has no lines {_BEGIN!r} and {_END!r}")
    return pattern.sub(lambda _: f"{_BEGIN}\n\n{figures.rstrip()}\n\n{_END}", page)


def restored(data: Mapping[str, Any], cases: Sequence[Case]) -> Run:
    """A run from its JSON, to be shown again."""
    samples = tuple(Sample(**sample) for sample in data["samples"])
    ran = {sample.case for sample in samples}
    return Run(
        Machine(**data["machine"]),
        tuple(case for case in cases if case.name in ran),
        samples,
        data["rounds"],
        data["quick"],
        data["load_after"],
        data.get("brief", False),
    )
