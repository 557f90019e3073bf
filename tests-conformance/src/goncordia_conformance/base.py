"""What every test class of the kit stands on: its fixtures and its marks."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from goncordia_conformance.lab import ClaimBy, Lab, MakeDriver
from goncordia_conformance.marks import NOT_APPLICABLE, Rule, rule, unmet

__all__ = ["Conformance"]


class Conformance:
    """The base of the kit's test classes.

    A driver's author subclasses them, or all of them at once as ``DriverConformance``, and gives
    the fixture ``make_driver``: an importable, picklable callable ``(clock=None) -> driver``. Each
    of its calls gives one more driver on the same store, which is empty when a test begins.

    Attributes:
        not_applicable: tests that are switched off for this driver, by name, each with the reason,
            which is shown at the end of every run.
        counted: whether its tests are counted and listed at the end of a run.
    """

    not_applicable: ClassVar[Mapping[str, str]] = {}
    counted: ClassVar[bool] = True

    def __init_subclass__(cls, *, rule: Rule | None = None, **options: Any) -> None:
        """Mark the class's tests.

        Args:
            rule: what those of its tests prove that do not say it themselves.
            options: for other bases.
        """
        super().__init_subclass__(**options)
        for name, member in list(vars(cls).items()):
            if name.startswith("test") and inspect.isfunction(member):
                _mark(member, rule)
        for name, reason in cls.not_applicable.items():
            if not callable(getattr(cls, name, None)):
                raise TypeError(f"{cls.__name__}.not_applicable: there is no test {name!r}")
            if not reason.strip():
                raise TypeError(f"{cls.__name__}.not_applicable: {name!r} needs a reason")

    @pytest.fixture(autouse=True)
    def _applies(self, request: pytest.FixtureRequest) -> None:
        """Skip what was switched off, and what is about capabilities that are not claimed."""
        function = request.node.originalname
        if function in self.not_applicable:
            pytest.skip(f"{NOT_APPLICABLE}: {function}: {self.not_applicable[function]}")
        if request.node.get_closest_marker("goncordia_needs"):
            make_driver: MakeDriver = request.getfixturevalue("make_driver")
            marks = request.node.iter_markers("goncordia_needs")
            if reason := unmet(marks, make_driver().capabilities):
                pytest.skip(reason)

    @pytest.fixture
    def claim_by(self) -> ClaimBy:
        """Which method the lab's sessions claim by; the mark ``both_ways`` runs a test by each."""
        return "exchange"

    @pytest_asyncio.fixture(loop_scope="function")
    async def lab(self, make_driver: MakeDriver, claim_by: ClaimBy) -> AsyncIterator[Lab]:
        """The driver under test, on a clock that stands still until the test advances it."""
        async with Lab(make_driver, claim_by) as lab:
            yield lab

    @pytest_asyncio.fixture(loop_scope="function")
    async def live_lab(self, make_driver: MakeDriver) -> AsyncIterator[Lab]:
        """The driver under test, in real time."""
        async with Lab(make_driver, mock_time=False) as lab:
            yield lab


def _mark(function: Any, default: Rule | None) -> None:
    marks = {mark.name for mark in getattr(function, "pytestmark", [])}
    if "rule" not in marks and default is not None:
        rule(default)(function)
    # Put on by hand, so that it works in both modes of pytest-asyncio.
    if inspect.iscoroutinefunction(function) and "asyncio" not in marks:
        pytest.mark.asyncio(loop_scope="function")(function)
