"""What carries the parts of the asynchronous client."""

from __future__ import annotations

import random
from typing import Generic, TypeVar

from goncordia.admission import Admission
from goncordia.client.operations.core import Core
from goncordia.client.operations.steps import Op, run
from goncordia.driver import BaseExecutor, TxDriver, TxExecutor
from goncordia.options import InsertOpts
from goncordia.payload.codecs import Codec

__all__ = ["AsyncBase"]

Tx_contra = TypeVar("Tx_contra", contravariant=True)
R = TypeVar("R")


class AsyncBase(Generic[Tx_contra]):
    """Drives operations on an asynchronous driver. See :class:`Client` for the arguments."""

    def __init__(
        self,
        driver: TxDriver[Tx_contra],
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

    def _own(self) -> BaseExecutor:
        return self._driver.executor()

    async def _run(self, op: Op[BaseExecutor, R]) -> R:
        await self._driver.ready()
        return await run(op, self._driver.executor(), self._driver.clock)

    async def _run_tx(self, tx: Tx_contra, op: Op[TxExecutor, R]) -> R:
        await self._driver.ready()
        return await run(op, self._driver.unwrap_tx(tx), self._driver.clock)
