"""Enqueueing what is due of one periodic job, once, whoever else tries the same.

The jobs are inserted first and the cursor is moved after: whoever dies in between is followed by
somebody who inserts the same ids again, which changes nothing. And nobody inserts what he has not,
a moment ago, seen to be due by the cursor: by then jobs of before may be done, and pruned.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from goncordia.client.operations.preparing import Preparing
from goncordia.clock import Clock
from goncordia.driver import AnyDriver, NewJob, Record
from goncordia.engine.calls import Calls, one_each, refused
from goncordia.ids import new_token
from goncordia.payload.codecs import Codec
from goncordia.periodic.cursors import CURSORS, Cursor, cursor_name, cursor_of, encode_cursor
from goncordia.periodic.job import PeriodicJob, occurrence_id
from goncordia.periodic.plans import Plan, current, plan

__all__ = ["Firing"]

_MOST: Final = 100
"""Occurrences enqueued at once; the cursor is moved after each such lot."""

_CALM: Final = timedelta(seconds=60)
"""After which an entry that failed is tried again."""

_logger = logging.getLogger("goncordia.cron")


class Firing:
    """Brings periodic jobs up to date.

    Args:
        driver: where jobs and cursors are.
        calls: how to call it.
        clock: by which the age of what was read is told.
        patience: seconds after which what was read of a cursor is too old to insert by it.
        codec: what args become; None: they stay JSON.

    Raises:
        ConfigurationError: ``codec`` is none.
    """

    def __init__(
        self,
        driver: AnyDriver,
        calls: Calls,
        clock: Clock,
        patience: float,
        codec: Codec | None = None,
    ) -> None:
        self._executor = driver.executor()
        self._preparing = Preparing(driver, None, codec)
        self._most = min(_MOST, driver.capabilities.max_batch)
        self._calls = calls
        self._clock = clock
        self._patience = patience

    async def read(
        self, entries: Sequence[PeriodicJob], failed: Callable[[PeriodicJob, Exception], object]
    ) -> dict[str, datetime | None]:
        """When each entry is due next, by its id; their cursors are made, or made current.

        Args:
            entries: the entries.
            failed: is told of those whose function or cursor fails; they are to be looked at later.

        Raises:
            DriverError: the backend failed.
        """
        now = await self._calls.once(self._executor.now())
        records = await self._calls.once(self._executor.record_list(CURSORS))
        stored = {record.name: record for record in records}
        upcoming: dict[str, datetime | None] = {}
        for entry in entries:
            record = stored.get(cursor_name(entry.id))
            try:
                upcoming[entry.id] = (await self._settled(entry, record, now))[0].next
            except Exception as error:
                if not refused(error):
                    raise
                failed(entry, error)
                upcoming[entry.id] = now + _CALM
        return upcoming

    async def fire(
        self, entry: PeriodicJob, failed: Callable[[PeriodicJob, Exception], object]
    ) -> datetime | None:
        """Enqueue what is due of the entry, or some of it; when there is more to do.

        Args:
            entry: the entry.
            failed: is told if its function, its cursor or its jobs fail; it is to be tried later.

        Raises:
            DriverError: the backend failed; whether anything was inserted, the next try finds out.
        """
        now = await self._calls.once(self._executor.now())
        try:
            return await self._fire(entry, now)
        except Exception as error:
            if not refused(error):
                raise
            failed(entry, error)
            return now + _CALM

    async def _fire(self, entry: PeriodicJob, now: datetime) -> datetime | None:
        seen = self._clock.monotonic()
        record = await self._calls.once(self._executor.record_get(cursor_name(entry.id)))
        cursor, version = await self._settled(entry, record, now)
        todo = plan(entry, cursor, now, self._most)
        if todo is None:
            return cursor.next
        jobs = [self.job(entry, when) for when in todo.enqueue]
        if self._clock.monotonic() - seen >= self._patience:
            return now  # this process was frozen: look again
        if jobs:
            inserted = await self._calls.once(self._executor.insert_many(jobs))
            one_each(jobs, inserted)
        if await self._put(entry, todo.cursor, version) is None:
            return now  # somebody else was here: look again
        _tell(entry, todo)
        return todo.cursor.next

    def job(self, entry: PeriodicJob, when: datetime) -> NewJob:
        """The job of an occurrence.

        Raises:
            ConfigurationError: an option is wrong.
            UnsupportedError: the driver cannot keep what an option asks for.
            PayloadError: the args cannot be stored, or not come back equal.
            CodecError: the codec failed.
        """
        meta = entry.options.get("meta", {}) | {"cron.id": entry.id, "cron.at": when.isoformat()}
        mold = self._preparing.mold(type(entry.args), entry.opts, {"run_at": when, "meta": meta})
        return mold.job(entry.args, occurrence_id(entry.id, when))

    async def _settled(
        self, entry: PeriodicJob, record: Record | None, now: datetime
    ) -> tuple[Cursor, int]:
        """The entry's cursor as it should be, stored so, and its version."""
        while True:
            stored = None if record is None else cursor_of(record)
            cursor = current(entry, stored, now)
            if record is not None and cursor == stored:
                return cursor, record.version
            version = await self._put(entry, cursor, 0 if record is None else record.version)
            if version is not None:
                return cursor, version
            record = await self._calls.once(self._executor.record_get(cursor_name(entry.id)))

    async def _put(self, entry: PeriodicJob, cursor: Cursor, version: int) -> int | None:
        """Write the cursor; its new version, or None where somebody else wrote it before."""
        put = await self._calls.once(
            self._executor.record_put(
                cursor_name(entry.id), encode_cursor(cursor), version, new_token()
            )
        )
        return put.version if put.done else None


def _tell(entry: PeriodicJob, todo: Plan) -> None:
    if todo.left_out:
        _logger.warning(
            "%s: occurrences were missed and are left out (catch_up=%r)", entry.id, entry.catch_up
        )
    for when in todo.enqueue:
        _logger.debug("%s: enqueued what is due at %s", entry.id, when.isoformat())
