"""After ``complete_tx``: was the worker's transaction committed?

The engine asks by failing the claim. ``ALREADY`` is the good answer: the transaction ended it. The
request goes alone, since the claim's row may be locked by a transaction that is still open.
"""

from __future__ import annotations

import asyncio
import logging

from goncordia.driver import BaseExecutor
from goncordia.engine.calls import Calls
from goncordia.engine.claims import Claims
from goncordia.engine.outcome import Outcomes
from goncordia.engine.run import Run
from goncordia.engine.signal import Signal
from goncordia.errors import TransactionNotCommittedError

__all__ = ["Confirmer"]

_logger = logging.getLogger("goncordia.engine")


class Confirmer:
    """Sends the finish of runs that completed themselves.

    Args:
        executor: the driver's.
        calls: how to call it.
        claims: the pool's.
        outcomes: decides what an uncommitted transaction means for the job.
        ready: set when a claim was answered.
    """

    def __init__(
        self,
        executor: BaseExecutor,
        calls: Calls,
        claims: Claims,
        outcomes: Outcomes,
        ready: Signal,
    ) -> None:
        self._executor = executor
        self._calls = calls
        self._claims = claims
        self._outcomes = outcomes
        self._ready = ready
        self._tasks: set[asyncio.Task[None]] = set()

    def confirm(self, run: Run) -> None:
        """Find out, in a task of its own."""
        task = asyncio.get_running_loop().create_task(self._confirm(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Give up on what was not answered."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _confirm(self, run: Run) -> None:
        error = TransactionNotCommittedError("transaction not committed")
        finish = self._outcomes.failed(run, error)
        try:
            (outcome,) = await self._calls.until_answered(
                lambda: self._executor.finish_many([finish]), "confirming a transaction"
            )
        except Exception:
            _logger.exception("job %s (%s): confirming its transaction", run.row.id, run.row.kind)
        else:
            if outcome.status == "DONE":
                _logger.warning(
                    "job %s (%s) was completed in a transaction that did not commit: %s",
                    run.row.id,
                    run.row.kind,
                    finish.to,
                )
        self._claims.answered(run)
        self._ready.set()
