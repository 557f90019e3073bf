"""Cursors: how far each periodic job has come, kept as records."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from goncordia import _check
from goncordia.driver import AnyDriver, Record
from goncordia.errors import GoncordiaError
from goncordia.ids import new_token

__all__ = [
    "CURSORS",
    "Cursor",
    "ScheduleInfo",
    "cursor_name",
    "cursor_of",
    "delete_schedule",
    "encode_cursor",
    "list_schedules",
]

CURSORS: Final = "cron/"
"""How the names of all cursors begin."""


class Cursor(msgspec.Struct, frozen=True):
    """How far a periodic job has come.

    Attributes:
        kind: of its jobs.
        schedule: its schedule when this was written, as text.
        upto: all occurrences up to this moment are settled: enqueued, or left out.
        last: the last occurrence that was enqueued.
        next: the next occurrence; None: there is none, ever.
        wanted: all occurrences up to this moment are to be enqueued, since ``"all"`` has counted
            them; None: nobody has.
    """

    kind: str
    schedule: str
    upto: datetime | None = None
    last: datetime | None = None
    next: datetime | None = None
    wanted: datetime | None = None


_decode: Final = msgspec.json.Decoder(Cursor).decode
encode_cursor: Final = msgspec.json.Encoder().encode
"""The record's value for a cursor."""


def cursor_name(schedule_id: str) -> str:
    """The name of an entry's record."""
    return f"{CURSORS}{schedule_id}"


def cursor_of(record: Record) -> Cursor:
    """The cursor in a record.

    Raises:
        GoncordiaError: it holds none.
    """
    try:
        cursor = _decode(record.value)
    except msgspec.MsgspecError as error:
        raise _broken(record, str(error)) from None
    for when in (cursor.upto, cursor.last, cursor.next, cursor.wanted):
        if when is not None and when.utcoffset() is None:
            raise _broken(record, "a time without a zone")
    return cursor


def _broken(record: Record, why: str) -> GoncordiaError:
    return GoncordiaError(
        f"the record {record.name!r} is no cursor of a periodic job ({why}); "
        "delete_schedule() removes it, and its entry begins anew"
    )


class ScheduleInfo(msgspec.Struct, frozen=True):
    """A periodic job as the backend knows it.

    Attributes:
        id: the entry's id.
        kind: of its jobs.
        schedule: as text, such as ``"30 9 * * 1-5 Europe/Paris"``.
        last: the last occurrence that was enqueued; None: none was.
        next: the next occurrence; None: there is none, ever.
    """

    id: str
    kind: str
    schedule: str
    last: datetime | None
    next: datetime | None


async def list_schedules(driver: AnyDriver) -> list[ScheduleInfo]:
    """The periodic jobs that a scheduler has ever worked on this backend, by id.

    Those that were removed from the code stand here until :func:`delete_schedule`.

    Raises:
        DriverError: the backend failed.
        GoncordiaError: a record is damaged.
    """
    await driver.ready()
    found: list[ScheduleInfo] = []
    for record in await driver.executor().record_list(CURSORS):
        cursor = cursor_of(record)
        found.append(
            ScheduleInfo(
                record.name.removeprefix(CURSORS),
                cursor.kind,
                cursor.schedule,
                cursor.last,
                cursor.next,
            )
        )
    return found


async def delete_schedule(driver: AnyDriver, schedule_id: str) -> bool:
    """Forget how far a periodic job has come; whether there was anything to forget.

    For entries that were removed from the code. One that a scheduler still works begins anew, as
    if it were new.

    Raises:
        ConfigurationError: ``schedule_id`` is no name.
        DriverError: the backend failed.
    """
    record_name = cursor_name(_check.name("schedule_id", schedule_id))
    await driver.ready()
    executor = driver.executor()
    while (record := await executor.record_get(record_name)) is not None:
        put = await executor.record_put(record_name, None, record.version, new_token())
        if put.done:
            return True
    return False
