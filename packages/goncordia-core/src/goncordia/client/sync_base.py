"""What carries the parts of the synchronous client."""

from __future__ import annotations

import random
from typing import Generic, TypeVar

from goncordia.client.operations.core import Core
from goncordia.client.operations.steps import Op, run_sync
from goncordia.clock import Clock
from goncordia.driver import SyncExecutor, SyncTxDriver, SyncTxExecutor
from goncordia.driver.portal import Portal
from goncordia.options import InsertOpts

__all__ = ["SyncBase"]

Tx_contra = TypeVar("Tx_contra", contravariant=True)
R = TypeVar("R")


class _Sleeper:
    """Blocks a thread on a clock, whose timers need an event loop: one is made at the first use."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._portal: Portal | None = None

    def __call__(self, seconds: float) -> None:
        if self._portal is None:
            self._portal = Portal()
        self._portal.call(lambda: self._clock.sleep(seconds))

    def close(self) -> None:
        if self._portal is not None:
            self._portal.stop()


class SyncBase(Generic[Tx_contra]):
    """Drives operations on a synchronous executor. See :class:`SyncClient` for the arguments."""

    def __init__(
        self,
        driver: SyncTxDriver[Tx_contra],
        defaults: InsertOpts | None,
        replays: int,
        rng: random.Random | None,
    ) -> None:
        self._driver = driver
        self._core = Core(driver, defaults=defaults, replays=replays, rng=rng)

    def __repr__(self) -> str:
        return f"<SyncClient of {type(self._driver).__name__}>"

    def _run(self, op: Op[SyncExecutor, R]) -> R:
        sleeper = _Sleeper(self._driver.clock)
        try:
            return run_sync(op, self._driver.sync_executor(), sleeper)
        finally:
            sleeper.close()

    def _run_tx(self, tx: Tx_contra, op: Op[SyncTxExecutor, R]) -> R:
        sleeper = _Sleeper(self._driver.clock)
        try:
            return run_sync(op, self._driver.unwrap_sync_tx(tx), sleeper)
        finally:
            sleeper.close()
