"""The lanes: each sends what has finished, and fetches into all free room, in one exchange.

There is no threshold and no timer between a result and its sending. When little happens a result
goes at once; under load, what finishes while a lane is under way is the next batch.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from goncordia.clock import Clock, Timer
from goncordia.driver import (
    After,
    BaseExecutor,
    FetchRequest,
    FetchResult,
    Finish,
    FinishTo,
    JobState,
    Outcome,
)
from goncordia.driver.begun import Begun
from goncordia.engine.calls import Calls, busy_pause, one_each
from goncordia.engine.claims import Claims
from goncordia.engine.events import Observers, ResultLost
from goncordia.engine.run import Run, RunState
from goncordia.engine.session import Session
from goncordia.engine.shape import Shape
from goncordia.engine.signal import Signal
from goncordia.errors import DriverError
from goncordia.logs import fields_of

__all__ = ["Lanes"]

_logger = logging.getLogger("goncordia.engine")

_MORE_PAUSE: Final = 0.02
"""Seconds, at most, before looking again where there may be more and this time was nothing."""

_RATE_WINDOW: Final = 0.1
"""Seconds whose finishes say how many claims may wait for a slot.

Only handlers that were as quick count: a slow one's end does not say that another will end soon.
"""


_PATIENCE: Final = 2.0
"""Seconds after which the room that a fetch may fill is given to others."""


_ENDS: Final[Mapping[FinishTo, JobState]] = {
    "complete": JobState.COMPLETED,
    "discard": JobState.DISCARDED,
    "cancel": JobState.CANCELLED,
}


class _Reservation:
    """The room that a fetch under way may fill."""

    def __init__(self, reserve: Callable[[FetchRequest, int], None], request: FetchRequest) -> None:
        self._reserve = reserve
        self._request = request
        self._held = True
        reserve(request, 1)

    def end(self) -> bool:
        """Give the room back; False: it was before."""
        held, self._held = self._held, False
        if held:
            self._reserve(self._request, -1)
        return held


class _Flight(NamedTuple):
    """A fetch under way.

    Attributes:
        request: what was asked for.
        reservation: of the room.
        patience: ends the reservation.
        answer: it was sent already, and gives its answer.
    """

    request: FetchRequest
    reservation: _Reservation
    patience: Timer
    answer: Begun[tuple[list[Outcome], FetchResult | None]] | None = None


class Lanes:
    """The exchange loops of a pool.

    Args:
        executor: the driver's.
        calls: how to call it.
        claims: the pool's.
        session: under which jobs are claimed.
        shape: what to ask for.
        clock: the pool's.
        rng: for the jitter of polls.
        ready: set when there is something to send, or room.
        concurrency: slots.
        max_pending: claims that may wait for a slot; None: adapts.
        poll_interval: seconds between looks at an empty queue.
        take: given each fetch's result, the session that it was for, and whether it came late:
            others may have filled its room.
        refuse: given a result that the driver refused; says what to send instead.
        unknown: told of a fetch whose outcome is not known, to look what it claimed.
        observe: told of results that were lost.
    """

    def __init__(
        self,
        executor: BaseExecutor,
        calls: Calls,
        claims: Claims,
        session: Session,
        shape: Shape,
        clock: Clock,
        rng: random.Random,
        ready: Signal,
        *,
        concurrency: int,
        max_pending: int | None,
        poll_interval: float,
        take: Callable[[UUID, FetchResult, bool], None],
        refuse: Callable[[Run, Exception], Finish | None],
        unknown: Callable[[UUID, int], None],
        observe: Observers,
    ) -> None:
        self._executor = executor
        self._calls = calls
        self._claims = claims
        self._session = session
        self._shape = shape
        self._clock = clock
        self._rng = rng
        self._ready = ready
        self._concurrency = concurrency
        self._max_pending = max_pending
        self._poll_interval = poll_interval
        self._take = take
        self._refuse = refuse
        self._unknown = unknown
        self._observe = observe
        self._max_batch = executor.capabilities.max_batch
        self._adapts = max_pending is None and executor.capabilities.marks
        self._look_at = float("-inf")
        self._reserved = 0
        self._recent: deque[tuple[float, int]] = deque()
        self._recent_count = 0
        self._begun: _Flight | None = None
        self._napping = 0
        self.in_flight: set[tuple[UUID, int]] = set()
        self.busy = 0
        self.stopping = False

    def look(self, in_seconds: float = 0.0) -> None:
        """Fetch again by then: jobs may be due."""
        at = self._clock.monotonic() + in_seconds
        if at < self._look_at:
            self._look_at = at
            self._ready.set()

    def hurry(self) -> None:
        """Fetch again, now if that is possible: a job is due.

        A lane that has nothing to do takes the answer.
        """
        self.look()
        if (
            not self._executor.begins
            or not self._napping
            or self._begun is not None
            or self._claims.unsent
        ):
            return
        if (request := self._request(sending=False)) is None:
            return
        answer = self._executor.begin_exchange((), request)
        if answer is None:
            self._look_at = float("-inf")  # a lane sends it
        else:
            self._begun = self._depart(request)._replace(answer=answer)

    def drop(self) -> None:
        """The lanes have ended: nobody takes an answer any more."""
        begun, self._begun = self._begun, None
        if begun is not None and begun.answer is not None:
            self._land(begun)
            begun.answer.close()

    async def run(self) -> None:
        """One lane, until the pool stops and nothing is left to send."""
        backoff = self._calls.backoff()
        while True:
            begun = self._begun
            runs = [] if begun is not None else self._claims.take(self._max_batch)
            request = self._request(bool(runs)) if begun is None else begun.request
            if not runs and request is None:
                if self.stopping and not self._claims and not self.busy:
                    self._ready.set()  # the other lanes may go as well
                    return
                self._napping += 1
                try:
                    await self._ready.wait(self._nap())
                finally:
                    self._napping -= 1
                continue
            if self._claims.unsent:
                self._ready.set()  # more than one batch: another lane may take it
            self.busy += 1
            try:
                error = await self._turn(runs, request)
            except BaseException:
                self._claims.take_back(runs, unanswered=True)
                raise
            finally:
                self.busy -= 1
            if error is None:
                backoff.reset()
            else:
                await backoff.pause(error, "exchanging results for jobs")

    async def _turn(self, runs: Sequence[Run], request: FetchRequest | None) -> Exception | None:
        try:
            await self._exchange(runs, request)
        except Exception as error:  # noqa: BLE001  # whatever it was: the lane goes on
            await self._after_failure(runs, request, error)
            return error
        return None

    # ---------------------------------------------------------------- what to ask for

    def _request(self, sending: bool) -> FetchRequest | None:
        """A fetch into all free room, if it is time for one."""
        if self.stopping or not self._session.good():
            return None
        now = self._clock.monotonic()
        if now < self._look_at and not sending:
            return None
        room = self._room()
        if room <= 0:
            return None
        queues = self._shape.queues(room)
        if not queues:
            return None
        number = self._session.next_fetch_no()
        # The other lanes need not look at the same queues, unless this one takes long.
        if now >= self._look_at:
            self._look_at = now + self._poll_interval
        if (wait := self._shape.wait()) is not None:
            self._look_at = min(self._look_at, now + wait)
        return FetchRequest(self._session.id, number, room, queues, self._session.worker_id)

    def allowance(self) -> int:
        """How many claims may wait for a slot now."""
        since = self._clock.monotonic() - _RATE_WINDOW
        recent = self._recent
        while recent and recent[0][0] < since:
            self._recent_count -= recent.popleft()[1]
        return self._recent_count if self._adapts else self._max_pending or 0

    def _room(self) -> int:
        free = self._concurrency + self.allowance() - self._claims.active - self._reserved
        return min(free, self._max_batch)

    def _nap(self) -> float | None:
        """Seconds until it is time to look; None: first something must happen, which wakes us."""
        now = self._clock.monotonic()
        if self.stopping or not self._session.good():
            return None
        if not self._shape.queues(self._room()):
            return self._shape.wait()
        return max(0.0, self._look_at - now)

    # ---------------------------------------------------------------- one exchange

    async def _exchange(self, runs: Sequence[Run], request: FetchRequest | None) -> None:
        finishes = [run.finish for run in runs if run.finish is not None]
        if request is None:
            outcomes, _ = await self._calls.once(self._executor.exchange(finishes, None))
            self._settle(runs, one_each(finishes, outcomes))
            return
        flight = self._depart(request)
        try:
            answer = flight.answer or self._executor.exchange(finishes, request)
            outcomes, result = await self._calls.once(answer)
        finally:
            late = not self._land(flight)
        freed = self._settle(runs, one_each(finishes, outcomes))
        if result is None:
            raise DriverError("the driver answered a fetch with nothing")
        self._take(request.session, result, late)
        self._plan(request, result, freed=freed)
        if 0 < len(result.jobs) < request.limit:
            # The jobs start before this lane looks what else there is.
            await asyncio.sleep(0)  # noqa: TID251  # a turn of the loop, and no time

    def _depart(self, request: FetchRequest) -> _Flight:
        """What a fetch begins with, unless it was begun."""
        begun = self._begun
        if begun is not None and begun.request is request:
            self._begun = None
            return begun
        reservation = _Reservation(self._reserve, request)
        patience = self._clock.call_later(_PATIENCE, partial(self._lose_patience, reservation))
        self.in_flight.add((request.session, request.fetch_no))
        return _Flight(request, reservation, patience)

    def _land(self, flight: _Flight) -> bool:
        """A fetch is over; False: its room was given back before."""
        flight.patience.cancel()
        self.in_flight.discard((flight.request.session, flight.request.fetch_no))
        return flight.reservation.end()

    def _reserve(self, request: FetchRequest, sign: int) -> None:
        self._reserved += sign * request.limit
        self._shape.reserve(request.queues, sign)

    def _lose_patience(self, reservation: _Reservation) -> None:
        if reservation.end():
            self._ready.set()

    def has_room(self, queue: str) -> bool:
        """Whether one more job of this queue may be kept."""
        return self._room() > 0 and self._shape.has_room(queue)

    def _settle(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> bool:
        """Note the answers; whether something that may let a job go was freed."""
        freed, quick = False, 0
        answered: list[Run] = []
        busy: list[Run] = []
        for run, outcome in zip(runs, outcomes, strict=True):
            if outcome.status == "BUSY":
                run.busy += 1
                busy.append(run)
                continue
            answered.append(run)
            if outcome.status != "DONE":
                self._tell_lost(run, outcome)
            freed = freed or run.row.group is not None
            quick += run.seconds < _RATE_WINDOW
            # This fetch need not have seen the job that its own exchange put back.
            if (finish := run.finish) is not None and isinstance(finish.when, After):
                self.look(finish.when.seconds)
        if busy:
            pause = busy_pause(max(run.busy for run in busy), self._rng)
            self._clock.call_later(pause, partial(self._claims.take_back, busy))
        if answered:
            self._claims.answered(*answered)
        if quick and self._adapts:
            self._recent.append((self._clock.monotonic(), quick))
            self._recent_count += quick
        return freed

    def _tell_lost(self, run: Run, outcome: Outcome) -> None:
        """Say so if another ended the claim first: nobody else knows that there was a result."""
        finish, state = run.finish, outcome.state
        if finish is None or finish.to == "release":
            return
        if outcome.status == "ALREADY" and state in (None, _ENDS.get(finish.to, state)):
            return  # an earlier sending was applied; or one cannot tell, see the event
        _logger.warning(
            "job %s (%s): its result (%s) %s lost, the claim was taken back before; the job is %s",
            run.row.id,
            run.row.kind,
            finish.to,
            "may be" if run.repeated else "was",
            "gone" if state is None else state,
            extra=fields_of(run.row),
        )
        self._observe(ResultLost(run.row, finish.to, state, not run.repeated))

    def _plan(self, request: FetchRequest, result: FetchResult, *, freed: bool) -> None:
        """When to look next."""
        if result.lost:
            return
        if len(result.jobs) >= request.limit or freed:
            self.look()
        elif result.more:
            self.look(0.0 if result.jobs else _MORE_PAUSE * self._rng.random())
        nap = self._poll_interval * self._rng.uniform(0.75, 1.25)
        due = result.next_due_in
        self.look(nap if due is None else min(nap, due))

    # ---------------------------------------------------------------- when it went wrong

    async def _after_failure(
        self, runs: Sequence[Run], request: FetchRequest | None, error: Exception
    ) -> None:
        """Repeat the finishes until they are answered, never the fetch."""
        unsettled = [run for run in runs if run.state is RunState.SENDING]
        for run in unsettled:
            run.repeated = True
        if unsettled:
            await self._send_alone(unsettled)
        if request is not None:
            applied = not (isinstance(error, DriverError) and error.outcome == "not_applied")
            if applied:
                self._unknown(request.session, request.fetch_no)
            self.look(self._poll_interval)

    async def _send_alone(self, runs: Sequence[Run]) -> None:
        finishes = [run.finish for run in runs if run.finish is not None]

        async def send() -> Sequence[Outcome]:
            return one_each(finishes, await self._executor.finish_many(finishes))

        try:
            outcomes = await self._calls.until_answered(send, "sending results")
        except Exception as refusal:  # noqa: BLE001  # refused for good: find out which of them
            if len(runs) > 1:
                middle = len(runs) // 2
                await self._send_alone(runs[:middle])
                await self._send_alone(runs[middle:])
                return
            self._give_up(runs[0], refusal)
            return
        if self._settle(runs, outcomes):
            self.look()

    def _give_up(self, run: Run, refusal: Exception) -> None:
        _logger.error(
            "job %s (%s): its result cannot be stored: %s",
            run.row.id,
            run.row.kind,
            refusal,
            extra=fields_of(run.row),
        )
        instead = self._refuse(run, refusal)
        if instead is None:
            self._claims.answered(run)
        else:
            self._claims.replaced(run, instead)
