"""Where the driver under test is, for many runs of the machine."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any, TypeVar

from goncordia.driver import AnyDriver, Change, Finish, ListFilter
from goncordia.gontest import MockClock
from goncordia.ids import JobIds
from goncordia_conformance.lab import MakeDriver
from goncordia_conformance.rules.transactions import Transaction

__all__ = ["Arena"]

R = TypeVar("R")

PAGE = 200


class Arena:
    """A driver on a clock and a loop of its own; its store is emptied after each run.

    Args:
        make_driver: makes the driver.
        transaction: begins a transaction; None: there are none, or they stay unproved.
    """

    def __init__(self, make_driver: MakeDriver, transaction: Transaction | None) -> None:
        # With a factory of its own it leaves the thread's current loop, which is pytest's, alone.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self.clock = MockClock()
        self.transaction = transaction
        # The same numbers every time, so that a failing run can be repeated.
        self.new_id = JobIds(self.clock, random.Random(0).getrandbits)
        self._number = 0
        self.driver: AnyDriver = make_driver(clock=self.clock)
        self.run(self.driver.migrate())
        self.run(self.driver.ready())
        self.executor = self.driver.executor()

    def begin(self) -> None:
        """A run begins. A driver with chances of its own would start them anew here."""

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run on the arena's loop."""
        return self._loop.run_until_complete(coroutine)

    def number(self) -> int:
        """A number that was never given before."""
        self._number += 1
        return self._number

    def close(self) -> None:
        """Close the driver and the loop."""
        try:
            self.run(self.driver.aclose())
        finally:
            self._runner.close()

    async def clean(self) -> None:
        """Empty the store, by the contract's own means."""
        executor = self.executor
        for info in await executor.session_list():
            await executor.session_close(info.id)
        while rows := (await executor.list_jobs(ListFilter(), None, PAGE)).jobs:
            await executor.finish_many([Finish(row.claim, "cancel") for row in rows if row.claim])
            await executor.change_many([Change(row.id, "delete") for row in rows])
        for queue in await executor.queue_list():
            await executor.queue_resume(queue.name)
        for record in await executor.record_list("r/"):
            await executor.record_put(record.name, None, record.version, bytes(16))
