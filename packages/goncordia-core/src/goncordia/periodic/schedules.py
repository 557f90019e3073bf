"""Schedules: when a periodic job is due."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NoReturn, TypeAlias, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from goncordia._check import Duration, aware, instance, name, refuse, seconds
from goncordia._handlers import is_async
from goncordia.errors import ConfigurationError
from goncordia.periodic.walls import Wall

__all__ = ["EPOCH", "FunctionSchedule", "Schedule", "ScheduleFunction", "cron", "every"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Where grids of intervals begin, unless their entry has a start."""

ScheduleFunction: TypeAlias = Callable[[datetime | None], datetime | None]
"""A schedule of one's own: from the last occurrence to the next one.

It is given None before the first, and may then answer None for "now". Later None means that there
is no next one, ever. Times are aware.
"""

_LEAST: Final = 0.1
_LONGEST: Final = 200
_FIELDS: Final = (
    "five fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12 or JAN-DEC, "
    "day of week 0-7 or SUN-SAT, each with lists (1,15), ranges (1-5) and steps (*/10)"
)
_YEARS: Final = 50
_LEAP: Final = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall time: whether an expression ever fires


class Schedule(ABC):
    """When something is due, as :func:`every` and :func:`cron` make it.

    Attributes:
        text: how it is shown.
    """

    text: str

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.text}>"

    @abstractmethod
    def after(self, moment: datetime) -> datetime | None:
        """The first occurrence after a moment, in UTC; None: there is none.

        Raises:
            ConfigurationError: the moment is no aware datetime.
        """

    @abstractmethod
    def until(self, moment: datetime) -> datetime | None:
        """The last occurrence up to a moment, in UTC; None: there is none.

        Raises:
            ConfigurationError: the moment is no aware datetime.
        """

    def starting(self, start: datetime) -> Schedule:
        """The same, for an entry that starts then."""
        return self


class _Every(Schedule):
    def __init__(self, interval: timedelta, start: datetime = EPOCH) -> None:
        self.text = f"every {interval}"
        self._interval = interval
        self._start = start

    def after(self, moment: datetime) -> datetime | None:
        return self._at((aware("moment", moment) - self._start) // self._interval + 1)

    def until(self, moment: datetime) -> datetime | None:
        return self._at((aware("moment", moment) - self._start) // self._interval)

    def starting(self, start: datetime) -> Schedule:
        return _Every(self._interval, start)

    def _at(self, number: int) -> datetime | None:
        try:
            return self._start + number * self._interval
        except OverflowError:  # the calendar ends
            return None


class _Cron(Schedule):
    def __init__(self, expression: str, zone: ZoneInfo) -> None:
        self.text = f"{expression} {zone.key}"
        self._wall = Wall(expression, zone)

    def after(self, moment: datetime) -> datetime | None:
        return self._wall.after(aware("moment", moment))

    def until(self, moment: datetime) -> datetime | None:
        return self._wall.until(aware("moment", moment))


class FunctionSchedule:
    """A function as a schedule, whose answers are checked.

    Args:
        function: the function.

    Attributes:
        text: its name.

    Raises:
        ConfigurationError: it is no plain function.
    """

    def __init__(self, function: ScheduleFunction) -> None:
        if is_async(function):
            refuse("schedule", function, "a plain function; it is called and not awaited")
        module = getattr(function, "__module__", None) or type(function).__module__
        self.text = f"{module}.{getattr(function, '__qualname__', type(function).__qualname__)}"
        self._function = function

    def next(self, last: datetime | None) -> datetime | None:
        """Ask it.

        Raises:
            ConfigurationError: it raised, or what it answered is no later time.
        """
        try:
            found = cast("object", self._function(last))
        except Exception as error:
            raise ConfigurationError(
                f"schedule: {self.text}({_shown(last)}) raised {type(error).__name__}: {error}"
            ) from error
        if found is None:
            return None
        if not isinstance(found, datetime) or found.utcoffset() is None:
            self._refuse(last, found, "an aware datetime or None")
        found = aware(f"schedule: {self.text}({_shown(last)})", found)
        if found < EPOCH:
            self._refuse(last, found, "after 1970")
        if last is not None and found <= last:
            self._refuse(last, found, "after the occurrence that it was given")
        return found

    def _refuse(self, last: datetime | None, found: object, right: str) -> NoReturn:
        refuse(f"schedule: {self.text}({_shown(last)})", found, right)


def _shown(last: datetime | None) -> str:
    return "None" if last is None else last.isoformat()


def every(interval: Duration, /) -> Schedule:
    """At regular intervals.

    They are counted from the first moment of 1970 in UTC, so that ``every(3600)`` is every full
    hour, in every process and after every restart; with ``start_at``, from that.

    Args:
        interval: seconds, or a ``timedelta``; at least a tenth of a second.

    Raises:
        ConfigurationError: it is no such duration.
    """
    length = seconds("every", interval)
    if length < _LEAST:
        refuse("every", interval, f"at least {_LEAST:g} s")
    return _Every(timedelta(seconds=length))


def cron(expression: str, /, tz: str | ZoneInfo = "UTC") -> Schedule:
    """By a cron expression of five fields, as on Unix, in a time zone.

    A time of the day that is skipped when the clock is put forward is due when the clock has been;
    one that comes twice is due the first time. Where minute or hour begins with ``*`` it goes by
    the clock: nothing is due in the hour that is skipped, and both hours count that are alike.

    Where day of month and day of week both are given, and neither begins with ``*``, one of them
    suffices. Beyond Unix there are ``L``, the last day of the month, ``LW``, its last day from
    Monday to Friday, ``5L``, its last Friday, and ``MON#2``, its second Monday.

    Args:
        expression: such as ``"30 9 * * MON-FRI"``.
        tz: the zone's name in the tz database, such as ``"Europe/Paris"``, or a ``ZoneInfo``.

    Raises:
        ConfigurationError: the expression is wrong or can never be due, or there is no such zone.
    """
    text = instance("cron", expression, str, "a str")
    words = name("cron", " ".join(text.split()), longest=_LONGEST)
    if (count := len(words.split())) != len("mhdmw"):
        refuse("cron", expression, f"{_FIELDS}; it has {count}")
    try:
        found = next(CronSim(words, _LEAP), None)
    except CronSimError as error:
        if str(error) == "Bad day-of-month" and _is_right_in_some_month(words):
            refuse("cron", expression, "ever due: none of its months has such a day")
        reason = f"the {str(error).removeprefix('Bad ')} is wrong"
        raise ConfigurationError(f"cron: {expression!r}: {reason}; give {_FIELDS}") from None
    if found is None:
        refuse("cron", expression, f"ever due: no day fits within {_YEARS} years")
    return _Cron(words, _zone(tz))


def _is_right_in_some_month(words: str) -> bool:
    minute, hour, day, _, weekday = words.split()
    try:
        CronSim(f"{minute} {hour} {day} * {weekday}", _LEAP)
    except CronSimError:
        return False
    return True


def _zone(tz: object) -> ZoneInfo:
    if isinstance(tz, ZoneInfo):
        if tz.key is None:  # pyright: ignore[reportUnnecessaryComparison]  # ZoneInfo.from_file without a key
            refuse("tz", tz, "a zone with a name")
        return tz
    key = name("tz", tz)
    try:
        return ZoneInfo(key)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        refuse(
            "tz",
            key,
            "a zone of the tz database, such as 'Europe/Paris' (where the system has no zones: "
            "pip install tzdata)",
        )
