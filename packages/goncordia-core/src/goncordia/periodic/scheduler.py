"""The cron scheduler: what a user starts to have jobs enqueued again and again."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from goncordia._check import Duration, instance, refuse, seconds, sequence
from goncordia._words import counted
from goncordia.clock import Clock, checked_clock
from goncordia.driver import AnyDriver, BaseDriver
from goncordia.engine.calls import Calls, refused
from goncordia.engine.leadership import Leadership
from goncordia.engine.signal import Signal
from goncordia.errors import ConfigurationError
from goncordia.payload.codecs import Codec
from goncordia.periodic.firing import Firing
from goncordia.periodic.job import PeriodicJob
from goncordia.periodic.schedules import EPOCH
from goncordia.pool.signals import shutdown_signals, unless

__all__ = ["CronScheduler"]

_LEAST_LEASE: Final = 1.0
_LONGEST_LEASE: Final = 86400.0
_LOUD_AFTER: Final = 3
_SHORTEST_WAIT: Final = 0.001
_SECOND: Final = timedelta(seconds=1)
_NEVER: Final = datetime.max.replace(tzinfo=UTC)

_logger = logging.getLogger("goncordia.cron")


class CronScheduler:
    """Enqueues periodic jobs when they are due, once each, however many schedulers run.

    ``async with`` starts and stops it; :meth:`run` goes on until a signal comes. One of the
    schedulers with the same entries leads, and the others stand by; that only saves work.

    Args:
        driver: where jobs are enqueued, and cursors kept.
        jobs: the entries.
        lease: how long the others wait without a sign of the leader before one takes over;
            seconds or ``timedelta``.
        codec: what args become before they are stored, such as encrypted; None: readable JSON.
        clock: take time from here; for tests. None: the driver's.
        rng: randomness for jitter; for repeatable tests.

    Raises:
        ConfigurationError: a value is wrong, or two entries have one id.
        UnsupportedError: the driver cannot keep what an entry's options ask for.
        PayloadError: an entry's args cannot be stored, or not come back equal.
        CodecError: the codec failed, or what it makes of an entry's args does not come back.
    """

    def __init__(
        self,
        driver: AnyDriver,
        jobs: Sequence[PeriodicJob],
        *,
        lease: Duration = 15.0,
        codec: Codec | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        _check_driver(driver)
        self._driver = driver
        self._entries = _entries(jobs)
        self._lease = seconds("lease", lease)
        if not _LEAST_LEASE <= self._lease <= _LONGEST_LEASE:
            refuse("lease", lease, f"from {_LEAST_LEASE:g} s to {_LONGEST_LEASE:g} s")
        self._clock = driver.clock if clock is None else checked_clock(clock)
        given = None if rng is None else instance("rng", rng, random.Random, "a random.Random")
        self._rng = given or random.Random()
        self._calls = Calls(self._clock, self._rng, bound=self._lease / 3)
        self._firing = Firing(driver, self._calls, self._clock, self._lease, codec)
        for entry in self._entries:
            if entry.catch_up == "skip" and entry.grace / _SECOND < 2 * self._lease:
                raise ConfigurationError(
                    f"periodic job {entry.id!r}: grace: {entry.grace / _SECOND:g} s is not at "
                    f"least twice the lease ({self._lease:g} s), after which another takes over"
                )
            self._firing.job(entry, EPOCH)  # what cannot be enqueued is refused here and now
        self._leadership = Leadership(
            driver.executor(),
            self._calls,
            self._clock,
            f"cron/{_same(self._entries)}",
            lease=self._lease,
        )
        self._started = False
        self._told = False
        self._task: asyncio.Task[None] | None = None
        self._bell = Signal(self._clock)
        self._leads_until = float("-inf")
        self._ask_at = float("-inf")
        self._upcoming: dict[str, datetime | None] | None = None
        self._failures = Counter[str]()

    @property
    def leading(self) -> bool:
        """Whether it is this scheduler that enqueues now, and not another with the same entries."""
        return self._clock.monotonic() < self._leads_until

    # ---------------------------------------------------------------- life

    async def start(self) -> None:
        """Connect, note the entries that are new, and start enqueueing.

        Raises:
            ConfigurationError: it is started already, or an entry's function fails.
            DriverError: the backend cannot be reached.
            MigrationRequiredError: the schema does not fit.
        """
        if self._started:
            raise ConfigurationError("CronScheduler: it is started already")
        self._started = True
        try:
            await self._driver.ready()
            self._upcoming = await self._note()
        except BaseException:
            self._started = False
            raise
        self._told = False
        self._leads_until = self._ask_at = float("-inf")
        self._task = asyncio.create_task(self._work())
        _logger.info(
            "%s scheduled",
            counted(len(self._entries), "periodic job is", "periodic jobs are"),
        )

    async def stop(self) -> None:
        """Finish what is under way, and let another lead; harmless when it is not started."""
        task = self._task
        if task is None:
            return
        self._told = True
        self._bell.set_all()
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            if self._task is task:
                self._task, self._started = None, False
        _logger.info("the periodic jobs are scheduled no longer")

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Stop."""
        await self.stop()

    async def run(self) -> None:
        """Enqueue until SIGINT or SIGTERM comes, then stop; a second signal ends the process.

        Starts the scheduler if it is not started.

        Raises:
            ConfigurationError: not in the main thread, the only one that signals reach.
            Others: see :meth:`start`.
        """
        with shutdown_signals("CronScheduler") as asked:
            told = asyncio.ensure_future(asked.wait())
            try:
                if not self._started:
                    await unless(told, self.start())
                await told
            finally:
                told.cancel()
                await self.stop()

    # ---------------------------------------------------------------- work

    async def _note(self) -> dict[str, datetime | None] | None:
        """Note new entries, so that what they miss from now on is known to be missed."""
        try:
            return await self._firing.read(self._entries, _raise)
        except Exception as error:
            if refused(error):
                raise
            _logger.debug("the backend is away, entries are noted later: %s", error)
            return None

    async def _work(self) -> None:
        backoff = self._calls.backoff()
        while not self._told:
            try:
                wait = await self._turn()
                backoff.reset()
            except Exception as error:  # noqa: BLE001  # whatever it is, the schedules go on
                wait = backoff.delay(error)
                _logger.log(
                    logging.WARNING if backoff.failures == _LOUD_AFTER else logging.DEBUG,
                    "looking after periodic jobs failed %d times in a row, repeating: %s: %s",
                    backoff.failures,
                    type(error).__name__,
                    error,
                )
            if wait > 0 and not self._told:
                await self._bell.wait(max(wait, _SHORTEST_WAIT))
        await self._resign()

    async def _turn(self) -> float:
        """Do what is to be done now; seconds until there may be more."""
        if self._clock.monotonic() >= self._ask_at:
            await self._ask()
        if not self.leading:
            return self._ask_at - self._clock.monotonic()
        upcoming = self._upcoming
        if upcoming is None:
            upcoming = self._upcoming = await self._firing.read(self._entries, _report)
        now = await self._calls.once(self._driver.executor().now())
        looked = self._clock.monotonic()
        due = [entry for entry in self._entries if (upcoming[entry.id] or _NEVER) <= now]
        # What failed comes last, that it does not hold up the others; else what is due for longest.
        for entry in sorted(due, key=lambda e: (self._failures[e.id], upcoming[e.id])):
            if self._told or not self.leading:
                return 0.0
            self._failures[entry.id] += 1
            upcoming[entry.id] = await self._firing.fire(entry, _report)
            del self._failures[entry.id]
        passed = self._clock.monotonic() - looked
        waits = [(when - now) / _SECOND - passed for when in upcoming.values() if when is not None]
        return min([self._ask_at - self._clock.monotonic(), *waits])

    async def _ask(self) -> None:
        """Ask who leads."""
        led, asked = self.leading, self._clock.monotonic()
        leads = await self._leadership.lead()
        self._leads_until = asked + self._lease if leads else float("-inf")
        # Whole milliseconds: a clock under test is then exactly at an occurrence when that is due.
        self._ask_at = asked + round(self._lease / 3 * self._rng.uniform(0.75, 1.0), 3)
        if leads and not led:
            _logger.info("this scheduler leads now, in term %d", self._leadership.term)
        elif led and not leads:
            _logger.info("another scheduler leads now")

    async def _resign(self) -> None:
        """Let the others not wait for the lease, as a courtesy."""
        if self._leads_until == float("-inf"):
            return
        self._leads_until = self._ask_at = float("-inf")
        try:
            await self._leadership.resign()
        except Exception as error:  # noqa: BLE001  # the lease will end it
            _logger.debug("resigning failed: %s: %s", type(error).__name__, error)


