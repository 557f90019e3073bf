"""Wall clocks: what a cron expression means in a zone whose clock is put forward and back.

The parser steps through the wall times that an expression names; here each becomes the moments at
which a clock on that wall shows it: one, none on the night when the clock is put forward, two on
the night when it is put back.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim

__all__ = ["Wall"]

_SECOND: Final = timedelta(seconds=1)
_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)
_NONE: Final = timedelta(0)


class Wall:
    """The moments of a cron expression in a zone.

    An expression that fixes minute and hour names times of the day: each runs once on every day
    that it names, at the end of the gap when the clock skips it, the first time when the clock
    shows it twice. Any other, whose minute or hour begins with ``*``, goes by the clock: it runs
    whenever the clock shows what it names, so not in the hour that is skipped, and in both that
    are alike.

    Args:
        expression: one that the parser has accepted.
        zone: the zone.
    """

    def __init__(self, expression: str, zone: ZoneInfo) -> None:
        self._expression = expression
        self._zone = zone
        minute, hour = expression.split()[:2]
        self._by_the_clock = minute.startswith("*") or hour.startswith("*")

    def after(self, moment: datetime) -> datetime | None:
        """The first moment after this one, in UTC; None: none within fifty years."""
        wall = self._shown(moment)
        # What the clock shows again soon stands before the hand.
        again = self._put_back(moment, moment + _DAY) if self._by_the_clock else _NONE
        first: datetime | None = None
        for shown in self._named(wall - again, reverse=False):
            for found in self._moments(shown):
                if found > moment and (first is None or found < first):
                    first = found
            if first is not None and shown > wall:
                break
        return first

    def until(self, moment: datetime) -> datetime | None:
        """The last moment up to this one, in UTC; None: none within fifty years."""
        wall = self._shown(moment)
        again = self._put_back(moment - _DAY, moment)
        last: datetime | None = None
        for shown in self._named(wall.replace(microsecond=0) + again + _SECOND, reverse=True):
            for found in self._moments(shown):
                if found <= moment and (last is None or found > last):
                    last = found
            if last is not None and shown <= wall:
                break
        return last

    def _named(self, start: datetime, *, reverse: bool) -> Iterator[datetime]:
        """The wall times that the expression names, from ``start`` (excluded) on or back."""
        try:
            yield from CronSim(self._expression, start, reverse)
        except OverflowError:  # the calendar ends
            return

    def _moments(self, shown: datetime) -> tuple[datetime, ...]:
        """When it counts as shown."""
        first = self._moment(shown, fold=0)
        if self._shown(first) != shown:
            if self._by_the_clock:
                return ()
            while self._shown(first) != shown:
                shown += _MINUTE
                first = self._moment(shown, fold=0)
            return (first,)
        second = self._moment(shown, fold=1)
        return (first, second) if self._by_the_clock and second != first else (first,)

    def _moment(self, shown: datetime, *, fold: int) -> datetime:
        return shown.replace(tzinfo=self._zone, fold=fold).astimezone(UTC)

    def _shown(self, moment: datetime) -> datetime:
        return moment.astimezone(self._zone).replace(tzinfo=None, fold=0)

    def _put_back(self, earlier: datetime, later: datetime) -> timedelta:
        """By how much the clock is put back between two moments."""
        return max(_NONE, self._ahead(earlier) - self._ahead(later))

    def _ahead(self, moment: datetime) -> timedelta:
        """How far the clock is ahead of UTC."""
        return self._shown(moment) - moment.replace(tzinfo=None)
