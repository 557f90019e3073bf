"""The command: run the cases in turn, show and write down what came out."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from goncordia_bench.cases import CASES, cases_named
from goncordia_bench.harness.machine import describe, load
from goncordia_bench.harness.model import Case, Sample
from goncordia_bench.harness.postgres import Postgres, dropped, version
from goncordia_bench.harness.redis import Redis, own_redis
from goncordia_bench.harness.rounds import plan
from goncordia_bench.harness.sample import SampleError, take
from goncordia_bench.harness.server import ServerError, own_server
from goncordia_bench.report.numbers import figure, spread
from goncordia_bench.report.run import Run, restored
from goncordia_bench.report.table import summary, target
from goncordia_bench.systems_redis import peer_versions

__all__ = ["main"]

_BENCH: Final = Path(__file__).resolve().parents[2]
_ROUNDS: Final = 5


def _cases(name: str) -> list[Case]:
    try:
        return cases_named(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{name!r} is no case, nor what some begin with"
        ) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dev.py bench", description="Goncordia, its peers and the floor, in turn, in one run."
    )
    names = [case.name for case in CASES]
    parser.add_argument(
        "--only", action="append", type=_cases, metavar="NAME", default=[],
        help="only this case, or those whose names begin so (`postgres`); may be repeated: "
        f"{', '.join(names)}",
    )  # fmt: skip
    parser.add_argument(
        "--rounds", type=int, metavar="N", help=f"rounds ({_ROUNDS}; with --quick 1)"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: does everything run?")
    parser.add_argument(
        "--brief", action="store_true",
        help="on Redis: a part of the jobs for who is slow, so that a round takes six minutes",
    )  # fmt: skip
    parser.add_argument(
        "--folder", type=Path, default=_BENCH / "results", metavar="PATH",
        help="for the results and, meanwhile, the databases: on the disk that is to be measured",
    )  # fmt: skip
    parser.add_argument(
        "--dsn", metavar="URL",
        help="measure PostgreSQL here, in databases of the bench's own that it drops in the end; "
        "without it a server is started",
    )  # fmt: skip
    parser.add_argument("--docs", action="store_true", help="write docs/benchmarks.md as well")
    parser.add_argument(
        "--show", type=Path, metavar="JSON", help="run nothing: show and write what is in this file"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and report; 0 if everything ran, whether or not it was fast.

    What fails is left out and told in the end; the others go on.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    rounds = given.rounds if given.rounds is not None else 1 if given.quick else _ROUNDS
    if rounds < 1:
        parser.error(f"--rounds: {rounds} is not 1 or more")
    console = Console()
    failures: list[SampleError] = []
    if given.show is not None:
        run = restored(json.loads(given.show.read_text(encoding="utf-8")), CASES)
    else:
        chosen = {case.name for found in given.only for case in found}
        cases = [case for case in CASES if not chosen or case.name in chosen]
        try:
            run, failures = _run(
                console, cases, rounds, quick=given.quick, brief=given.brief,
                folder=given.folder, dsn=given.dsn,
            )  # fmt: skip
        except ServerError as error:
            console.print(str(error), markup=False, style="red")
            return 1
    _show(console, run)
    for failure in failures:
        console.print(str(failure), markup=False, style="red")
    if run.samples:
        run.write(given.folder)
        console.print(f"written: {given.folder}/latest.json, .md, .svg")
    if given.docs and not failures:
        run.write_docs(_BENCH.parent / "docs")
        console.print("written: the pages and the plots in docs/")
    return 1 if failures else 0


@contextmanager
def _redis(cases: Sequence[Case], folder: Path) -> Iterator[str]:
    """The URL of a Redis server of our own, if a case needs one."""
    if not any(case.needs_redis for case in cases):
        yield ""
        return
    with own_redis(folder) as url:
        yield url


@contextmanager
def _server(cases: Sequence[Case], folder: Path, dsn: str | None) -> Iterator[Postgres | None]:
    """The server, if a case needs one: the given one, or one of our own."""
    if not any(case.needs_postgres for case in cases):
        yield None
        return
    with ExitStack() as stack:
        server = Postgres(
            dsn or stack.enter_context(own_server(folder)), f"goncordia_bench_{uuid4().hex[:8]}"
        )
        try:
            yield server
        finally:
            asyncio.run(dropped(server))


def _run(
    console: Console,
    cases: Sequence[Case],
    rounds: int,
    *,
    quick: bool,
    brief: bool,
    folder: Path,
    dsn: str | None,
) -> tuple[Run, list[SampleError]]:
    folder.mkdir(parents=True, exist_ok=True)
    with _server(cases, folder, dsn) as server, _redis(cases, folder) as redis_url:
        return _measured(
            console, cases, rounds, quick=quick, brief=brief, folder=folder, server=server,
            redis_url=redis_url,
        )  # fmt: skip


def _measured(
    console: Console,
    cases: Sequence[Case],
    rounds: int,
    *,
    quick: bool,
    brief: bool,
    folder: Path,
    server: Postgres | None,
    redis_url: str,
) -> tuple[Run, list[SampleError]]:
    machine = describe(
        folder,
        "" if server is None else asyncio.run(version(server.dsn)),
        Redis(redis_url).version() if redis_url else "",
        peer_versions() if redis_url else {},
    )
    if machine.file_system == "tmpfs":
        console.print("[yellow]this folder is in memory: commits cost nothing here[/]")
    console.print(
        f"{machine.cpu}, {machine.cores} cores, fsync {machine.fsync_us:,.0f} µs, "
        f"load {machine.load_before:.2f}"
    )
    steps = list(plan(cases, rounds))
    samples: list[Sample] = []
    failures: list[SampleError] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix="work-") as scratch,
        Progress(*columns, console=console) as progress,
    ):
        bar = progress.add_task("", total=len(steps))
        for number, case, subject in steps:
            progress.update(bar, description=f"round {number + 1}: {case.name}, {subject}")
            try:
                sample = take(
                    case, subject, number=number, quick=quick, scratch=Path(scratch),
                    server=server if case.needs_postgres else None,
                    redis_url=redis_url if case.needs_redis else "", brief=brief,
                )  # fmt: skip
            except KeyboardInterrupt:
                progress.console.print("stopped: what was measured until now is shown", style="red")
                break
            except SampleError as error:
                failures.append(error)
                progress.console.print(f"{case.name}, {subject}: failed", style="red")
            else:
                samples.append(sample)
                progress.console.print(_line(sample), markup=False, highlight=False)
            progress.advance(bar)
    begun = max((sample.round + 1 for sample in samples), default=rounds)
    return Run(machine, tuple(cases), tuple(samples), begun, quick, load(), brief), failures


def _line(sample: Sample) -> str:
    told = ", ".join(f"{name} {figure(value)}" for name, value in sample.figures.items())
    return f"{sample.round + 1} {sample.case}, {sample.subject}: {told} (load {sample.load:.1f})"


def _show(console: Console, run: Run) -> None:
    if not run.samples:
        return
    results = run.results()
    for case, found in results:
        table = Table(title=case.title, title_justify="left", title_style="bold")
        for heading in ("measure", "median (lowest to highest)", "to reach", ""):
            table.add_column(heading)
        for result in found:
            is_ratio = result.measure.against is not None
            value = spread(result.value, is_ratio=is_ratio, unit=result.measure.unit)
            colour = {"reached": "green", "missed": "red", "reported": ""}[result.verdict]
            word = "" if result.verdict == "reported" else result.verdict
            table.add_row(result.measure.title, value, target(result), word, style=colour)
        console.print(table)
    console.print(summary([result for _, found in results for result in found]))
    if run.quick:
        console.print("[yellow]a quick run: the figures mean little[/]")
