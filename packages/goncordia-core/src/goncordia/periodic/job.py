"""Periodic jobs: what is enqueued, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeAlias, cast, get_args
from uuid import UUID

from goncordia._check import Duration, aware, instance, known, name, refuse, seconds, whole
from goncordia.args import JobArgs
from goncordia.errors import ConfigurationError
from goncordia.ids import id_at
from goncordia.options import InsertOpts
from goncordia.payload.plans import plan_of
from goncordia.periodic.schedules import EPOCH, FunctionSchedule, Schedule, ScheduleFunction

__all__ = ["CatchUp", "PeriodicJob", "occurrence_id"]

CatchUp: TypeAlias = Literal["all", "latest", "skip"]
"""What becomes of occurrences that were missed."""

_TICK: Final = timedelta(microseconds=1)


def occurrence_id(schedule_id: str, when: datetime) -> UUID:
    """The id of an occurrence's job: the same whoever works it out, and however often.

    It is laid out as a UUIDv7, the occurrence as its time, so that it sorts among other ids.
    """
    return id_at(when, f"{schedule_id}\n{when.isoformat()}".encode())


class PeriodicJob:
    """A job that is enqueued again and again.

    Each occurrence is a job of its own, enqueued once however many schedulers know the entry. Its
    ``run_at`` is the time of the occurrence, and its ``meta`` has it as ``cron.at``, beside the
    entry's id as ``cron.id``.

    Args:
        schedule: :func:`every`, :func:`cron`, or a function: it is given the last occurrence, or
            None before the first, and returns the next one, or None: now, at first; later: never
            again. Times are aware.
        args: what is enqueued.
        opts: options of the jobs; ``run_at`` and ``delay`` are the schedule's affair.
        id: by which the entry is known from one start of the program to the next. Default: the
            kind of ``args``.
        start_at: nothing is due before; an aware datetime. In the past it makes everything since
            then count as missed. Intervals are counted from it.
        catch_up: what becomes of occurrences that were missed while no scheduler ran: ``"all"`` of
            them are enqueued, oldest first; the ``"latest"`` alone; or ``"skip"``, none.
        catch_up_limit: how many of them ``"all"`` enqueues at most: the newest.
        grace: by how much an occurrence may be late before ``"skip"`` takes it for missed.

    Attributes:
        schedule: see the arguments.
        args: see the arguments.
        opts: see the arguments.
        id: see the arguments.
        kind: of the args.
        start_at: in UTC.
        catch_up: see the arguments.
        catch_up_limit: see the arguments.
        grace: as a ``timedelta``.
        text: the schedule as it is shown.

    Raises:
        ConfigurationError: a value is wrong; it names the field.
    """

    def __init__(
        self,
        schedule: Schedule | ScheduleFunction,
        args: JobArgs,
        opts: InsertOpts | None = None,
        *,
        id: str | None = None,  # noqa: A002 - as everything else is named by its id
        start_at: datetime | None = None,
        catch_up: CatchUp = "latest",
        catch_up_limit: int = 1000,
        grace: Duration = 60.0,
    ) -> None:
        self.kind = plan_of(type(args)).kind
        self.id = self.kind if id is None else name("id", id)
        try:
            self.args = args
            self.opts = _options(opts)
            self.start_at = None if start_at is None else _start(start_at)
            self.schedule = _schedule(schedule, self.start_at)
            known("way to catch up", [catch_up], get_args(CatchUp), field="catch_up")
            self.catch_up: CatchUp = catch_up
            self.catch_up_limit = whole("catch_up_limit", catch_up_limit, 1, 10_000)
            self.grace = timedelta(seconds=seconds("grace", grace))
        except ConfigurationError as error:
            raise ConfigurationError(f"periodic job {self.id!r}: {error}") from error.__cause__
        start = "" if self.start_at is None else f" from {self.start_at.isoformat()}"
        self.text = f"{self.schedule.text}{start}"

    def __repr__(self) -> str:
        return f"<PeriodicJob {self.id!r} {self.text}>"

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of its jobs that were given."""
        return {} if self.opts is None else self.opts.given

    def since(self, now: datetime) -> datetime:
        """The moment after which occurrences count, for an entry that is new."""
        return now if self.start_at is None else min(now, self.start_at - _TICK)

    def floor(self, moment: datetime) -> datetime:
        """The moment, or the one right before the entry starts if that is later."""
        return moment if self.start_at is None else max(moment, self.start_at - _TICK)

    def not_before(self, moment: datetime) -> datetime:
        """The moment, or where the entry starts if that is later."""
        return moment if self.start_at is None else max(moment, self.start_at)


def _options(opts: object) -> InsertOpts | None:
    if opts is None:
        return None
    found = instance("opts", opts, InsertOpts, "InsertOpts(…)")
    for option in ("run_at", "delay"):
        if option in found.given:
            raise ConfigurationError(
                f"opts: {option} is given; the schedule says when jobs are due"
            )
    return found


def _start(start_at: object) -> datetime:
    found = aware("start_at", start_at)
    if found <= EPOCH:
        refuse("start_at", start_at, "after 1970")
    return found


def _schedule(schedule: object, start_at: datetime | None) -> Schedule | FunctionSchedule:
    if isinstance(schedule, Schedule):
        return schedule if start_at is None else schedule.starting(start_at)
    if not callable(schedule) or isinstance(schedule, type):
        refuse(
            "schedule", schedule, "every(…), cron(…), or a function from the last time to the next"
        )
    return FunctionSchedule(cast("Callable[[datetime | None], datetime | None]", schedule))
