"""Rule 11: the library's errors become Goncordia's, and say whether the outcome is known.

Whatever goes wrong: if an error says that an operation was not applied, everything must be as it
was. The way to the backend breaks at each message of each operation in turn, before its effect and
after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import product
from typing import Any, Final, TypeAlias, cast, get_args
from uuid import UUID

import pytest

from goncordia.driver import AnyDriver, BaseExecutor, ListFilter, SyncExecutor
from goncordia.errors import DriverBusyError, DriverError, DriverUnavailableError
from goncordia_conformance.base import Conformance
from goncordia_conformance.breaks import Breaks, Link, connected
from goncordia_conformance.faults import Side
from goncordia_conformance.lab import Lab
from goncordia_conformance.marks import not_proved
from goncordia_conformance.proxy import Break
from goncordia_conformance.trials import CLAIMS, PREPARE, Desk, Trial

__all__ = ["Busy", "ErrorTests", "Unreachable"]

Unreachable: TypeAlias = Callable[[], AnyDriver]
"""Makes a driver whose backend cannot be reached."""

Busy: TypeAlias = Callable[[], AbstractAsyncContextManager[AnyDriver]]
"""``async with busy() as driver:`` a driver on the store, whose writes the backend refuses within
the block, without much waiting."""


OPERATIONS: Final = {
    name: PREPARE[name]
    for name in (
        "insert",
        "insert_unique",
        "finish_complete",
        "finish_retry_later",
        "mark",
        "cancel_waiting",
        "retry_finished",
        "delete_finished",
        "record_change",
    )
} | CLAIMS
"""What a job, a record or a claim hangs on."""

SYNCHRONOUS: Final = ("insert", "insert_unique", "cancel_waiting", "retry_finished")
"""Of these, what synchronous code does."""

FROZEN: Final = ("insert", "exchange", "finish_complete", "cancel_waiting")
"""Of these, what is done where every break takes as long as the driver waits."""

MOST_MESSAGES = 60
"""More messages to the backend than any one operation sends here."""

_TRIES = 20
_NOBODY: Final = UUID(int=0)


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

    @pytest.fixture
    def breaks(self) -> Breaks:
        """For the driver's author: see :data:`~goncordia_conformance.breaks.Breaks`."""
        not_proved("what an error says was not applied is not there", "no fixture breaks")

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

    @pytest.mark.parametrize("operation", OPERATIONS)
    async def test_what_a_busy_backend_did_not_apply_is_not_there(
        self, live_lab: Lab, busy: Busy, operation: str
    ) -> None:
        trial = await OPERATIONS[operation](Desk(live_lab))
        before = await trial.look()
        async with busy() as driver:
            try:
                await driver.ready()
                error = await _error_of(trial, driver.executor())
            finally:
                await driver.aclose()
        if error is not None and error.outcome == "not_applied":
            assert await trial.look() == before

    @pytest.mark.parametrize("operation", OPERATIONS)
    async def test_what_was_not_applied_is_not_there(
        self, live_lab: Lab, breaks: Breaks, operation: str
    ) -> None:
        async with breaks() as link:
            await connected(link.driver)
            await _break_everywhere(Desk(live_lab), link, operation, link.driver.executor())

    @pytest.mark.parametrize("operation", SYNCHRONOUS)
    async def test_nor_is_what_synchronous_code_did_not_apply(
        self, live_lab: Lab, breaks: Breaks, operation: str
    ) -> None:
        async with breaks() as link:
            await connected(link.driver)
            executor = cast("BaseExecutor", _InThread(link.driver.sync_executor()))
            await _break_everywhere(Desk(live_lab), link, operation, executor)

    @pytest.mark.parametrize("operation", FROZEN)
    async def test_nor_is_what_a_frozen_backend_did_not_apply(
        self, live_lab: Lab, breaks: Breaks, operation: str
    ) -> None:
        async with breaks() as link:
            if not link.freezes:
                not_proved("what a frozen backend did not apply is not there", "freezes is False")
            await connected(link.driver)
            executor = link.driver.executor()
            await _break_everywhere(Desk(live_lab), link, operation, executor, ("frozen",))


class _InThread:
    """A synchronous executor for asynchronous code, as far as trials need it."""

    def __init__(self, executor: SyncExecutor) -> None:
        self._executor = executor

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = getattr(self._executor, name)
        return lambda *args: asyncio.to_thread(operation, *args)


async def _error_of(trial: Trial, executor: BaseExecutor) -> DriverError | None:
    """What came of it, if not an answer."""
    try:
        await trial.act(executor)
    except DriverError as error:
        _is_explained(error)
        return error
    return None


async def _break_everywhere(
    desk: Desk,
    link: Link,
    operation: str,
    executor: BaseExecutor,
    hows: Sequence[Break] = ("cut", "gone"),
) -> None:
    """Do it again and again, until the way breaks at none of its messages any more."""
    for side, how in product(get_args(Side), hows):
        for at in range(MOST_MESSAGES):
            trial = await OPERATIONS[operation](desk)
            before = await trial.look()
            await _connected(executor)
            link.plan(at, side, how)
            error = await _error_of(trial, executor)
            broke = await link.mend()
            if error is not None and error.outcome == "not_applied":
                assert await trial.look() == before, f"{side} message {at}, {how}: {error}"
            if not broke:
                break
        else:
            raise AssertionError(f"it sends more than {MOST_MESSAGES} messages")
        assert at > 0, "it sends nothing"
        # Whose calls end soon may be too slow now and then.
        assert error is None or link.freezes, "it failed though nothing broke"


async def _connected(executor: BaseExecutor) -> None:
    """Let the driver have a connection that works."""
    for _ in range(_TRIES):
        try:
            await executor.get_many([_NOBODY])
            return
        except DriverUnavailableError:
            pass
    raise AssertionError(f"no connection in {_TRIES} tries")
