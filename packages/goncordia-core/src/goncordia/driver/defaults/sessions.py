"""Sessions as records, for backends that keep no time of their own.

A session is the record ``session/<id>``, and a beat is a put that expects the version of the beat
before. A watcher ends a session whose version it saw unchanged for a whole lease on its own
monotonic clock, by putting "ended" in its place, upon which the owner's next beat fails for good.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

import msgspec

from goncordia.driver.defaults import listing
from goncordia.driver.requests import Finish, ListFilter
from goncordia.driver.results import Beat, SessionInfo
from goncordia.driver.values import JobRow, JobState, Record
from goncordia.errors import DriverError
from goncordia.ids import new_token

if TYPE_CHECKING:
    from goncordia.clock import Clock
    from goncordia.driver.executor import BaseExecutor

__all__ = ["RecordSessions"]

_PREFIX: Final = "session/"
_HELD_BATCH: Final = 500
_RUNNING: Final = frozenset({JobState.RUNNING})


class _Value(msgspec.Struct, frozen=True):
    """What a session's record holds."""

    worker_id: str
    lease: float
    opened_at: datetime
    beats: int = 0
    ended: bool = False


class _Pending(msgspec.Struct, frozen=True):
    """A beat that was sent and may have been applied."""

    value: bytes
    expected: int
    token: bytes


_decode = msgspec.json.Decoder(_Value).decode
_encode = msgspec.json.Encoder().encode


def _name(session: UUID) -> str:
    return f"{_PREFIX}{session}"


class _Own:
    """A session that this executor opened."""

    def __init__(self, value: _Value, version: int) -> None:
        self.value = value
        self.version = version
        self.pending: _Pending | None = None


class _Watched:
    """Another's session: its version, and since when it has not changed."""

    def __init__(self, version: int, since: float) -> None:
        self.version = version
        self.since = since


