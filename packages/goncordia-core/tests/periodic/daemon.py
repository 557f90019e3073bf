"""Cron once more, as simple as can be: a daemon that looks at the clock on the wall each minute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

__all__ = ["daemon"]

MINUTE = timedelta(minutes=1)
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def _field(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        found.update(range(int(first), int(last or (high if step else first)) + 1, int(step or 1)))
    return found


def _matcher(expression: str) -> Callable[[datetime], bool]:
    parts = expression.split()
    minutes, hours, days, months, weekdays = (
        _field(part, *bounds) for part, bounds in zip(parts, _BOUNDS, strict=True)
    )
    weekdays = {day % 7 for day in weekdays}
    both = parts[2].startswith("*") or parts[4].startswith("*")

    def matches(wall: datetime) -> bool:
        day, weekday = wall.day in days, wall.isoweekday() % 7 in weekdays
        return (
            wall.minute in minutes
            and wall.hour in hours
            and wall.month in months
            and ((day and weekday) if both else (day or weekday))
        )

    return matches


def daemon(expression: str, zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[datetime]:
    """The moments after ``start``, up to ``end``, at which it starts the job; both full minutes.

    A fixed time of the day that the hand has jumped over is started at once, and one that it has
    passed before is not started again. Other expressions just follow the hand.
    """
    matches = _matcher(expression)
    minute, hour = expression.split()[:2]
    is_fixed = not (minute.startswith("*") or hour.startswith("*"))
    # What the hand has passed before the start counts as well.
    moment = start - timedelta(hours=4)
    passed = moment.astimezone(zone).replace(tzinfo=None)
    while moment < end:
        moment += MINUTE
        wall = moment.astimezone(zone).replace(tzinfo=None)
        if is_fixed:
            due = False
            while passed < wall:
                passed += MINUTE
                due = due or matches(passed)
        else:
            due = matches(wall)
        if due and moment > start:
            yield moment
