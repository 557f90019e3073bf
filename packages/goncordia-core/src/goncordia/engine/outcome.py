"""What becomes of a job: from what a handler returned or raised to the finish that is sent."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Final

from goncordia._check import aware, seconds
from goncordia.clock import Clock
from goncordia.directives import Cancel, Directive, Discard, RetryAfter, RetryAt, Snooze
from goncordia.driver import After, At, AttemptError, Finish, JobRow, When
from goncordia.engine.failures import attempt_error
from goncordia.engine.run import Cause, Run
from goncordia.engine.workers import Worker
from goncordia.errors import JobTimeoutError, LeaseLapsedError, WorkerLostError
from goncordia.retry import DEFAULT_RETRY, RetryPolicy

__all__ = ["UNKNOWN_KIND_DELAY", "Outcomes"]

_logger = logging.getLogger("goncordia.engine")

UNKNOWN_KIND_DELAY: Final = 5.0
"""Seconds for which a job goes back that this pool has no worker for."""


class Outcomes:
    """Decides, for one pool.

    Args:
        clock: for the time of an error.
        rng: for the jitter of retries.
        worker_id: the pool's name, kept with errors.
        max_attempts: where neither the job nor its worker says.
        retry_policy: where the worker has none.
        marks: whether the driver knows which claims were started.
    """

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        *,
        worker_id: str,
        max_attempts: int,
        retry_policy: RetryPolicy,
        marks: bool,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._worker_id = worker_id
        self._max_attempts = max_attempts
        self._retry_policy = retry_policy
        self._marks = marks

    def is_last(self, row: JobRow, worker: Worker | None) -> bool:
        """Whether a failure of this attempt is the job's last."""
        limit = row.max_attempts
        if limit is None:
            limit = self._max_attempts if worker is None else worker.max_attempts
        return row.attempt >= limit

    def raised(self, run: Run, error: BaseException) -> Finish:
        """The handler raised."""
        if not isinstance(error, Directive):
            return self.failed(run, error)
        try:
            return self._directed(run, error)
        except Exception:  # a subclass of the user's own making
            _logger.exception("%s says nothing of use; the attempt failed", type(error).__name__)
            return self.failed(run, error)

    def _directed(self, run: Run, error: Directive) -> Finish:
        match error:
            case Snooze():
                return Finish(run.claim, "snooze", _after(error.delay))
            case Cancel():
                return Finish(run.claim, "cancel")
            case Discard():
                return Finish(run.claim, "discard", error=self._error(run, error))
            case RetryAfter():
                return self._failed(run, error, _after(error.delay))
            case RetryAt():
                return self._failed(run, error, At(aware("RetryAt", error.when)))
            case _:
                return self.failed(run, error)

    def undecodable(self, run: Run, error: BaseException) -> Finish:
        """The args of a known version do not decode: no attempt will change that."""
        return Finish(run.claim, "discard", error=self._error(run, error))

    def why(self, run: Run, error: BaseException) -> BaseException:
        """Why the attempt ended: the error itself, or what the run was interrupted for.

        A directive counts also from a handler that was interrupted.
        """
        cause: BaseException
        match run.cause:
            case Cause.TIMEOUT:
                cause = JobTimeoutError(f"timed out after {run.timeout:g} s")
            case Cause.LAPSED:
                cause = LeaseLapsedError("no beat was answered for a whole lease")
            case _:
                return error
        if isinstance(error, Directive):
            return error
        cause.__cause__ = error.__cause__ if isinstance(error, asyncio.CancelledError) else error
        return cause.with_traceback(error.__traceback__)

    def interrupted(self, run: Run, error: BaseException) -> Finish | None:
        """The run was interrupted, and the handler raised this. None: send nothing.

        Args:
            run: with its cause.
            error: as :meth:`why` gave it.
        """
        match run.cause:
            case Cause.LOST:
                return None
            case Cause.CANCELLED if not isinstance(error, Directive):
                return Finish(run.claim, "cancel")
            case Cause.SHUTDOWN if not isinstance(error, Directive):
                return Finish(run.claim, "release")
            case _:
                return self.raised(run, error)

    def failed(self, run: Run, error: BaseException) -> Finish:
        """The attempt failed: again by the retry policy, or it was the last."""
        if self.is_last(run.row, run.worker):
            return Finish(run.claim, "discard", error=self._error(run, error))
        delay = self._delay(run.row.attempt, run.worker, error)
        if delay is None:
            return Finish(run.claim, "discard", error=self._error(run, error))
        return Finish(run.claim, "retry", After(delay), error=self._error(run, error))

    def refused(self, run: Run, refusal: Exception) -> Finish:
        """The backend will not store the result: the attempt failed for that.

        If it had failed before, all stays but the error, which was what could not be stored.
        """
        finish = run.finish
        if finish is None or finish.error is None:
            return self.failed(run, refusal)
        error = self._error(run, refusal)
        return Finish(run.claim, finish.to, finish.when, error=error)

    def _failed(self, run: Run, error: BaseException, when: When) -> Finish:
        if self.is_last(run.row, run.worker):
            return Finish(run.claim, "discard", error=self._error(run, error))
        return Finish(run.claim, "retry", when, error=self._error(run, error))

    def rescued(self, row: JobRow, worker: Worker | None) -> Finish:
        """The session of a running job ended without it."""
        assert row.claim is not None  # noqa: S101  # expire gives running jobs only
        last = self.is_last(row, worker)
        if last and self._marks and not row.started:
            return Finish(row.claim, "release", rescue=True)
        lost = WorkerLostError(f"its worker {row.worker_id or 'of unknown name'} is gone")
        error = attempt_error(
            lost, attempt=row.attempt, at=self._clock.now(), worker_id=row.worker_id or ""
        )
        delay = None if last else self._delay(row.attempt, worker, lost)
        if delay is None:
            return Finish(row.claim, "discard", error=error, rescue=True)
        return Finish(row.claim, "retry", After(delay), error=error, rescue=True)

    def _delay(self, attempt: int, worker: Worker | None, error: BaseException) -> float | None:
        policy = worker.spec.retry_policy if worker is not None else None
        try:
            delay = (policy or self._retry_policy).delay(attempt, error, self._rng)
            return None if delay is None else seconds("retry_policy's answer", delay, zero=True)
        except (Exception, asyncio.CancelledError):
            _logger.exception("a retry policy failed, the default one applies")
            return DEFAULT_RETRY.delay(attempt, error, self._rng)

    def _error(self, run: Run, error: BaseException) -> AttemptError:
        return attempt_error(
            error, attempt=run.row.attempt, at=self._clock.now(), worker_id=self._worker_id
        )


def _after(delay: object) -> After:
    return After(seconds("delay", delay, zero=True))
