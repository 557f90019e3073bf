"""The kit's pytest plugin: its marks and options, and what is said at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import cast

import pytest

from goncordia_conformance.marks import MISSING, NOT_APPLICABLE, NOT_PROVED, RULES, Rule

__all__: list[str] = []

# Before the first import of a module with tests, so that their asserts say what was compared.
pytest.register_assert_rewrite(
    *(f"goncordia_conformance.{name}" for name in ("commands", "forks", "helpers", "lab", "rules"))
)

SHRINKING = 600
"""Seconds that a test may take with pytest-timeout when it has found a fault and looks for more."""

_PROPERTY = "goncordia_rules"
_COLUMNS = ("passed", "failed", "not proved", "not applicable", "not claimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the kit's options."""
    group = parser.getgroup("goncordia", "Goncordia's conformance kit")
    group.addoption(
        "--require-backends",
        nargs="?",
        const="all",
        default="",
        metavar="NAMES",
        help="fail, and do not skip, where one of these backends is missing, such as 'pg,mysql'; "
        "without names: where any is",
    )
    group.addoption(
        "--goncordia-rules",
        action="store_true",
        help="count the tests of each rule of the driver contract",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the kit's marks."""
    config.addinivalue_line("markers", "rule(*numbers): the contract's rules that a test proves")
    config.addinivalue_line("markers", "goncordia_slow_to_fail: needs time to explain, by the kit")
    config.addinivalue_line("markers", "goncordia_needs(*conditions): capabilities, by the kit")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give a failing state machine the time to find its shortest run."""
    if config.pluginmanager.hasplugin("timeout"):
        for item in items:
            if item.get_closest_marker("goncordia_slow_to_fail"):
                item.add_marker(pytest.mark.timeout(SHRINKING))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note the test's rules on its report, which travels from pytest-xdist's workers, too."""
    rules = [number for mark in item.iter_markers("rule") for number in mark.args]
    if rules and getattr(getattr(item, "cls", None), "counted", True):
        item.user_properties.append((_PROPERTY, rules))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say what was not proved, what was switched off, and which backends were missing."""
    for kind, title in (
        (NOT_PROVED, "not proved"),
        (NOT_APPLICABLE, "switched off, with the reason"),
    ):
        lines = Counter(
            f"{_where(report)}{reason.removeprefix(kind)}"
            for report, reason in _skips(terminalreporter)
            if reason.startswith(kind)
        )
        if lines:
            terminalreporter.section(f"goncordia: {title}")
            for line, tests in sorted(lines.items()):
                terminalreporter.line(line if tests == 1 else f"{line} ({tests} tests)")
    if missing := Counter(_missing(terminalreporter)):
        terminalreporter.section("goncordia: missing backends")
        for line, tests in sorted(missing.items()):
            terminalreporter.line(f"{line} ({tests} tests)")
    if config.getoption("--goncordia-rules"):
        terminalreporter.section("goncordia: tests per rule")
        _rule_table(terminalreporter)


def _skips(reporter: pytest.TerminalReporter) -> Iterator[tuple[pytest.TestReport, str]]:
    for report in reporter.stats.get("skipped", []):
        if not isinstance(report, pytest.TestReport) or not isinstance(report.longrepr, tuple):
            continue
        if any(name == _PROPERTY for name, _ in report.user_properties):
            yield report, str(report.longrepr[2]).removeprefix("Skipped: ")


def _where(report: pytest.TestReport) -> str:
    """The test class."""
    return report.nodeid.split("::")[1]


def _missing(reporter: pytest.TerminalReporter) -> Iterator[str]:
    """For each test without its backend, what was missing; also where that was a failure."""
    for outcome in ("skipped", "error", "failed"):
        for report in reporter.stats.get(outcome, []):
            if isinstance(report, pytest.TestReport):
                _, found, what = report.longreprtext.partition(f"{MISSING}: ")
                if found:
                    # The text of a skip is that of a tuple, which ends by a quote and a bracket.
                    yield what.splitlines()[0].rstrip("')\"")


def _rule_table(reporter: pytest.TerminalReporter) -> None:
    counts: dict[Rule, Counter[str]] = {number: Counter() for number in RULES}

    def count(report: object, column: str) -> None:
        # A module that could not be collected has a report, too.
        for name, numbers in (
            report.user_properties if isinstance(report, pytest.TestReport) else ()
        ):
            if name == _PROPERTY:
                for number in cast(list[Rule], numbers):
                    counts[number][column] += 1

    for outcome in ("passed", "failed", "error"):
        for report in reporter.stats.get(outcome, []):
            count(report, "passed" if outcome == "passed" else "failed")
    for report, reason in _skips(reporter):
        if reason.startswith(NOT_PROVED):
            count(report, "not proved")
        elif reason.startswith(NOT_APPLICABLE):
            count(report, "not applicable")
        else:
            count(report, "not claimed")
    reporter.line(f"{'rule':<9}{''.join(f'{column:>15}' for column in _COLUMNS)}  about")
    for number, columns in counts.items():
        numbers = "".join(f"{columns[column] or '':>15}" for column in _COLUMNS)
        reporter.line(f"{number:<9}{numbers}  {RULES[number]}")
