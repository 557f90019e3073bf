"""Claims that the pool does not know of: taken by a fetch whose answer never came.

They are given back, never run. The pool asks what it holds at once after such a fetch and every
half lease, since a statement may take effect arbitrarily late.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final
from uuid import UUID

from goncordia.clock import Clock
from goncordia.driver import BaseExecutor, Finish, JobRow
from goncordia.engine.calls import Calls
from goncordia.engine.claims import Claims, claim_key
from goncordia.engine.logs import Failures
from goncordia.engine.run import Run
from goncordia.engine.session import Session
from goncordia.engine.signal import Signal
from goncordia.logs import fields_of

__all__ = ["Reconciler"]

_logger = logging.getLogger("goncordia.engine")

_BATCH: Final = 1000


class Reconciler:
    """Asks the backend what the session holds, and gives back what the pool does not know.

    Args:
        executor: the driver's.
        calls: how to call it.
        claims: the pool's.
        session: whose claims are asked for.
        clock: the pool's.
        in_progress: whether a fetch of that session and number is under way.
    """

    def __init__(
        self,
        executor: BaseExecutor,
        calls: Calls,
        claims: Claims,
        session: Session,
        clock: Clock,
        in_progress: Callable[[UUID, int], bool],
    ) -> None:
        self._executor = executor
        self._calls = calls
        self._claims = claims
        self._session = session
        self._in_progress = in_progress
        self._doubt = Signal(clock)

    def look(self, _session: UUID, _fetch_no: int) -> None:
        """Ask now: the outcome of a fetch is unknown."""
        self._doubt.set()

    async def run(self) -> None:
        """Ask every half lease, and when there is doubt; for ever."""
        failures = Failures("asking what this pool holds")
        while True:
            await self._doubt.wait(self._session.lease / 2)
            if not self._session.is_open:
                continue
            try:
                await self._ask()
            except Exception as error:  # noqa: BLE001  # the next time will do
                failures.failed(error)
            else:
                failures.succeeded()

    async def _ask(self) -> None:
        session, newest = self._session.id, self._session.last_fetch_no
        known = self._claims.known()
        # More than is known, so that what is unknown cannot hide behind it.
        limit = len(known) + _BATCH
        rows = await self._calls.once(self._executor.held(session, None, limit))
        if session != self._session.id or not self._session.is_open:
            return
        known |= self._claims.known()
        for row in rows:
            claim = row.claim
            if claim is None or claim_key(claim) in known:
                continue
            if claim.fetch_no > newest or self._in_progress(session, claim.fetch_no):
                continue
            self._give_back(row)

    def _give_back(self, row: JobRow) -> None:
        assert row.claim is not None  # noqa: S101  # held gives running jobs only
        _logger.info(
            "job %s (%s) was claimed by a fetch whose answer was lost; given back",
            row.id,
            row.kind,
            extra=fields_of(row),
        )
        self._claims.give_back(Run(row, row.claim, None), Finish(row.claim, "release"))
