"""Points in time as microseconds since 1970, in doubles: exact until the year 2255.

The first and the last day of the calendar are kept as the day next to them, so that nothing that
is added or rounded leaves it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from goncordia.driver import After, When
from goncordia_driver_redis.wire.layout import NUMBERS

__all__ = ["from_micros", "micros", "seconds_to_micros", "when_to_wire"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST: Final = NUMBERS["FIRST_TIME"]
_LAST: Final = NUMBERS["LAST_TIME"]
_LONGEST: Final = _LAST - _FIRST


def micros(time: datetime) -> int:
    """The microseconds of a time."""
    return min(max((time - _EPOCH) // _MICROSECOND, _FIRST), _LAST)


def from_micros(stored: float) -> datetime:
    """The time of so many microseconds: aware, in UTC."""
    return _EPOCH + timedelta(0, 0, min(max(stored, _FIRST), _LAST))


def seconds_to_micros(seconds: float) -> int:
    """A duration in microseconds; no longer than the calendar."""
    return round(min(max(seconds * 1_000_000, -_LONGEST), _LONGEST))


def when_to_wire(when: When) -> tuple[int, int]:
    """How scripts take it: ``NOW``, ``IN`` or ``AT``, and the microseconds."""
    if when is None:
        return NUMBERS["NOW"], 0
    if isinstance(when, After):
        return NUMBERS["IN"], seconds_to_micros(when.seconds)
    return NUMBERS["AT"], micros(when.when)
