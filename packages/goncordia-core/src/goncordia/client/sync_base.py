"""What carries the parts of the synchronous client."""

from __future__ import annotations

import random
from typing import Generic, TypeVar

from goncordia.admission import Admission
from goncordia.client.operations.core import Core
from goncordia.client.operations.steps import Op, run_sync
from goncordia.driver import SyncExecutor, SyncTxDriver, SyncTxExecutor
from goncordia.driver.portal import Portal
from goncordia.options import InsertOpts
from goncordia.payload.codecs import Codec

__all__ = ["SyncBase"]

Tx_contra = TypeVar("Tx_contra", contravariant=True)
R = TypeVar("R")


class SyncBase(Generic[Tx_contra]):
    """Drives operations on a synchronous executor. See :class:`SyncClient` for the arguments."""

    def __init__(
        self,
        driver: SyncTxDriver[Tx_contra],
        defaults: InsertOpts | None,
        replays: int,
        rng: random.Random | None,
        codec: Codec | None,
        admission: Admission | None,
    ) -> None:
        self._driver = driver
        self._core = Core(
            driver,
            defaults=defaults,
            replays=replays,
            rng=rng,
            codec=codec,
            admission=admission,
            own=self._own,
        )

    def __repr__(self) -> str:
        return f"<SyncClient of {type(self._driver).__name__}>"

    def _own(self) -> SyncExecutor:
        return self._driver.sync_executor()

    def _run(self, op: Op[SyncExecutor, R]) -> R:
        return run_sync(op, self._driver.sync_executor(), self._sleep)

    def _run_tx(self, tx: Tx_contra, op: Op[SyncTxExecutor, R]) -> R:
        return run_sync(op, self._driver.unwrap_sync_tx(tx), self._sleep)

    def _sleep(self, seconds: float) -> None:
        """Block the thread on the driver's clock, whose timers need an event loop."""
        portal = Portal()
        try:
            portal.call(lambda: self._driver.clock.sleep(seconds))
        finally:
            portal.stop()
