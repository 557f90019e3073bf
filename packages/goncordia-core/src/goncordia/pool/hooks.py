"""What running jobs reach through their pool: its client, its application, their own claims."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from goncordia.client import Client, SyncClient
from goncordia.driver import AnyDriver, Finish, Outcome
from goncordia.engine.engine import Engine
from goncordia.engine.run import Run
from goncordia.errors import StaleClaimError, UnsupportedError
from goncordia.payload.codecs import Codec

__all__ = ["PoolHooks"]

T = TypeVar("T")


class PoolHooks:
    """The ``JobHooks`` of one pool.

    Args:
        driver: the pool's.
        app: what the registry's lifespan yielded.
        max_attempts: where neither the job nor its worker says.
        codec: by which jobs enqueue others; None: JSON.
    """

    def __init__(self, driver: AnyDriver, app: Any, max_attempts: int, codec: Codec | None) -> None:
        self._driver = driver
        self._loop = asyncio.get_running_loop()
        self.app: Any = app
        self.max_attempts = max_attempts
        self.engine: Engine | None = None
        self.client: Client[Any] = Client(driver, codec=codec)
        self.sync_client: SyncClient[Any] = SyncClient(driver, codec=codec)

    async def checkpoint(self, run: Run, value: bytes, /) -> None:
        """Store a checkpoint.

        Raises:
            StaleClaimError: the run does not hold its job any more.
            UnsupportedError: the driver has no marks.
        """
        if self.engine is None or not self._driver.capabilities.marks:
            raise UnsupportedError(self._driver.name, "marks", "checkpoints are marks")
        await self.engine.dispatcher.checkpoint(run, value)

    async def complete_tx(self, run: Run, tx: Any, output: bytes | None, /) -> None:
        """Finish the run inside a transaction.

        Raises:
            StaleClaimError: the run does not hold its job any more.
            UnsupportedError: the driver cannot.
        """
        self._require_tx_finish()
        executor = self._driver.unwrap_tx(tx)
        (outcome,) = await executor.finish_many([_completed(run, output)])
        _check(run, outcome)

    def complete_sync_tx(self, run: Run, tx: Any, output: bytes | None, /) -> None:
        """The same for a synchronous transaction, in the thread that holds it."""
        self._require_tx_finish()
        (outcome,) = self._driver.unwrap_sync_tx(tx).finish_many([_completed(run, output)])
        _check(run, outcome)

    def wait_for(self, coroutine: Coroutine[Any, Any, T], /) -> T:
        """Run a coroutine on the pool's loop and wait for it, in a worker's thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _require_tx_finish(self) -> None:
        if not self._driver.capabilities.tx_finish:
            raise UnsupportedError(self._driver.name, "tx_finish", "return, and the job completes")


def _completed(run: Run, output: bytes | None) -> Finish:
    # Even a call that fails may have taken effect: from here on the engine asks and does not tell.
    run.tx_completed = True
    return Finish(run.claim, "complete", output=output, checkpoint=run.checkpoint)


def _check(run: Run, outcome: Outcome) -> None:
    if outcome.status != "DONE":
        raise StaleClaimError(
            f"job {run.row.id}: this run does not hold it any more ({outcome.status}); "
            "roll the transaction back"
        )
