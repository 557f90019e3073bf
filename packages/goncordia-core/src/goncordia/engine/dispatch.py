"""Running handlers: from a claim that waits for a slot to the result in the outbox."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
from types import CodeType
from typing import Any, Final

import msgspec

from goncordia.clock import Clock
from goncordia.driver import NO_TIMEOUT, After, Claim, Finish, FinishTo, Mark
from goncordia.engine.claims import Claims
from goncordia.engine.deadlines import Deadlines
from goncordia.engine.events import JobFinished, JobGivenBack, JobOverdue, JobStarted, Observers
from goncordia.engine.limits import Limits
from goncordia.engine.logs import log_failed
from goncordia.engine.marks import Marks
from goncordia.engine.outcome import Outcomes
from goncordia.engine.run import Cause, Run, RunState
from goncordia.engine.session import Session
from goncordia.engine.signal import Signal
from goncordia.engine.workers import Worker
from goncordia.errors import PayloadError, StaleClaimError
from goncordia.job import Job, JobHooks, current_job_var
from goncordia.logs import fields_of

__all__ = ["Dispatcher"]

_logger = logging.getLogger("goncordia.engine")

_OVERDUE_AFTER: Final = 1.0
"""Seconds after an interrupt at which a handler that goes on is reported."""


class Dispatcher:
    """Starts runs while there are slots, interrupts them, and turns their ends into finishes.

    Args:
        claims: the pool's.
        session: asked before each start.
        outcomes: decides what becomes of a job.
        limits: those by key; None: there are none.
        marks: where a last attempt is marked; None: the driver has no marks.
        clock: the pool's.
        hooks: what jobs reach through.
        concurrency: slots.
        observe: told of starts and ends.
        on_error: told of each failed attempt.
        confirm: sends the finish of a run that completed itself in a transaction.
    """

    def __init__(
        self,
        claims: Claims,
        session: Session,
        outcomes: Outcomes,
        marks: Marks | None,
        limits: Limits | None,
        clock: Clock,
        *,
        hooks: JobHooks,
        concurrency: int,
        observe: Observers,
        on_error: Callable[[Job[Any, Any], BaseException], object] | None,
        confirm: Callable[[Run, Finish, BaseException | None], None],
    ) -> None:
        self._claims = claims
        self._session = session
        self._outcomes = outcomes
        self._marks = marks
        self._limits = limits
        self._clock = clock
        self._hooks = hooks
        self._concurrency = concurrency
        self._observe = observe
        self._observed = bool(observe)
        self._on_error = on_error
        self._confirm = confirm
        self._good = Signal(clock)
        self._context = contextvars.copy_context()
        self.deadlines = Deadlines(claims, clock, self._due)
        self.stopping = False
        self._starting = False
        # The engine sets this: whether the loop ends, and with it every task.
        self.loop_ends: Callable[[], bool] = lambda: False

    @classmethod
    def run_code(cls) -> CodeType:
        """The code of the frames that hold a run in their local ``run``."""
        return cls._run.__code__

    # ---------------------------------------------------------------- starting

    def start_pending(self) -> None:
        """Start what waits, as far as there are slots."""
        claims = self._claims
        pending, running = claims.pending, claims.running
        if self.stopping or self._starting or not pending:
            return
        self._starting = True  # an eager task may be over before it is made, and come here again
        create_task = asyncio.get_running_loop().create_task
        try:
            while pending and len(running) < self._concurrency:
                run = pending.popleft()
                claims.started(run)
                # Not the context of here: this may be the end of another job's run.
                task = create_task(self._run(run), context=self._context.copy())
                if run.state is RunState.RUNNING:
                    run.task = task
        finally:
            self._starting = False

    def session_is_good(self) -> None:
        """A beat was answered, or a session was opened: go on with what waited for it."""
        self._good.set_all()
        self.start_pending()

    async def _run(self, run: Run) -> None:
        """The task of one run. Its local name ``run`` is read by the watcher of the loop."""
        run.begun = True
        worker = run.worker
        assert worker is not None  # noqa: S101  # claims without a worker are never started
        finish: Finish | None
        error: BaseException | None = None
        called = False
        try:
            delay = 0.0
            if self._limits is not None:
                delay = await self._admit(run, worker, self._limits)
            now = self._clock.monotonic()
            if not delay and (
                now >= self._session.good_until
                or (self._marks is not None and self._outcomes.is_last(run.row, worker))
            ):
                await self._await_leave(run)
                now = self._clock.monotonic()
            if delay:
                finish = Finish(run.claim, "release", After(delay))
            elif run.cause is None and not self.stopping:
                self._prepare(run, worker, now)
                called = True
                result = await worker.handler(run.job)
                output = None if result is None else worker.spec.encode_output(result)
                finish = Finish(run.claim, "complete", output=output)
            else:
                finish = Finish(run.claim, "release")
            if run.cause is Cause.LOST:
                finish = None
        except asyncio.CancelledError as cancelled:
            # Not what the handler raised by itself while a call of ours was running out of time.
            outside = run.task is not None and run.task.cancelling() > 0
            if run.cause is None and outside and self.loop_ends():
                run.cause = Cause.SHUTDOWN
            error = self._outcomes.why(run, cancelled)
            if run.cause is None:  # the handler's own affair: what it awaited was cancelled
                finish = self._outcomes.failed(run, error)
            elif not called and run.cause is not Cause.LOST:
                # Nothing has run; a requested cancel makes a release end in cancelled.
                finish = Finish(run.claim, "release")
            else:
                finish = self._outcomes.interrupted(run, error)
        except Exception as raised:  # noqa: BLE001  # whatever a handler raises ends its attempt
            error = self._outcomes.why(run, raised)
            if not called and isinstance(raised, PayloadError):
                finish = self._outcomes.undecodable(run, raised)
            elif run.cause is None:
                finish = self._outcomes.raised(run, error)
            else:
                finish = self._outcomes.interrupted(run, error)
        except KeyboardInterrupt as interrupt:  # Ctrl-C hit the loop while this handler had it
            self._ended(run, self._outcomes.failed(run, interrupt), interrupt)
            raise
        except BaseException as raised:
            # One job must not end a worker: a sys.exit() fails its attempt, as in a thread.
            if isinstance(raised, GeneratorExit) and not _loop_runs():
                raise  # the loop is gone, with this task pending
            error = self._outcomes.why(run, raised)
            if run.cause is None:
                finish = self._outcomes.failed(run, error)
            else:
                finish = self._outcomes.interrupted(run, error)
        self._ended(run, finish, error)
        error = None  # its traceback holds this frame: a cycle, and the job's args with it

    async def _await_leave(self, run: Run) -> None:
        """Wait until the run may start: it is marked if it must be, and the lease is good."""
        await self._until_good(run)
        if (
            run.cause is None
            and not self.stopping
            and self._marks is not None
            and self._outcomes.is_last(run.row, run.worker)
        ):
            outcome = await self._marks.put(Mark(run.claim, started=True))
            if outcome.status != "DONE":
                run.cause = Cause.LOST
            await self._until_good(run)

    async def _admit(self, run: Run, worker: Worker, limits: Limits) -> float:
        """0: the run may start; else the seconds after which its job shall come again."""
        job = Job(worker.readable(run.row), worker.spec, self._hooks, run)
        delay = await limits.admit(run, job)
        if delay:
            run.reason = "limit of its key"
        return delay

    async def _until_good(self, run: Run) -> None:
        while run.cause is None and not self.stopping and not self._session.good():
            await self._good.wait()

    def _prepare(self, run: Run, worker: Worker, now: float) -> None:
        run.job = job = Job(worker.readable(run.row), worker.spec, self._hooks, run)
        current_job_var.set(job)
        run.started_at = now
        timeout = run.row.timeout
        if timeout is None:
            timeout = worker.spec.timeout
        if timeout is not None and timeout != NO_TIMEOUT:
            run.timeout = timeout
            self.deadlines.watch(run, now + timeout)
        if self._observed:
            self._observe(JobStarted(run.row))

    # ---------------------------------------------------------------- ending

    def _ended(self, run: Run, finish: Finish | None, error: BaseException | None) -> None:
        if self._limits is not None:
            self._limits.ended(run)
        if run.state is RunState.GONE:
            return  # the pool was stopped without it
        if run.job is not None:
            run.seconds = self._clock.monotonic() - run.started_at
        if finish is None or finish.error is None:
            error = None  # it was no failure
        elif error is not None and not run.tx_completed:
            log_failed(run.row, finish, error)
        if run.checkpoint is not None:
            finish = self._with_checkpoint(run, finish)
        if run.tx_completed and finish is not None:
            # The answer will say how it ended.
            self._claims.confirming(run)
            self._confirm(run, finish, error)
        else:
            if self._observed or error is not None:
                self.tell_ended(run, run.job, finish.to if finish else None, error)
            if finish is None:
                self._claims.dropped(run)
            else:
                self._claims.finished(run, finish)
        # Job, task and run know each other: without this each job would be left to the collector.
        run.job = run.task = None
        if self._claims.pending:
            self.start_pending()

    def _with_checkpoint(self, run: Run, finish: Finish | None) -> Finish | None:
        """A lost copy of an older mark may have come last: the finish puts that right."""
        assert self._marks is not None  # noqa: S101  # there is a checkpoint
        self._marks.repeated.discard(run.claim)
        return finish and msgspec.structs.replace(finish, checkpoint=run.checkpoint)

    def tell_ended(
        self, run: Run, job: Job[Any, Any] | None, to: FinishTo | None, error: BaseException | None
    ) -> None:
        """Tell observers, and of a failure the error handler.

        Args:
            run: what is over.
            job: what its handler saw; None: it was not called.
            to: what becomes of the job; None: the claim was lost.
            error: why the attempt failed, if it did.
        """
        if job is not None or error is not None:
            seconds = run.seconds if job is not None else 0.0
            self._observe(JobFinished(run.row, to, seconds, error))
        elif to is not None:
            reason = run.reason or ("shutdown" if self.stopping else "not started")
            self._observe(JobGivenBack(run.row, reason))
        if error is None or job is None or self._on_error is None:
            return
        try:
            self._on_error(job, error)
        except (Exception, asyncio.CancelledError):
            _logger.exception("the error handler failed", extra=fields_of(run.row))

    # ---------------------------------------------------------------- interrupting

    def interrupt(self, run: Run, cause: Cause) -> None:
        """End a running handler for this cause, unless it is being ended for a higher one."""
        if run.state is not RunState.RUNNING:
            return
        if run.cause is None or run.cause < cause:
            run.cause = cause
        elif cause is not Cause.SHUTDOWN:  # at the end, what went on is told once more
            return
        if run.begun and run.task is not None:
            if run.job is not None:
                run.job.note_cancelled()
                self.deadlines.watch(run, self._clock.monotonic() + _OVERDUE_AFTER)
            run.task.cancel()

    def _due(self, run: Run) -> None:
        if run.cause is None:
            self.interrupt(run, Cause.TIMEOUT)
        elif not run.overdue:
            run.overdue = True
            cause = run.cause.name.lower()
            _logger.warning(
                "job %s (%s) was interrupted (%s) and goes on; it keeps its slot%s",
                run.row.id,
                run.row.kind,
                cause,
                ": a thread cannot be ended" if run.worker and run.worker.in_thread else "",
                extra=fields_of(run.row),
            )
            self._observe(JobOverdue(run.row, cause))

    def cancel_requested(self, requested: tuple[Claim, ...]) -> None:
        """Cancels of these claims were requested."""
        for claim in requested:
            run = self._claims.get(claim)
            if run is None:
                continue
            if run.state is RunState.FETCHED:
                self._claims.give_back(run, Finish(claim, "cancel"))
            else:
                self.interrupt(run, Cause.CANCELLED)

    def session_lost(self, session: object) -> int:
        """Drop what was fetched and interrupt what runs under the session; how many runs."""
        interrupted = 0
        for run in list(self._claims):
            if run.claim.session != session:
                continue
            if run.state is RunState.FETCHED:
                self._claims.dropped(run)
            elif run.state is RunState.RUNNING:
                self.interrupt(run, Cause.LOST)
                interrupted += 1
        self._good.set_all()
        return interrupted

    def stop(self) -> None:
        """Start nothing more. What has not started goes back, its attempt unused."""
        self.stopping = True
        for run in list(self._claims.pending):
            self._observe(JobGivenBack(run.row, "shutdown"))
            self._claims.give_back(run, Finish(run.claim, "release"))
        self._good.set_all()

    # ---------------------------------------------------------------- what jobs ask for

    async def checkpoint(self, run: Run, value: bytes) -> None:
        """Store a checkpoint.

        Raises:
            StaleClaimError: the run does not hold its job any more.
        """
        assert self._marks is not None  # noqa: S101  # the pool asks the capability first
        outcome = await self._marks.put(Mark(run.claim, checkpoint=value))
        if outcome.status != "DONE":
            raise StaleClaimError(f"job {run.row.id}: this run does not hold it any more")
        if run.claim in self._marks.repeated:
            run.checkpoint = value


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
