"""Sessions as records, for backends that keep no time of their own.

A session is the record ``session/<id>``, and a beat is a put that expects the version of the beat
before. A watcher ends a session whose version it saw unchanged for a whole lease on its own
monotonic clock, by putting "ended" in its place, upon which the owner's next beat fails for good.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

import msgspec

from goncordia.driver.defaults import listing
from goncordia.driver.defaults.steps import after_effect
from goncordia.driver.requests import Finish, ListFilter
from goncordia.driver.results import Beat, SessionInfo
from goncordia.driver.values import JobRow, JobState, Record
from goncordia.ids import new_token

if TYPE_CHECKING:
    from goncordia.clock import Clock
    from goncordia.driver.executor import BaseExecutor

__all__ = ["RecordSessions"]

_PREFIX: Final = "session/"
_PAGE: Final = 500
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
        self._looked_at = -math.inf
        self._page: bytes | None = None

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
        while True:
            own = self._own.get(session) or await self._adopt(session)
            if own is None:
                return Beat(held=False)
            if await self._renew(own, session, lease):
                break
            # It was ended, or another executor of this process has beaten it: look.
            self._own.pop(session, None)
        with after_effect():
            rows = await self._executor.held(session, None, listing.CAP)
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

    async def _renew(self, own: _Own, session: UUID, lease: float) -> bool:
        # A put that is repeated may have been applied long ago: it renews nothing, so it is only
        # cleared out of the way, and a new one follows.
        repeats = own.pending is not None
        if repeats and not await self._put(own, session, lease):
            return False
        with after_effect(repeats):
            return await self._put(own, session, lease)

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
                with after_effect():
                    await self._release_all(session)
                    if await self._delete(session):
                        return

    async def _release_all(self, session: UUID) -> None:
        batch = self._executor.capabilities.max_batch
        while rows := await self._executor.held(session, None, batch):
            await self._executor.finish_many(
                [Finish(row.claim, "release") for row in rows if row.claim]
            )

    async def list_sessions(self) -> list[SessionInfo]:
        """Every session that has a record."""
        sessions: list[SessionInfo] = []
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
        records = await self._executor.record_list(_PREFIX)
        sessions = {UUID(record.name.removeprefix(_PREFIX)): record for record in records}
        asker = sessions.get(session)
        if asker is None or _decode(asker.value).ended:
            return []
        ended = await self._end_the_silent(session, sessions)
        with after_effect(ended):
            return await self._left_behind(ended, set(sessions), limit)

    async def _left_behind(self, ended: list[UUID], known: set[UUID], limit: int) -> list[JobRow]:
        """What ended sessions, and those that nobody knows, hold."""
        rows: list[JobRow] = []
        for each in ended:
            held = await self._executor.held(each, None, limit - len(rows))
            rows += held
            if len(rows) >= limit:
                return rows
            if not held:
                await self._delete(each)
        return rows + await self._orphans(known, limit - len(rows))

    async def _end_the_silent(self, asker: UUID, sessions: dict[UUID, Record]) -> list[UUID]:
        """Watch the open sessions and end the silent ones; all that are ended now."""
        now = self._clock.monotonic()
        self._watched = {key: seen for key, seen in self._watched.items() if key in sessions}
        self._own = {key: own for key, own in self._own.items() if key in sessions}
        if self._was_out_of_touch(asker, sessions[asker], now):
            self._watched.clear()
        self._looked_at = now
        ended: list[UUID] = []
        for session, record in sessions.items():
            value = _decode(record.value)
            silent = self._silent_for(session, record, now) > value.lease
            with after_effect(ended):
                if value.ended or (silent and await self._end(record)):
                    ended.append(session)
        return ended

    def _was_out_of_touch(self, asker: UUID, own: Record, now: float) -> bool:
        """Whether the others may have been silent because nobody could reach the backend.

        So it is when our own beats, or our looks, did not come through for half a lease. One
        failed call says nothing, or who meets one in every lease would never end anybody.
        """
        half = _decode(own.value).lease / 2
        return self._silent_for(asker, own, now) > half or now - self._looked_at > half

    async def _orphans(self, known: set[UUID], room: int) -> list[JobRow]:
        """Jobs that a late fetch claimed for a session whose record is gone already.

        One page of the running jobs a call, and the next page the next time: a longer look would
        come between the looks at the sessions.
        """
        start, self._page = self._page, None  # if it is refused, the next look begins anew
        page = await self._executor.list_jobs(ListFilter(states=_RUNNING), start, _PAGE)
        rows: list[JobRow] = []
        alive = set(known)
        for row in page.jobs:
            if row.claim is None or row.claim.session in alive:
                continue
            if await self.is_open(row.claim.session):  # opened since the records were read
                alive.add(row.claim.session)
            else:
                rows.append(row)
                if len(rows) == room:
                    self._page = start
                    return rows
        self._page = page.next
        return rows

    def _silent_for(self, session: UUID, record: Record, now: float) -> float:
        """For how long we have seen the session's version unchanged."""
        seen = self._watched.get(session)
        if seen is None or seen.version != record.version:
            self._watched[session] = _Watched(record.version, now)
            return 0.0
        return now - seen.since

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
