"""Bugs in how a pool claims jobs, finds claims that it does not know, rescues, and shuts down."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from uuid import UUID

import msgspec

from goncordia.driver import FetchRequest, Finish, JobRow
from goncordia.engine import calls as calls_module
from goncordia.engine.dispatch import Dispatcher
from goncordia.engine.engine import Engine
from goncordia.engine.lanes import Lanes
from goncordia.engine.outcome import Outcomes
from goncordia.engine.reconcile import Reconciler
from goncordia.engine.rescue import Rescuer
from goncordia.engine.run import Run
from goncordia.engine.shutdown import Shutdown
from goncordia.engine.workers import Worker
from goncordia.errors import DriverError

from .planting import bug

__all__: list[str] = []

# -------------------------------------------------------------------- unknown outcomes


@bug("finishes are repeated until they are answered", Lanes, "_send_alone")
async def unanswered_finishes_are_dropped(self: Lanes, runs: Sequence[Run]) -> None:
    self._claims.answered(*runs)


@bug("only a definite refusal ends the repetition", calls_module, "refused")
def everything_is_a_refusal(error: Exception) -> bool:
    return True


_exchange = Lanes._exchange


@bug("a fetch is never repeated", Lanes, "_exchange")
async def fetches_are_repeated(
    self: Lanes, runs: Sequence[Run], request: FetchRequest | None
) -> None:
    try:
        await _exchange(self, runs, request)
    except DriverError:
        await _exchange(self, runs, request)


@bug("what is held and not known is given back", Reconciler, "_ask")
async def nothing_is_reconciled(self: Reconciler) -> None:
    return


@bug("the pool asks again every half lease", Reconciler, "run")
async def reconciled_only_at_once(self: Reconciler) -> None:
    while True:
        await self._doubt.wait()
        with contextlib.suppress(DriverError):
            await self._ask()


@bug("a fetch in progress is no leak", Engine, "_is_fetching", within=200)
def fetches_in_progress_are_leaks(self: Engine, session: UUID, fetch_no: int) -> bool:
    return False


@bug("a leak goes back unchanged", Reconciler, "_give_back", within=100)
def leaks_fail(self: Reconciler, row: JobRow) -> None:
    assert row.claim is not None
    self._claims.give_back(Run(row, row.claim, None), Finish(row.claim, "discard"))


# -------------------------------------------------------------------- rescue


@bug("a rescue is not repeated", Rescuer, "rescue", within=100)
async def rescues_are_repeated(self: Rescuer) -> int:
    rows = await self._calls.once(self._executor.expire(self._session.id, 100))
    finishes = [self._outcomes.rescued(row, self._workers.get(row.kind)) for row in rows]
    if finishes:
        await self._calls.until_answered(lambda: self._executor.finish_many(finishes), "rescuing")
    return 0


_rescued = Outcomes.rescued


@bug("a last attempt that was never started is released", Outcomes, "rescued", within=200)
def unstarted_attempts_are_discarded(self: Outcomes, row: JobRow, worker: Worker | None) -> Finish:
    return _rescued(self, msgspec.structs.replace(row, started=True), worker)


@bug("a rescue keeps to max_attempts", Outcomes, "rescued", within=100)
def rescues_retry_for_ever(self: Outcomes, row: JobRow, worker: Worker | None) -> Finish:
    assert row.claim is not None
    return Finish(row.claim, "retry", rescue=True)


@bug("the jobs of dead pools are taken back", Rescuer, "rescue")
async def nothing_is_rescued(self: Rescuer) -> int:
    return 0


# -------------------------------------------------------------------- shutdown

_settle = Shutdown._settle


@bug("a session is closed after the last result", Shutdown, "_settle", within=200)
async def session_is_closed_early(self: Shutdown, seconds: float) -> bool:
    settled = await _settle(self, seconds)
    if settled:
        await self._lanes._session.close()
    return settled


@bug("what has not started is given back", Dispatcher, "stop", within=300)
def pending_is_forgotten_at_shutdown(self: Dispatcher) -> None:
    self.stopping = True
    for run in list(self._claims.pending):
        self._claims.dropped(run)
    self._good.set_all()


@bug("a shutdown comes to an end", Dispatcher, "stop", within=300)
def pending_is_kept_at_shutdown(self: Dispatcher) -> None:
    self.stopping = True
    self._good.set_all()
