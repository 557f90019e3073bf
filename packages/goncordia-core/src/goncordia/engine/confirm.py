"""After ``complete_tx``: was the worker's transaction committed?

The engine asks by ending the claim as it would without the transaction: by what the handler raised,
or as failed if it returned. ``ALREADY`` is the good answer: the transaction ended it. The request
goes alone, since the claim's row may be locked by a transaction that is still open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from goncordia.driver import BaseExecutor, Finish, FinishTo, JobState, Outcome
from goncordia.engine.calls import Calls
from goncordia.engine.claims import Claims
from goncordia.engine.logs import log_failed
from goncordia.engine.outcome import Outcomes
from goncordia.engine.run import Run
from goncordia.engine.signal import Signal
from goncordia.errors import DriverBusyError, TransactionNotCommittedError
from goncordia.logs import fields_of

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
        # The engine sets these: who is told of the end of a run, and of a group that was freed.
        self.on_ended: Callable[[Run, Any, FinishTo, BaseException | None], None] = _nobody
        self.on_freed: Callable[[], None] = lambda: None

    def confirm(self, run: Run, finish: Finish, error: BaseException | None) -> None:
        """Find out, in a task of its own.

        Args:
            run: whose handler is over.
            finish: what is sent, and holds if the transaction did not commit.
            error: why the attempt failed then, if the handler raised it.
        """
        confirming = self._confirm(run, finish, error, run.job)
        task = asyncio.get_running_loop().create_task(confirming)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Give up on what was not answered."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _confirm(
        self, run: Run, finish: Finish, error: BaseException | None, job: Any
    ) -> None:
        if finish.to == "complete":
            error = TransactionNotCommittedError("transaction not committed")
            finish = self._outcomes.failed(run, error)
        run.finish = finish
        to = finish.to
        try:
            outcome = await self._calls.until_answered(
                lambda: self._end(finish), "confirming a transaction"
            )
        except asyncio.CancelledError:
            self._claims.take_back([run], unanswered=True)
            raise
        except Exception:
            _logger.exception(
                "job %s (%s): whether its transaction committed cannot be found out",
                run.row.id,
                run.row.kind,
                extra=fields_of(run.row),
            )
        else:
            if outcome.status == "DONE":
                _logger.warning(
                    "job %s (%s) was completed in a transaction that did not commit: %s",
                    run.row.id,
                    run.row.kind,
                    to,
                    extra=fields_of(run.row),
                )
                if error is not None:
                    log_failed(run.row, finish, error)
            elif outcome.state is JobState.COMPLETED:
                to, error = "complete", None
        self._claims.answered(run)
        self.on_ended(run, job, to, error)
        self._ready.set()
        if run.row.group is not None:
            self.on_freed()

    async def _end(self, finish: Finish) -> Outcome:
        (outcome,) = await self._executor.finish_many([finish])
        if outcome.status == "BUSY":
            raise DriverBusyError("the transaction is still open", outcome="not_applied")
        return outcome


def _nobody(_run: Run, _job: Any, _to: FinishTo, _error: BaseException | None) -> None:
    """Nobody is told."""
