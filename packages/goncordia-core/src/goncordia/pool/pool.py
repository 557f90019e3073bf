"""The worker pool: what a user starts to have jobs worked."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

from goncordia._check import Duration, instance, refuse, seconds
from goncordia._words import counted
from goncordia.clock import Clock, checked_clock
from goncordia.driver import AnyDriver, BaseDriver
from goncordia.engine.engine import Engine
from goncordia.engine.events import Observer
from goncordia.engine.retention import DEFAULT_RETENTION, Retention
from goncordia.engine.settings import Settings
from goncordia.errors import (
    ConfigurationError,
    DriverError,
    DriverUnavailableError,
    GoncordiaError,
)
from goncordia.job import Job
from goncordia.limits import KindPolicy, QueuePolicy
from goncordia.payload.codecs import Codec
from goncordia.pool.draining import look_for_jobs
from goncordia.pool.hooks import PoolHooks
from goncordia.pool.life import Life
from goncordia.pool.signals import shutdown_signals, unless
from goncordia.registry import Middleware, Registry
from goncordia.retry import DEFAULT_RETRY, RetryRule

__all__ = ["WorkerPool"]

_logger = logging.getLogger("goncordia.pool")


class WorkerPool:
    """Claims jobs of some queues and runs their workers, until it is stopped.

    ``async with`` starts and stops it; :meth:`run` goes on until a signal comes, :meth:`drain`
    until the queues are empty. Durations are seconds or ``timedelta``.

    Args:
        driver: where the jobs are.
        registry: the workers. Jobs of other kinds are left for other pools.
        queues: a sequence is in strict precedence: a queue is looked at when those before it are
            empty. A mapping of names to weights (1 to 1000) shares: ``{"a": 3, "b": 1}`` claims
            three jobs of the one for one of the other while both have some.
        concurrency: how many jobs run at once, at most.
        max_pending: how many claimed jobs may wait for a slot; None: as many as the pool finished
            in the last tenth of a second, so none with slow handlers.
        poll_interval: how often an empty queue is looked at, where nothing wakes the pool.
        retry_policy: for workers without one of their own.
        max_attempts: for jobs and workers that do not say.
        shutdown_timeout: how long a shutdown waits for running handlers before it interrupts them.
        lease: how long the pool keeps its jobs without contact to the backend.
        heartbeat_interval: between renewals; below half the lease.
        rescue_interval: between looks for the jobs of dead pools; at most a third of the lease
            on a backend without a time of its own.
        stall_limit: how long the event loop may be blocked before the pool gives up its jobs; None:
            ten leases.
        interrupt_on_lapse: interrupt what runs when a lease goes by without contact, rather than
            let it go on beside a possible second run elsewhere.
        middleware: wraps every handler, outermost first: ``await call_next(job)``.
        observer: a function, or several, told of every event.
        error_handler: a function of the job and the exception, called for each failed attempt.
        worker_id: the pool's name, kept with claims and errors; None: host, process, random digits.
        queue_policies: limits of single queues.
        kind_policies: limits of single kinds.
        retention: how long finished jobs are kept; None: for ever. One pool of many deletes them.
        codecs: one, or several, for args that are not stored as JSON; the first is also that of
            ``job.client``.
        lanes: how many exchanges with the backend may be under way at once.
        clock: take time from here; for tests. None: the driver's.
        rng: randomness for jitter; for repeatable tests.

    Raises:
        ConfigurationError: a setting is wrong; it names the field.
    """

    def __init__(
        self,
        driver: AnyDriver,
        registry: Registry[Any],
        *,
        queues: Sequence[str] | Mapping[str, int] = ("default",),
        concurrency: int = 10,
        max_pending: int | None = None,
        poll_interval: Duration = 1.0,
        retry_policy: RetryRule = DEFAULT_RETRY,
        max_attempts: int = 25,
        shutdown_timeout: Duration = 30.0,
        lease: Duration = 30.0,
        heartbeat_interval: Duration = 5.0,
        rescue_interval: Duration = 10.0,
        stall_limit: Duration | None = None,
        interrupt_on_lapse: bool = False,
        middleware: Sequence[Middleware] = (),
        observer: Observer | Sequence[Observer] | None = None,
        error_handler: Callable[[Job[Any, Any], BaseException], object] | None = None,
        worker_id: str | None = None,
        queue_policies: Mapping[str, QueuePolicy] | None = None,
        kind_policies: Mapping[str, KindPolicy] | None = None,
        retention: Retention | None = DEFAULT_RETENTION,
        codecs: Codec | Sequence[Codec] = (),
        lanes: int = 2,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._driver = _checked(driver)
        self._registry = instance("registry", registry, Registry, "a Registry")
        self._settings = Settings.checked(
            queues=queues,
            concurrency=concurrency,
            max_pending=max_pending,
            poll_interval=poll_interval,
            retry_policy=retry_policy,
            max_attempts=max_attempts,
            shutdown_timeout=shutdown_timeout,
            lease=lease,
            heartbeat_interval=heartbeat_interval,
            rescue_interval=rescue_interval,
            stall_limit=stall_limit,
            interrupt_on_lapse=interrupt_on_lapse,
            middleware=middleware,
            observer=observer,
            error_handler=error_handler,
            worker_id=worker_id,
            queue_policies=queue_policies,
            kind_policies=kind_policies,
            lanes=lanes,
            retention=retention,
            codecs=codecs,
            kinds=registry.kinds,
        )
        self._clock = driver.clock if clock is None else checked_clock(clock)
        given = None if rng is None else instance("rng", rng, random.Random, "a random.Random")
        self._rng = given or random.Random()
        self._life: Life | None = None

    @property
    def worker_id(self) -> str:
        """The pool's name."""
        return self._settings.worker_id

    @property
    def running(self) -> int:
        """How many handlers run now."""
        engine = self._engine
        return 0 if engine is None else len(engine.claims.running)

    @property
    def _engine(self) -> Engine | None:
        return None if self._life is None else self._life.engine

    # ---------------------------------------------------------------- life

    async def start(self) -> None:
        """Connect, enter the registry's lifespan, open a session and start working.

        A session that cannot be opened, since the backend has gone away again or the role lacks a
        right, is tried again until it can, or until the pool is stopped; a warning says why.

        Raises:
            ConfigurationError: the pool is started already, or has no workers.
            DriverError: the backend cannot be reached.
            MigrationRequiredError: the schema does not fit.
            GoncordiaError: the pool was stopped before it had started.
        """
        if self._life is not None:
            raise ConfigurationError("WorkerPool: it is started already")
        if not self._registry.freeze():
            raise ConfigurationError("registry: it has no workers; register one")
        life = self._life = Life(self._working)
        try:
            await life.start()
        except BaseException:
            self._life = None
            raise

    async def stop(self) -> None:
        """Shut down in order; harmless when the pool is not started.

        Nothing new is fetched, what has not started goes back, running handlers have
        ``shutdown_timeout`` seconds to end; then they are interrupted, and their jobs go back
        without having used an attempt. A pool that is still starting gives up starting.

        Results that the backend does not take have as long as the handlers, and 5 seconds more at
        least; then they are logged, and left to the session's lease.

        Cancelled, it ends at once: what runs is interrupted, and left to the session's lease.

        Raises:
            DriverUnavailableError: there are such results; all else was done.
            Exception: what the registry's lifespan raised at its end.
        """
        life = self._life
        if life is None:
            return
        try:
            await life.end()
        finally:
            if self._life is life:
                self._life = None

    @asynccontextmanager
    async def _working(self) -> AsyncGenerator[Engine, None]:
        await self._driver.ready()
        specs = self._registry.freeze()
        lifespan = self._registry.lifespan
        async with AsyncExitStack() as resources:
            app = None if lifespan is None else await resources.enter_async_context(lifespan())
            codec = next(iter(self._settings.codecs.values()), None)
            hooks = PoolHooks(self._driver, app, self._settings.max_attempts, codec)
            engine = hooks.engine = Engine(
                self._driver, specs, self._settings, self._clock, self._rng, hooks
            )
            await engine.start()
            _logger.info(
                "%s works %s with %s, %d at once",
                self.worker_id,
                ", ".join(self._settings.queues),
                counted(len(specs), "worker"),
                self._settings.concurrency,
            )
            unstored = 0
            try:
                yield engine
            finally:
                unstored = await engine.stop()
        _logger.info("%s has stopped", self.worker_id)
        if unstored:
            raise DriverUnavailableError(
                "WorkerPool: the shutdown was over before the backend had answered to all results "
                f"({unstored} left); jobs without one are taken back when the lease is over"
            )

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Stop."""
        await self.stop()

    async def run(self) -> None:
        """Work until SIGINT or SIGTERM comes, then shut down; a second signal ends the process.

        Starts the pool if it is not started, and gives up starting when the signal comes first:
        the backend may be away for long.

        Raises:
            ConfigurationError: not in the main thread, the only one that signals reach.
            DriverUnavailableError: the backend did not take the last results; see :meth:`stop`.
            Exception: what ended the pool before a signal did, such as the lifespan's error.
        """
        with shutdown_signals() as asked:
            told = asyncio.ensure_future(asked.wait())
            try:
                if self._life is None:
                    await unless(told, self.start())
                if self._life is not None:
                    await unless(told, self._life.over())
            finally:
                told.cancel()
                await self.stop()

    # ---------------------------------------------------------------- drain

    async def drain(self, within: Duration = 0.0) -> None:
        """Wait until the pool's queues hold no job of its kinds that runs or is due.

        Running ones count whoever runs them; the jobs of dead pools are rescued first. Jobs that
        wait in a paused queue, or that the pool leaves for newer code, do not count: waiting would
        not end. The pool must be started, and goes on working afterwards.

        Args:
            within: also wait for jobs that are due within so many seconds.

        Raises:
            ConfigurationError: the pool is not started, or ``within`` is wrong.
            GoncordiaError: the pool was stopped before it was done.
        """
        soon = seconds("within", within, zero=True)
        life, engine = self._life, self._engine
        if life is None or engine is None:
            raise ConfigurationError("WorkerPool.drain: start the pool first (async with pool: …)")
        poll = self._settings.poll_interval
        while not life.ending:
            left: float | None = poll
            if not engine.claims:
                try:
                    left = await look_for_jobs(
                        self._driver.executor(),
                        queues=frozenset(self._settings.queues),
                        kinds=frozenset(self._registry.kinds),
                        can_run=lambda row: engine.why_not(row) is None,
                        soon=soon,
                        poll=poll,
                    )
                except DriverError as error:
                    _logger.debug("looking for what is left failed: %s", error)
            if left is None:
                return
            if not engine.claims:
                engine.lanes.look(left if left < poll else 0.0)
            await engine.wait_for_change(min(left, poll))
        raise GoncordiaError("WorkerPool.drain: the pool was stopped before it was done")


def _checked(driver: object) -> AnyDriver:
    if not isinstance(driver, BaseDriver):
        refuse("driver", driver, "a driver, such as SqliteDriver('jobs.db')")
    checked: AnyDriver = driver  # pyright: ignore[reportUnknownVariableType]  # isinstance cannot know the transaction types
    return checked
