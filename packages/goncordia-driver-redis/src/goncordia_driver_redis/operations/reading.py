"""Reading jobs, one by one and in lists."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from goncordia.driver import FINISHED_STATES, JobRow, JobState, ListFilter, Page
from goncordia.errors import InvalidCursorError
from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations.base import as_it_is
from goncordia_driver_redis.operations.call import Op
from goncordia_driver_redis.operations.queues import Queues
from goncordia_driver_redis.wire.replies import read_jobs, read_pairs
from goncordia_driver_redis.wire.requests import encode_filter
from goncordia_driver_redis.wire.times import from_micros

__all__ = ["Reading"]

_GET: Final = load_script("get")
_NOW: Final = load_script("now")
_SCAN: Final = load_script("scan")
_COUNT_FINISHED: Final = load_script("count_finished")
_COUNT_ALL: Final = load_script("count_all")
_STATE_IDS: Final = load_script("state_ids")
_LISTED: Final = FINISHED_STATES | {JobState.RUNNING}
_FEW: Final = 5000
_ID_BYTES: Final = 16
_LOOKED_AT: Final = 512 * _ID_BYTES
_CHUNKS: Final = 500
_STEP: Final = 200


class Reading(Queues):
    """Nothing here changes anything."""

    def get_many(self, ids: Sequence[UUID]) -> Op[list[JobRow | None]]:
        """See :meth:`BaseExecutor.get_many`."""
        rows: list[JobRow | None] = []
        while len(rows) < len(ids):
            some = ids[len(rows) : len(rows) + _STEP]

            def parse(answer: Any, some: Sequence[UUID] = some) -> list[JobRow | None]:
                now, raws, extras = answer
                return read_jobs(now, some[: len(raws)], raws, extras)

            rows += yield self._call_with(_GET, parse, [each.bytes for each in some])
        return rows

    def list_jobs(self, where: ListFilter, page: bytes | None, limit: int) -> Op[Page]:
        """See :meth:`BaseExecutor.list_jobs`. A page is named by the last id of the one before."""
        if page is not None and len(page) != _ID_BYTES:
            raise InvalidCursorError("page: it was not given by this driver")
        rows, _ = yield from self._scan(where, page, limit + 1)
        if len(rows) <= limit:
            return Page(rows)
        return Page(rows[:limit], rows[limit - 1].id.bytes if limit > 0 else None)

    def count(self, where: ListFilter) -> Op[int]:
        """See :meth:`BaseExecutor.count`."""
        if where == ListFilter(states=where.states) and where.states:
            return (yield from self._count_states(where.states))
        if encode_filter(where):
            _, count = yield from self._scan(where, None, None)
            return count
        return (yield from self._count_all())

    def _count_all(self) -> Op[int]:
        """All jobs, by the lengths of the index."""
        total, bound = 0, b"-"
        while bound:
            count, last = yield self._call(_COUNT_ALL, as_it_is, bound, _CHUNKS)
            total += count
            bound = last and b"(" + last
        return total

    def _count_states(self, states: Set[JobState]) -> Op[int]:
        """The jobs in these states, by the lengths of what they stand in."""
        total = 0
        if finished := states & FINISHED_STATES:
            total += sum((yield self._call_with(_COUNT_FINISHED, as_it_is, sorted(finished))))
        if waiting := states - FINISHED_STATES:
            for queue in (yield from self.queue_stats()):
                total += sum(getattr(queue, state) for state in waiting)
        return total

    def _scan(
        self, where: ListFilter, page: bytes | None, limit: int | None
    ) -> Op[tuple[list[JobRow], int]]:
        """Jobs that pass, the newest first, and how many they are; with no limit only that.

        Each call looks at one chunk of the index, and brings the ids of the next: the server need
        not sort them. Where only few jobs can pass, no others are looked at.
        """
        text = encode_filter(where)
        rows: list[JobRow] = []
        passed, ids = 0, b""
        bound = b"+" if page is None else b"(" + page
        if where.states and where.states <= _LISTED:
            few = yield self._call(_STATE_IDS, as_it_is, _FEW, *sorted(where.states))
            if few is not None:
                ids, bound = _newest_first(few, page), b""
        while True:
            room = -1 if limit is None else limit - passed
            some, count, seen, start, chunk = yield self._call(
                _SCAN, _read_scan, text, room, bound, ids[:_LOOKED_AT]
            )
            rows += some
            passed += count
            ids = ids[_ID_BYTES * seen :]
            if passed == limit or not (ids or start):
                return rows, passed
            if not ids:
                ids = _newest_first(chunk, page)
                bound = b"(" + start

    def now(self) -> Op[datetime]:
        """See :meth:`BaseExecutor.now`."""
        time: datetime = yield self._call(_NOW, from_micros)
        return time


def _newest_first(chunk: bytes, below: bytes | None) -> bytes:
    """The ids of a chunk, each once, as far as they belong to the page."""
    ids = {chunk[at : at + _ID_BYTES] for at in range(0, len(chunk), _ID_BYTES)}
    return b"".join(sorted((each for each in ids if below is None or each < below), reverse=True))


def _read_scan(answer: Any) -> tuple[list[JobRow], int, int, bytes, bytes]:
    now, pairs, extras, passed, seen, start, chunk = answer
    return read_pairs(now, pairs, extras), passed, seen, start, chunk