def _check_driver(driver: object) -> None:
    if not isinstance(driver, BaseDriver):
        refuse("driver", driver, "a driver, such as SqliteDriver('jobs.db')")


def _entries(jobs: object) -> tuple[PeriodicJob, ...]:
    right = "a PeriodicJob"
    given = sequence("jobs", jobs, "a sequence of PeriodicJob")
    found = [instance(f"jobs[{i}]", job, PeriodicJob, right) for i, job in enumerate(given)]
    known: dict[str, PeriodicJob] = {}
    for entry in found:
        if entry.id in known:
            raise ConfigurationError(
                f"jobs: two have the id {entry.id!r} ({known[entry.id].text}; {entry.text}); "
                "give each an id of its own: PeriodicJob(…, id=…)"
            )
        known[entry.id] = entry
    if not found:
        raise ConfigurationError("jobs: it is empty; give at least one PeriodicJob")
    return tuple(found)


def _same(entries: Sequence[PeriodicJob]) -> str:
    """What schedulers have in common that may stand in for each other: entries and schedules."""
    lines = sorted(f"{entry.id}\n{entry.text}" for entry in entries)
    return hashlib.sha256("\0".join(lines).encode()).hexdigest()[:32]


def _raise(entry: PeriodicJob, error: Exception) -> None:
    if isinstance(error, ConfigurationError):
        raise ConfigurationError(f"periodic job {entry.id!r}: {error}") from error.__cause__
    raise error


def _report(entry: PeriodicJob, error: Exception) -> None:
    _logger.error(
        "periodic job %r failed, it is tried again in a minute: %s",
        entry.id,
        error,
        exc_info=error,
    )
