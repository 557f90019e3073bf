"""How the kit is tested itself: by drivers that break one rule, and the test that must notice."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime
from typing import Any, ClassVar, TypeAlias, TypeVar

import pytest

from goncordia.clock import Clock
from goncordia.driver import AnyDriver, Capabilities, FetchRequest, FetchResult, Finish, Outcome
from goncordia.errors import DriverUnavailableError
from goncordia.errors import Outcome as OutcomeOfError
from goncordia.memory import MemoryDriver, Store
from goncordia.memory.core import Core
from goncordia.memory.executor import MemoryExecutor
from goncordia_conformance.base import Conformance
from goncordia_conformance.breaks import Breaks
from goncordia_conformance.faults import Faults, Side
from goncordia_conformance.lab import Lab
from goncordia_conformance.proxy import Break
from goncordia_conformance.rules.errors import Busy
from goncordia_conformance.rules.flat import CostOf
from goncordia_conformance.rules.transactions import Transaction

__all__ = [
    "BrokenFetch",
    "MemoryLink",
    "MemoryStores",
    "OneEach",
    "WiredExecutor",
    "WiredTrouble",
    "caught_by",
    "memory_cost",
]

Broken: TypeAlias = type[MemoryDriver] | type[MemoryExecutor]
B = TypeVar("B", bound=Broken)
R = TypeVar("R")


class BrokenFetch(MemoryExecutor):
    """The memory driver's operations, with one ``fetch`` for both ways to claim."""

    def fetch_from(self, store: Store, request: FetchRequest, now: datetime) -> FetchResult:
        """What to break."""
        return store.fetch(request, now)

    async def fetch(self, request: FetchRequest, /) -> FetchResult:
        """Fetch."""
        return self._call(lambda store, now: self.fetch_from(store, request, now))

    async def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None, /
    ) -> tuple[list[Outcome], FetchResult | None]:
        """Finish, then fetch."""
        outcomes = await self.finish_many(finishes)
        return outcomes, None if request is None else await self.fetch(request)


class WiredExecutor(MemoryExecutor):
    """The memory driver's operations, as if a network lay before the store."""

    lost_answer: ClassVar[OutcomeOfError] = "unknown"
    """What is said when a request arrived and its answer was lost."""

    def __init__(self, driver_name: str, capabilities: Capabilities, core: Core) -> None:
        super().__init__(driver_name, capabilities, core)
        self.faults = Faults()

    def _call(self, operation: Callable[[Store, datetime], R]) -> R:
        side = self.faults.next("a request")
        if side == "before":
            raise self._broken("not_applied") from OSError("no way")
        answer = super()._call(operation)
        if side == "after":
            raise self._broken(self.lost_answer) from OSError("no way back")
        return answer

    def _broken(self, outcome: OutcomeOfError) -> DriverUnavailableError:
        return DriverUnavailableError("the connection broke", outcome=outcome)


class MemoryLink:
    """The ``Link`` of a driver with a :class:`WiredExecutor`.

    Args:
        driver: the driver.
    """

    freezes = False

    def __init__(self, driver: AnyDriver) -> None:
        executor = driver.executor()
        assert isinstance(executor, WiredExecutor)
        self.driver = driver
        self._faults = executor.faults

    def plan(self, at: int, side: Side, how: Break) -> None:
        """See ``Link``; nobody connects to memory."""
        self._faults.plan(at, side)

    async def mend(self) -> bool:
        """See ``Link``."""
        return not self._faults.take_back()


class OneEach:
    """A ``make_driver`` for drivers that are their own store: one driver for each clock.

    Args:
        make: makes a driver.
    """

    def __init__(self, make: Callable[[Clock | None], AnyDriver]) -> None:
        self._drivers: dict[Clock | None, AnyDriver] = {}
        self._make = make

    def __reduce__(self) -> str:
        raise TypeError("the jobs are in the memory of one process")

    def __call__(self, clock: Clock | None = None) -> AnyDriver:
        """The driver on this clock."""
        if clock not in self._drivers:
            self._drivers[clock] = self._make(clock)
        return self._drivers[clock]