class RecordSessions:
    """The contract's session methods over the records of an executor."""

    def __init__(self, executor: BaseExecutor, clock: Clock) -> None:
        self._executor = executor
        self._clock = clock
        self._own: dict[UUID, _Own] = {}
        self._watched: dict[UUID, _Watched] = {}
        self._looked_at: float | None = None

    async def open(self, session: UUID, worker_id: str, lease: float) -> None:
        """Put the record; one that is there already stays as it is."""
        value = _Value(worker_id, lease, self._clock.now())
        put = await self._executor.record_put(_name(session), _encode(value), 0, new_token())
        if put.done:
            self._own[session] = _Own(value, put.version)

    async def is_open(self, session: UUID) -> bool:
        """Whether the session may claim."""
        record = await self._executor.record_get(_name(session))
        return record is not None and not _decode(record.value).ended

    async def beat(self, session: UUID, lease: float) -> Beat:
        """Move the version on, and look for cancel requests."""
        own = self._own.get(session)
        if own is None:
            own = await self._adopt(session)
        if own is None:
            return Beat(held=False)
        # A repeated put may be one that was applied long ago: it renews nothing, so it is only
        # cleared out of the way, and a new one follows.
        repeated = own.pending is not None
        if not await self._put(own, session, lease) or (
            repeated and not await self._put(own, session, lease)
        ):
            del self._own[session]
            return Beat(held=False)
        rows = await self._executor.held(session, None, _HELD_BATCH)
        return Beat(
            held=True,
            cancels=tuple(row.claim for row in rows if row.cancel_requested and row.claim),
        )

    async def _adopt(self, session: UUID) -> _Own | None:
        """A session opened through another executor of this process, such as a heartbeater's."""
        record = await self._executor.record_get(_name(session))
        if record is None or (value := _decode(record.value)).ended:
            return None
        own = self._own[session] = _Own(value, record.version)
        return own

    async def _put(self, own: _Own, session: UUID, lease: float) -> bool:
        if own.pending is None:
            value = msgspec.structs.replace(own.value, lease=lease, beats=own.value.beats + 1)
            own.pending = _Pending(_encode(value), own.version, new_token())
            own.value = value
        sent = own.pending
        put = await self._executor.record_put(_name(session), sent.value, sent.expected, sent.token)
        own.pending = None
        own.version = put.version
        return put.done

    async def close(self, session: UUID) -> None:
        """End the session, release what it holds, and forget it."""
        self._own.pop(session, None)
        while (record := await self._executor.record_get(_name(session))) is not None:
            if await self._end(record):
                while rows := await self._executor.held(session, None, _HELD_BATCH):
                    await self._executor.finish_many(
                        [Finish(row.claim, "release") for row in rows if row.claim]
                    )
            if await self._delete(session):
                return

    async def list_sessions(self) -> list[SessionInfo]:
        """Every session that has a record."""
        sessions = []
        for record in await self._executor.record_list(_PREFIX):
            value = _decode(record.value)
            session = UUID(record.name.removeprefix(_PREFIX))
            sessions.append(
                SessionInfo(
                    session,
                    value.worker_id,
                    open=not value.ended,
                    opened_at=value.opened_at,
                    lease=value.lease,
                )
            )
        return sessions

    async def expire(self, session: UUID, limit: int) -> list[JobRow]:
        """Watch the versions, end what stood still for a lease, and give what ended ones hold."""
        try:
            return await self._expire(session, limit)
        except DriverError:
            # Versions may have stood still because nobody could write: start watching again.
            self._watched.clear()
            self._looked_at = None
            raise

    async def _expire(self, session: UUID, limit: int) -> list[JobRow]:
        records = await self._executor.record_list(_PREFIX)
        now = self._clock.monotonic()
        values = {UUID(record.name.removeprefix(_PREFIX)): record for record in records}
        asker = values.get(session)
        if asker is None or (own := _decode(asker.value)).ended:
            return []
        if self._looked_at is not None and now - self._looked_at > own.lease / 2:
            self._watched.clear()
        self._looked_at = now
        self._watched = {key: seen for key, seen in self._watched.items() if key in values}
        rows: list[JobRow] = []
        for key, record in values.items():
            value = _decode(record.value)
            if not value.ended and not (key != session and self._stood_still(key, record, value)):
                continue
            if not value.ended and not await self._end(record):
                continue
            room = limit - len(rows)
            if room <= 0:
                break
            held = await self._executor.held(key, None, room)
            rows += held
            if not held:
                await self._delete(key)
        return rows + await self._orphans(set(values), limit - len(rows))

    async def _orphans(self, known: set[UUID], room: int) -> list[JobRow]:
        """Jobs that a late fetch claimed for a session whose record is gone already."""
        rows: list[JobRow] = []
        alive = set(known)
        async for row in listing.rows(self._executor, ListFilter(states=_RUNNING)):
            if len(rows) >= room:
                break
            if row.claim is None or row.claim.session in alive:
                continue
            if await self.is_open(row.claim.session):  # opened since the records were read
                alive.add(row.claim.session)
            else:
                rows.append(row)
        return rows

    def _stood_still(self, session: UUID, record: Record, value: _Value) -> bool:
        now = self._clock.monotonic()
        seen = self._watched.get(session)
        if seen is None or seen.version != record.version:
            self._watched[session] = _Watched(record.version, now)
            return False
        return now - seen.since > value.lease

    async def _end(self, record: Record) -> bool:
        """Put "ended" if the version is still the one that was seen."""
        value = _decode(record.value)
        if value.ended:
            return True
        put = await self._executor.record_put(
            record.name,
            _encode(msgspec.structs.replace(value, ended=True)),
            record.version,
            new_token(),
        )
        return put.done

    async def _delete(self, session: UUID) -> bool:
        """Forget an ended session that holds nothing."""
        record = await self._executor.record_get(_name(session))
        if record is None:
            return True
        put = await self._executor.record_put(record.name, None, record.version, new_token())
        return put.done
