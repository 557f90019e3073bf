"""Bugs in how periodic jobs are enqueued."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from goncordia.driver import InsertResult, NewJob
from goncordia.errors import DriverError
from goncordia.periodic import firing
from goncordia.periodic.cursors import Cursor, cursor_name
from goncordia.periodic.firing import Firing
from goncordia.periodic.job import PeriodicJob, occurrence_id
from goncordia.periodic.plans import current, plan
from goncordia.periodic.schedules import FunctionSchedule

from .planting import bug

__all__: list[str] = []

_counter = itertools.count()


@bug("the id of a job is that of its occurrence", firing, "occurrence_id", cron=True)
def ids_are_new_each_time(schedule_id: str, when: datetime) -> UUID:
    return occurrence_id(f"{schedule_id}/{next(_counter)}", when)


async def _insert(self: Firing, entry: PeriodicJob, times: Sequence[datetime]) -> None:
    jobs: list[NewJob] = [self.job(entry, when) for when in times]
    if jobs:
        _: list[InsertResult] = await self._calls.once(self._executor.insert_many(jobs))


@bug("jobs are inserted before the cursor moves on", Firing, "_fire", within=100, cron=True)
async def cursors_move_first(self: Firing, entry: PeriodicJob, now: datetime) -> datetime | None:
    record = await self._calls.once(self._executor.record_get(cursor_name(entry.id)))
    cursor, version = await self._settled(entry, record, now)
    todo = plan(entry, cursor, now, self._most)
    if todo is None:
        return cursor.next
    if await self._put(entry, todo.cursor, version) is None:
        return now
    await _insert(self, entry, todo.enqueue)
    return todo.cursor.next


@bug("an insert that failed is repeated", Firing, "_fire", cron=True)
async def failed_inserts_count(self: Firing, entry: PeriodicJob, now: datetime) -> datetime | None:
    record = await self._calls.once(self._executor.record_get(cursor_name(entry.id)))
    cursor, version = await self._settled(entry, record, now)
    todo = plan(entry, cursor, now, self._most)
    if todo is None:
        return cursor.next
    with contextlib.suppress(DriverError):
        await _insert(self, entry, todo.enqueue)
    await self._put(entry, todo.cursor, version)
    return todo.cursor.next


@bug("what a function said is kept", firing, "current", within=100, cron=True)
def functions_are_asked_again(entry: PeriodicJob, cursor: Cursor | None, now: datetime) -> Cursor:
    if cursor is not None and isinstance(entry.schedule, FunctionSchedule):
        upcoming = entry.schedule.next(cursor.upto)
        return Cursor(entry.kind, entry.text, cursor.upto, cursor.last, upcoming)
    return current(entry, cursor, now)


@bug("the cursor says what is next, not the clock", firing, "current", cron=True)
def new_leaders_begin_now(entry: PeriodicJob, cursor: Cursor | None, now: datetime) -> Cursor:
    if cursor is None or isinstance(entry.schedule, FunctionSchedule) or cursor.upto is None:
        return current(entry, cursor, now)
    late = cursor.next is not None and cursor.next < now - timedelta(seconds=1)
    upto = now if late else cursor.upto
    return current(entry, Cursor(cursor.kind, cursor.schedule, upto, cursor.last), now)
