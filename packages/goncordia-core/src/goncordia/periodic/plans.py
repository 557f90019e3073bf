"""What is to be done about a periodic job now: which occurrences to enqueue, and what comes next.

Pure functions of an entry, its cursor and the time, so that whoever works them out comes to the
same. Only a function's answers may differ from one call to the next: so what it said of the next
occurrence is kept in the cursor before that occurrence is enqueued.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from goncordia.periodic.cursors import Cursor
from goncordia.periodic.job import PeriodicJob
from goncordia.periodic.schedules import FunctionSchedule, Schedule

__all__ = ["Plan", "current", "plan"]

_with: Final = msgspec.structs.replace

_LONGEST_WALK: Final = 10_000
"""Steps from one answer of a function to the next, at most, before others have their turn."""


@dataclass(frozen=True)
class Plan:
    """What to do.

    Attributes:
        enqueue: the occurrences to enqueue, oldest first.
        cursor: what the cursor has to be afterwards.
        left_out: whether occurrences are passed over that were due.
    """

    enqueue: tuple[datetime, ...]
    cursor: Cursor
    left_out: bool


def current(entry: PeriodicJob, cursor: Cursor | None, now: datetime) -> Cursor:
    """The cursor as this entry, as it is now, would have it; the same if it is.

    Args:
        entry: the entry.
        cursor: what is stored; None: the entry is new.
        now: the backend's time.

    Raises:
        ConfigurationError: a function failed.
    """
    upto = None if cursor is None else cursor.upto
    last = None if cursor is None else cursor.last
    wanted = None if cursor is None or cursor.schedule != entry.text else cursor.wanted
    schedule = entry.schedule
    if isinstance(schedule, Schedule):
        if upto is None:
            upto = entry.since(now)
        upcoming = schedule.after(entry.floor(upto))
    elif cursor is not None and cursor.schedule == entry.text:
        return cursor
    else:
        upcoming = schedule.next(upto)
        if upcoming is None and upto is None:
            upcoming = now
        upcoming = None if upcoming is None else entry.not_before(upcoming)
    return Cursor(entry.kind, entry.text, upto, last, upcoming, wanted)


def plan(entry: PeriodicJob, cursor: Cursor, now: datetime, most: int) -> Plan | None:
    """What is due; None: nothing is.

    Args:
        entry: the entry.
        cursor: its current one.
        now: the backend's time.
        most: enqueue at most so many at once; what is left is due at the next look.

    Raises:
        ConfigurationError: a function failed.
    """
    first = cursor.next
    if first is None or first > now:
        return None
    if isinstance(entry.schedule, FunctionSchedule):
        return _by_function(entry, entry.schedule, cursor, first, now)
    return _by_rule(entry, entry.schedule, cursor, first, now, most)


def _by_rule(
    entry: PeriodicJob,
    schedule: Schedule,
    cursor: Cursor,
    first: datetime,
    now: datetime,
    most: int,
) -> Plan:
    if entry.catch_up == "all" and cursor.wanted is not None and first <= cursor.wanted:
        return _next_lot(schedule, cursor, first, min(cursor.wanted, now), most)
    newest = schedule.until(now) or first
    if entry.catch_up == "all":
        wanted = _all_due(schedule, first, newest, entry.catch_up_limit)
    else:
        wanted = _newest_only(entry, newest, now)
    enqueue = tuple(wanted[:most])
    rest = len(wanted) > most
    upto = enqueue[-1] if rest else newest
    return Plan(
        enqueue,
        _with(_moved(cursor, upto, enqueue, schedule.after(upto)), wanted=newest if rest else None),
        left_out=not wanted or wanted[0] > first,
    )


def _next_lot(
    schedule: Schedule, cursor: Cursor, first: datetime, end: datetime, most: int
) -> Plan:
    """More of what was counted before; to count it anew each time would take far too long."""
    lot = [first]
    following = schedule.after(first)
    while following is not None and following <= end and len(lot) < most:
        lot.append(following)
        following = schedule.after(following)
    return Plan(tuple(lot), _moved(cursor, lot[-1], tuple(lot), following), left_out=False)


def _all_due(schedule: Schedule, first: datetime, newest: datetime, limit: int) -> list[datetime]:
    """From the first to the newest, or the newest of them where they are too many."""
    due = deque([newest])
    while len(due) < limit and due[0] > first:
        previous = _before(schedule, due[0])
        if previous is None or previous < first:
            break
        due.appendleft(previous)
    return list(due)


def _before(schedule: Schedule, moment: datetime) -> datetime | None:
    return schedule.until(moment - datetime.resolution)


def _by_function(
    entry: PeriodicJob,
    schedule: FunctionSchedule,
    cursor: Cursor,
    first: datetime,
    now: datetime,
) -> Plan:
    chain = [first]
    following = schedule.next(first)
    while following is not None and following <= now and len(chain) < _LONGEST_WALK:
        chain.append(following)
        following = schedule.next(following)
    if entry.catch_up == "all":
        wanted = chain[-entry.catch_up_limit :]
    else:
        wanted = _newest_only(entry, chain[-1], now)
    if not wanted:
        return Plan((), _moved(cursor, chain[-1], (), following), left_out=True)
    if wanted[0] != first:
        skipped = chain[chain.index(wanted[0]) - 1]
        return Plan((), _moved(cursor, skipped, (), wanted[0]), left_out=True)
    upcoming = chain[1] if len(chain) > 1 else following
    return Plan((first,), _moved(cursor, first, (first,), upcoming), left_out=False)


def _newest_only(entry: PeriodicJob, newest: datetime, now: datetime) -> list[datetime]:
    if entry.catch_up == "skip" and now - newest > entry.grace:
        return []
    return [newest]


def _moved(
    cursor: Cursor,
    upto: datetime,
    enqueued: tuple[datetime, ...],
    upcoming: datetime | None,
) -> Cursor:
    last = enqueued[-1] if enqueued else cursor.last
    return _with(cursor, upto=upto, last=last, next=upcoming)