class MemoryStores(OneEach):
    """A ``make_driver`` for the memory driver.

    Args:
        broken: a driver, or an executor for one; with the defaults, a sound one.
        weak: as for :class:`MemoryDriver`.
    """

    def __init__(self, broken: Broken = MemoryDriver, weak: Any = None) -> None:
        super().__init__(self._memory_driver)
        self._broken = broken
        self._weak = weak

    def _memory_driver(self, clock: Clock | None) -> MemoryDriver:
        if issubclass(self._broken, MemoryDriver):
            return self._broken(clock, weak=self._weak)
        driver = MemoryDriver(clock)
        core = driver._core  # pyright: ignore[reportPrivateUsage] - to put another executor on it
        executor = self._broken(driver.name, driver.capabilities, core)
        driver._executor = executor  # pyright: ignore[reportPrivateUsage] - as above
        return driver


class WiredTrouble:
    """The fixtures of what goes wrong, for a driver with a :class:`WiredExecutor`."""

    @pytest.fixture
    def busy(self, live_lab: Lab) -> Busy:
        """Whose first answer within the block is lost."""

        @asynccontextmanager
        async def busy() -> AsyncGenerator[AnyDriver, None]:
            MemoryLink(live_lab.driver).plan(0, "after", "cut")
            yield live_lab.driver

        return busy

    @pytest.fixture
    def breaks(self, live_lab: Lab) -> Breaks:
        """The way between its calls and the store."""
        return lambda: nullcontext(MemoryLink(live_lab.driver))


class _MustFail(WiredTrouble):
    """What makes a test class of the kit expect its failure."""

    counted: ClassVar[bool] = False
    many: ClassVar[int] = 2000  # enough to see that a fetch does not stay flat
    broken: ClassVar[Broken]
    cases: ClassVar[frozenset[str]]

    @pytest.fixture(autouse=True)
    def _must_fail(self, request: pytest.FixtureRequest) -> None:
        if not self.cases or request.node.callspec.id in self.cases:
            raises = (AssertionError, pytest.fail.Exception)
            mark = pytest.mark.xfail(strict=True, raises=raises, reason="the driver is broken")
            request.applymarker(mark)

    @pytest.fixture
    def make_driver(self) -> MemoryStores:
        return MemoryStores(self.broken)

    @pytest.fixture
    def transaction(self) -> Transaction:
        return MemoryDriver.transaction

    @pytest.fixture
    def cost_of(self, lab: Lab) -> CostOf:
        return memory_cost(lab)


def memory_cost(lab: Lab) -> CostOf:
    """Counts the entries that a memory driver's fetches look at."""
    assert isinstance(lab.driver, MemoryDriver)
    store = lab.driver.store

    async def cost_of(call: Callable[[], Awaitable[object]]) -> int:
        before = store.touched
        await call()
        return store.touched - before

    return cost_of


def caught_by(topic: type[Conformance], test: str, *cases: str) -> Callable[[B], B]:
    """Make a test class that runs one test of the kit over the broken driver; it must fail.

    Args:
        topic: the class of the test.
        test: the test's name.
        cases: of a parametrized test, the cases that must fail, while all others must pass;
            without them all must fail.
    """

    def decorate(broken: B) -> B:
        others = {name: None for name in dir(topic) if name.startswith("test") and name != test}
        members = {"broken": broken, "cases": frozenset(cases), "__module__": broken.__module__}
        name = f"Test{broken.__name__}"
        setattr(
            sys.modules[broken.__module__], name, type(name, (_MustFail, topic), others | members)
        )
        return broken

    if not hasattr(topic, test):
        raise AttributeError(f"{topic.__name__} has no test {test!r}")
    return decorate
