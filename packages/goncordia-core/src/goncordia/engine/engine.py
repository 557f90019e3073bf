"""The engine of one pool: its parts, put together, started and stopped."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final
from uuid import UUID

from goncordia.clock import Clock
from goncordia.driver import After, AnyDriver, FetchResult, Finish, JobRow, Wake
from goncordia.engine.calls import Calls
from goncordia.engine.claims import Claims
from goncordia.engine.confirm import Confirmer
from goncordia.engine.dispatch import Dispatcher
from goncordia.engine.events import JobGivenBack, Observers
from goncordia.engine.heart import LoopHeart
from goncordia.engine.heart_thread import HeartThread
from goncordia.engine.lanes import Lanes
from goncordia.engine.limits import Limits
from goncordia.engine.listening import Listening
from goncordia.engine.logs import log_progress, progress_wanted
from goncordia.engine.marks import Marks
from goncordia.engine.outcome import UNKNOWN_KIND_DELAY, Outcomes
from goncordia.engine.processes import Processes
from goncordia.engine.reconcile import Reconciler
from goncordia.engine.rescue import Rescuer
from goncordia.engine.retention import Pruner
from goncordia.engine.run import Cause, Run
from goncordia.engine.session import Session
from goncordia.engine.settings import Settings
from goncordia.engine.shape import Shape
from goncordia.engine.shed import Shedder
from goncordia.engine.shutdown import Shutdown
from goncordia.engine.signal import Signal
from goncordia.engine.single import Single
from goncordia.engine.threads import Threads
from goncordia.engine.turns import Turns
from goncordia.engine.workers import Worker
from goncordia.job import JobHooks
from goncordia.logs import fields_of
from goncordia.payload.codec import CONTENT_JSON
from goncordia.registry import WorkerSpec

__all__ = ["Engine"]

_logger = logging.getLogger("goncordia.engine")

_WATCH_SHARE: Final = 1 / 3
"""Sessions that are records are looked at at least this often in a lease."""

_LONGEST_STAY: Final = 60.0
"""Seconds for which a job goes back, at most, whose kind is at its limit here."""

_CALL_BOUND_SHARE: Final = 0.5
"""A call of the driver is given up after this share of the lease."""

_BEAT_BOUND_SHARE: Final = 1 / 6
"""The same for a beat: several must fit into a lease."""


class Engine:
    """Fetches, runs and finishes jobs under one session after another.

    Args:
        driver: open and verified.
        specs: the workers, by kind.
        settings: the pool's.
        clock: the pool's.
        rng: for jitter.
        hooks: what jobs reach through.
    """

    def __init__(
        self,
        driver: AnyDriver,
        specs: Mapping[str, WorkerSpec],
        settings: Settings,
        clock: Clock,
        rng: random.Random,
        hooks: JobHooks,
    ) -> None:
        self._driver = driver
        self._settings = settings
        self._clock = clock
        executor = driver.executor()
        capabilities = executor.capabilities
        logged = (log_progress,) if progress_wanted() else ()
        self.observe = observe = Observers((*logged, *settings.observers))
        self._ready = ready = Signal(clock)
        self._changed = changed = Signal(clock)
        calls = Calls(clock, rng, bound=settings.lease * _CALL_BOUND_SHARE)
        self._threads = Threads(f"goncordia-{settings.worker_id}")
        self._processes = Processes(settings.worker_id, specs, settings.max_attempts)
        self._workers = {
            kind: Worker(
                spec,
                settings.middleware,
                settings.max_attempts,
                self._threads,
                self._processes,
                settings.codecs,
            )
            for kind, spec in specs.items()
        }
        limited = bool(settings.queue_limits or settings.kind_limits)
        self.claims = claims = Claims(ready, changed, count_parts=limited)
        self.session = session = Session(
            executor,
            calls,
            clock,
            worker_id=settings.worker_id,
            lease=settings.lease,
            observe=observe,
        )
        outcomes = Outcomes(
            clock,
            rng,
            worker_id=settings.worker_id,
            max_attempts=settings.max_attempts,
            retry_policy=settings.retry_policy,
            marks=capabilities.marks,
        )
        self._outcomes = outcomes
        self._marks = Marks(executor, calls, clock, rng)
        self._limits = limits = Limits(
            executor,
            calls,
            clock,
            rng,
            queues=settings.queue_policies,
            kinds=settings.kind_policies,
            arrived=self._tokens_arrived,
        )
        self._confirmer = Confirmer(executor, calls, claims, outcomes, ready)
        self.dispatcher = Dispatcher(
            claims,
            session,
            outcomes,
            self._marks if capabilities.marks else None,
            limits if limits.has_keys else None,
            clock,
            hooks=hooks,
            concurrency=settings.concurrency,
            observe=observe,
            on_error=settings.error_handler,
            confirm=self._confirmer.confirm,
        )
        self._confirmer.on_ended = self.dispatcher.tell_ended
        self.dispatcher.loop_ends = self._loop_ends
        self._shape = Shape(
            claims,
            turns=Turns(settings.queues, settings.weights),
            limits=limits,
            queue_limits=settings.queue_limits,
            kind_limits=settings.kind_limits,
            kinds=specs,
            fetch_kinds=capabilities.fetch_kinds,
        )
        self._reconciler = Reconciler(executor, calls, claims, session, clock, self._is_fetching)
        self.lanes = Lanes(
            executor,
            calls,
            claims,
            session,
            self._shape,
            clock,
            rng,
            ready,
            concurrency=settings.concurrency,
            max_pending=settings.max_pending if capabilities.marks else 0,
            poll_interval=settings.poll_interval,
            take=self._take,
            refuse=self._refuse,
            unknown=self._reconciler.look,
            observe=observe,
        )
        self._confirmer.on_freed = self.lanes.look
        only = settings.only
        self._single = None if only is None else Single(claims, self.lanes, only)
        self.rescuer = Rescuer(
            executor,
            calls,
            session,
            outcomes,
            self._workers,
            clock,
            rng,
            interval=self._rescue_interval(),
            observe=observe,
        )
        self._loop_heart = LoopHeart(
            executor,
            session,
            Calls(clock, rng, bound=settings.lease * _BEAT_BOUND_SHARE),
            clock,
            interval=settings.heartbeat_interval,
        )
        self._heart_thread: HeartThread | None = None
        self._listening = Listening(driver, calls, self._woken)
        self._pruner = (
            None
            if settings.retention is None
            else Pruner(executor, calls, clock, rng, settings.retention)
        )
        self._shedder = Shedder(claims, self.lanes.allowance, clock, observe)
        self._shutdown = Shutdown(
            claims,
            self.lanes,
            self.dispatcher,
            clock,
            changed,
            timeout=settings.shutdown_timeout,
        )
        session.on_open = self.lanes.look
        session.on_good = self._good
        session.on_lost = self.dispatcher.session_lost
        session.on_cancels = self.dispatcher.cancel_requested
        self._background: set[asyncio.Task[None]] = set()
        self._lane_tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    def _rescue_interval(self) -> float:
        """Without the backend's time a watcher must look often, else it watches from anew."""
        if self._driver.capabilities.server_time:
            return self._settings.rescue_interval
        return min(self._settings.rescue_interval, self._settings.lease * _WATCH_SHARE)

    # ---------------------------------------------------------------- life

    async def start(self) -> None:
        """Open a session and start working."""
        try:
            await self.session.open()
        except BaseException:
            await self._end()
            raise
        loops: list[Callable[[], Coroutine[Any, Any, None]]] = [
            self.dispatcher.deadlines.run,
            self.rescuer.run,
            self._reconciler.run,
            self._shedder.run,
            self._listening.run,
        ]
        if not self._start_heart_thread():
            loops.append(self._loop_heart.run)
        if self._pruner is not None:
            loops.append(self._pruner.run)
        loops += self._limits.loops()
        if self._settings.interrupt_on_lapse:
            loops.append(self._watch_lapse)
        for run in loops:
            self._spawn(run())
        create_task = asyncio.get_running_loop().create_task
        self._lane_tasks = [create_task(self.lanes.run()) for _ in range(self._settings.lanes)]
        for task in self._lane_tasks:
            task.add_done_callback(_report)

    async def stop(self) -> int:
        """Stop in order: nothing new, what has not started back, what runs to its end or its limit.

        The session beats until the last result is answered, and is closed then. If a handler goes
        on in spite of all, the session is left to its lease, so that nobody runs that job
        meanwhile; and so it is if the backend takes no results until the time for it is over.

        Cancelled, it ends at once, and the session is left to its lease as well.

        Returns:
            How many claims were not answered.
        """
        self._stopping = self.lanes.stopping = True
        if self._single is not None:
            self._single.end()
        self.dispatcher.stop()
        self._ready.set_all()
        try:
            all_ended = await self._shutdown.wind_down()
        finally:
            await self._end()
        unstored = self._shutdown.forget()
        if not unstored:
            await self._shutdown.politely(self._take_leave(close=all_ended))
        return unstored

    async def _take_leave(self, *, close: bool) -> None:
        await self._limits.close()
        if self._pruner is not None:
            await self._pruner.resign()
        if close:
            await self.session.close()

    async def _end(self) -> None:
        """End every part at once; interrupt what runs, and forget it."""
        self._shutdown.interrupt("the pool ends at once")
        for run in list(self.claims.running):
            self.claims.dropped(run)
        self._threads.close()
        await self._processes.close()
        if self._heart_thread is not None:
            await self._heart_thread.stop()
        await self._marks.stop()
        await self._confirmer.stop()
        tasks = [*self._lane_tasks, *self._background]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._listening.close()
        self.lanes.drop()

    def why_not(self, row: JobRow) -> str | None:
        """Why the job is left for another pool; None: this one can run it."""
        worker = self._workers.get(row.kind)
        if worker is None:
            return "unknown kind"
        if row.payload_version > worker.spec.payload_version:
            return "newer payload version"
        if row.content != CONTENT_JSON and row.content not in self._settings.codecs:
            return f"unknown codec {row.content!r}"
        return None

    async def wait_for_change(self, seconds: float) -> None:
        """Wait until a claim was answered, at most so long."""
        await self._changed.wait(seconds)

    def _spawn(self, run: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(run)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        task.add_done_callback(_report)

    def _start_heart_thread(self) -> bool:
        """Beat from a thread, if the driver can and time is the system's."""
        if self._driver.clock_given or self._clock is not self._driver.clock:
            return False
        heartbeater = self._driver.heartbeater()
        if heartbeater is None:
            _logger.info("driver %s has no heartbeater: beating on the loop", self._driver.name)
            return False
        self._heart_thread = HeartThread(
            heartbeater,
            self._driver.heartbeater,
            self.session,
            self._clock,
            interval=self._settings.heartbeat_interval,
            stall_limit=self._settings.stall_limit,
            observe=self.observe,
            runs_in=Dispatcher.run_code(),
        )
        self._heart_thread.start()
        return True

    # ---------------------------------------------------------------- what the parts tell

    def _good(self) -> None:
        self._ready.set_all()
        self.dispatcher.session_is_good()

    def _tokens_arrived(self) -> None:
        self.lanes.look()
        self._ready.set_all()  # some may wait for nothing else

    def _loop_ends(self) -> bool:
        """Whether somebody else cancels our tasks, with all the others of the loop."""
        return all(task.cancelling() for task in self._lane_tasks)

    def _is_fetching(self, session: UUID, fetch_no: int) -> bool:
        return (session, fetch_no) in self.lanes.in_flight

    def _take(self, session: UUID, result: FetchResult, late: bool) -> None:
        """A fetch was answered."""
        if result.lost:
            self._spawn(self.session.lost(session))
        if session != self.session.id or not self.session.is_open:
            return  # ended meanwhile: rescuers see to these jobs
        self._shape.claimed(result.jobs)
        for row in result.jobs:
            self._take_row(row, late)
        self.dispatcher.start_pending()
        if self.claims.pending:
            self._shedder.look()

    def _take_row(self, row: JobRow, late: bool) -> None:
        claim = row.claim
        assert claim is not None  # noqa: S101  # a fetched job is claimed
        run = Run(row, claim, self._workers.get(row.kind))
        if self._single is not None and not self._single.takes(run):
            return
        if (reason := self.why_not(row)) is not None:
            self._give_back(run, reason, UNKNOWN_KIND_DELAY)
        elif surplus := self._shape.surplus(row.kind):
            # Without fetch_kinds they come again and again; so ever fewer of them at a time.
            delay = self._settings.poll_interval * (1 + surplus / self._settings.concurrency)
            self._give_back(run, "kind at its limit", min(delay, _LONGEST_STAY))
        elif self._stopping or (late and not self.lanes.has_room(row.queue)):
            self.observe(JobGivenBack(row, "shutdown" if self._stopping else "no room"))
            self.claims.give_back(run, Finish(claim, "release"))
        elif self._limits and (delay := self._limits.take(run)):
            self._give_back(run, "rate limit", delay)
        else:
            self.claims.fetched(run)

    def _give_back(self, run: Run, reason: str, delay: float) -> None:
        _logger.info(
            "job %s (%s) given back: %s",
            run.row.id,
            run.row.kind,
            reason,
            extra=fields_of(run.row),
        )
        self.observe(JobGivenBack(run.row, reason))
        self.claims.give_back(run, Finish(run.claim, "release", After(delay)))

    def _refuse(self, run: Run, refusal: Exception) -> Finish | None:
        """What to send in place of a result that the driver refused; once."""
        if run.refused or run.worker is None:
            return None
        run.refused = True
        return self._outcomes.refused(run, refusal)

    # ---------------------------------------------------------------- hints from outside

    def _woken(self, wake: Wake) -> None:
        if wake.what in ("cancel", "gap"):
            if self._heart_thread is not None:
                self._heart_thread.beat_now()
            else:
                self._loop_heart.beat_now()
        if wake.what == "cancel" or not (wake.queue is None or wake.queue in self._settings.queues):
            return
        if wake.what == "jobs" and not wake.due_in:
            self.lanes.hurry()
        else:
            self.lanes.look(wake.due_in or 0.0)

    async def _watch_lapse(self) -> None:
        """Interrupt what runs when no beat was answered for a lease."""
        while True:
            left = self.session.good_until - self._clock.monotonic()
            if left > 0:
                await self._clock.sleep(left)
                continue
            for run in list(self.claims.running):
                if run.job is not None:  # else it waits for the lease, and has not started
                    self.dispatcher.interrupt(run, Cause.LAPSED)
            await self._clock.sleep(self._settings.heartbeat_interval)


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _logger.error("a part of the engine failed; this is a bug", exc_info=error)
