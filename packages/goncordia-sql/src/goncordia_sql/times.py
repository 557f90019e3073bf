"""How a dialect keeps points in time and durations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from goncordia.driver import After, When

__all__ = ["IntegerTimes", "NativeTimes", "Times"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DAY: Final = timedelta(days=1)
_FIRST: Final = datetime.min.replace(tzinfo=UTC) + _DAY
_LAST: Final = datetime.max.replace(tzinfo=UTC) - _DAY


class Times(ABC):
    """Encodes, decodes and adds. A stored time is of the type that the library takes and gives."""

    @abstractmethod
    def encode(self, time: datetime, /) -> Any:
        """The stored form of a time."""

    @abstractmethod
    def decode(self, stored: Any, /) -> datetime:
        """The time of a stored form: aware, in UTC."""

    @abstractmethod
    def add(self, stored: Any, seconds: float, /) -> Any:
        """The stored time, so many seconds later."""

    @abstractmethod
    def seconds(self, later: Any, earlier: Any, /) -> float:
        """The seconds between two stored times."""

    def resolve(self, when: When, now: Any) -> Any:
        """The stored form of what a request means, given the stored now."""
        if when is None:
            return now
        if isinstance(when, After):
            return self.add(now, when.seconds)
        return self.encode(when.when)

    def encode_optional(self, time: datetime | None) -> Any:
        """As ``encode``, and None for None."""
        return None if time is None else self.encode(time)

    def decode_optional(self, stored: Any) -> datetime | None:
        """As ``decode``, and None for None."""
        return None if stored is None else self.decode(stored)


class IntegerTimes(Times):
    """Microseconds since 1970: for databases without a type of their own for times."""

    def encode(self, time: datetime, /) -> int:
        """See :meth:`Times.encode`."""
        return (time - _EPOCH) // _MICROSECOND

    def decode(self, stored: int, /) -> datetime:
        """See :meth:`Times.decode`."""
        return _EPOCH + timedelta(0, 0, stored)

    def add(self, stored: int, seconds: float, /) -> int:
        """See :meth:`Times.add`."""
        return stored + round(seconds * 1_000_000)

    def seconds(self, later: int, earlier: int, /) -> float:
        """See :meth:`Times.seconds`."""
        return (later - earlier) / 1_000_000


class NativeTimes(Times):
    """Aware ``datetime`` objects, as the library takes and gives them.

    A library may give them in any time zone, in which those of the calendar's first and last day
    may be none, and may take its ends for infinite: such times are kept as the day next to them.
    """

    def encode(self, time: datetime, /) -> datetime:
        """See :meth:`Times.encode`."""
        return min(max(time, _FIRST), _LAST)

    def decode(self, stored: datetime, /) -> datetime:
        """See :meth:`Times.decode`."""
        return stored.astimezone(UTC)

    def add(self, stored: datetime, seconds: float, /) -> datetime:
        """See :meth:`Times.add`."""
        return stored + timedelta(seconds=seconds)

    def seconds(self, later: datetime, earlier: datetime, /) -> float:
        """See :meth:`Times.seconds`."""
        return (later - earlier).total_seconds()
