"""Bugs in how a run ends: attempts, directives, cancels, transactions, checkpoints."""

from __future__ import annotations

import asyncio

import msgspec

from goncordia.driver import Claim, Finish, JobRow, Outcome
from goncordia.engine.confirm import Confirmer
from goncordia.engine.dispatch import Dispatcher
from goncordia.engine.outcome import Outcomes
from goncordia.engine.run import Cause, Run
from goncordia.engine.workers import Worker
from goncordia.pool import hooks as hooks_module

from .network import Faults
from .planting import bug

__all__: list[str] = []

# -------------------------------------------------------------------- attempts and directives


@bug("a failure of the last attempt discards", Outcomes, "is_last")
def no_attempt_is_the_last(self: Outcomes, row: JobRow, worker: Worker | None) -> bool:
    return False


_raised = Outcomes.raised


@bug("a snooze uses no attempt", Outcomes, "raised")
def snoozes_use_attempts(self: Outcomes, run: Run, error: BaseException) -> Finish:
    finish = _raised(self, run, error)
    return msgspec.structs.replace(finish, to="retry") if finish.to == "snooze" else finish


_interrupted = Outcomes.interrupted


@bug("a shutdown gives jobs back without using an attempt", Outcomes, "interrupted", within=100)
def shutdowns_use_attempts(self: Outcomes, run: Run, error: BaseException) -> Finish | None:
    if run.cause is Cause.SHUTDOWN:
        return self.failed(run, error)
    return _interrupted(self, run, error)


@bug("a timeout interrupts", Dispatcher, "_due")
def timeouts_do_nothing(self: Dispatcher, run: Run) -> None:
    return


@bug("no more handlers run than there are slots", Dispatcher, "start_pending")
def slots_are_not_counted(self: Dispatcher) -> None:
    while self._claims.pending and not self.stopping:
        run = self._claims.pending.popleft()
        self._claims.started(run)
        run.task = asyncio.get_running_loop().create_task(self._run(run))


# -------------------------------------------------------------------- cancels


@bug("a cancel reaches the run", Dispatcher, "cancel_requested", within=100)
def cancels_are_not_heard(self: Dispatcher, requested: tuple[Claim, ...]) -> None:
    return


@bug(
    "a cancel is for one claim",
    Dispatcher,
    "cancel_requested",
    within=200,
    hot_admin=True,
    jobs=(3, 6),
    faults=Faults(rate=0.3, kinds=("late",)),
    records=False,
)
def cancels_are_for_any_claim(self: Dispatcher, requested: tuple[Claim, ...]) -> None:
    ids = {claim.job_id for claim in requested}
    for run in list(self._claims):
        if run.claim.job_id in ids:
            self.interrupt(run, Cause.CANCELLED)


# -------------------------------------------------------------------- transactions


@bug(
    "complete_tx fails unless the answer is DONE",
    hooks_module,
    "_check",
    within=100,
    focus=("session_beat",),
    kinds=(0, 1, 0, 0),
)
def complete_tx_is_blind(run: Run, outcome: Outcome) -> None:
    return


@bug("a transaction that did not commit is a failure", Confirmer, "confirm")
def transactions_are_trusted(
    self: Confirmer, run: Run, finish: Finish, error: BaseException | None
) -> None:
    self._claims.replaced(run, finish)


@bug("whether a transaction was committed is asked", Confirmer, "confirm")
def transactions_are_not_confirmed(
    self: Confirmer, run: Run, finish: Finish, error: BaseException | None
) -> None:
    self._claims.answered(run)


# -------------------------------------------------------------------- checkpoints


@bug("a checkpoint is stored when it returns", Dispatcher, "checkpoint")
async def checkpoints_are_not_stored(self: Dispatcher, run: Run, value: bytes) -> None:
    return


@bug(
    "a finish stores a checkpoint again that may have been overwritten",
    Dispatcher,
    "_with_checkpoint",
    within=200,
    faults=Faults(rate=0.1, kinds=("zombie",)),
    kinds=(0, 0, 1, 0),
    records=False,
)
def checkpoints_are_not_stored_again(
    self: Dispatcher, run: Run, finish: Finish | None
) -> Finish | None:
    return finish
