"""Rule 11: the library's errors become Goncordia's, and say whether the outcome is known."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import pytest

from goncordia.driver import AnyDriver, ListFilter
from goncordia.errors import DriverBusyError, DriverError, DriverUnavailableError
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab
from goncordia_conformance.marks import not_proved

__all__ = ["Busy", "ErrorTests", "Unreachable"]

Unreachable: TypeAlias = Callable[[], AnyDriver]
"""Makes a driver whose backend cannot be reached."""

Busy: TypeAlias = Callable[[], AbstractAsyncContextManager[AnyDriver]]
"""``async with busy() as driver:`` a driver on the store, whose writes the backend refuses within
the block, without much waiting."""


def _is_explained(error: DriverError) -> None:
    assert error.__cause__ is not None, "the library's own error is the cause"
    assert not isinstance(error.__cause__, DriverError)
    assert error.outcome in {"not_applied", "unknown"}
    assert str(error)


class ErrorTests(Conformance, rule=11):
    """What goes wrong underneath can only be shown with the author's help."""

    @pytest.fixture
    def unreachable(self) -> Unreachable:
        """For the driver's author: makes a driver whose backend cannot be reached."""
        not_proved("a lost backend is DriverUnavailableError", "no fixture unreachable")

    @pytest.fixture
    def busy(self) -> Busy:
        """For the driver's author: see :data:`Busy`."""
        not_proved("a busy backend is DriverBusyError", "no fixture busy")

    async def test_an_unreachable_backend(self, lab: Lab, unreachable: Unreachable) -> None:
        driver = unreachable()
        try:
            with pytest.raises(DriverUnavailableError) as caught:
                await driver.ready()
                await driver.executor().insert_many([lab.job()])
            _is_explained(caught.value)
            assert caught.value.outcome == "not_applied"
        finally:
            await driver.aclose()

    async def test_a_busy_backend(self, lab: Lab, busy: Busy) -> None:
        job = lab.job()
        async with busy() as driver:
            try:
                await driver.ready()
                with pytest.raises(DriverBusyError) as caught:
                    await driver.executor().insert_many([job])
            finally:
                await driver.aclose()
        _is_explained(caught.value)
        if caught.value.outcome == "not_applied":
            assert await lab.executor.count(ListFilter()) == 0
        assert (await lab.executor.insert_many([job]))[0].status in {"INSERTED", "REPLAYED"}
