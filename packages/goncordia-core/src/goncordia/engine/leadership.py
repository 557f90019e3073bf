"""Leadership: one of many does what is enough done once. It only saves work.

The leader's name stands in a record, which it writes anew each time. A record that nobody wrote for
a whole lease, by the watcher's own monotonic clock, belongs to a leader that is gone. Two may take
themselves for the leader for a while, when one was frozen; what leaders do must bear that.
"""

from __future__ import annotations

from typing import Final

import msgspec

from goncordia.clock import Clock
from goncordia.driver import BaseExecutor, Record
from goncordia.engine.calls import Calls
from goncordia.ids import new_session_id, new_token

__all__ = ["Leadership"]

_PREFIX: Final = "leader/"


class _Value(msgspec.Struct, frozen=True):
    """What the record holds.

    Attributes:
        owner: who leads; a random id, for names of workers may repeat.
        term: counts the changes of leaders.
    """

    owner: str
    term: int


_decode: Final = msgspec.json.Decoder(_Value).decode


class Leadership:
    """One candidate for one office.

    Args:
        executor: where the record is.
        calls: how to call it.
        clock: by which the lease is watched.
        name: of the office.
        lease: seconds without a sign of the leader after which another takes over.
    """

    def __init__(
        self,
        executor: BaseExecutor,
        calls: Calls,
        clock: Clock,
        name: str,
        *,
        lease: float,
    ) -> None:
        self._executor = executor
        self._calls = calls
        self._clock = clock
        self._owner = str(new_session_id())
        self._record = _PREFIX + name
        self._lease = lease
        self._seen: int | None = None
        self._seen_at = float("-inf")
        self.term = 0

    async def lead(self) -> bool:
        """Renew the leadership, or take it if nobody has it; whether it is ours now.

        To be asked again well within the lease.

        Raises:
            DriverError: the backend failed; take it for a no.
        """
        record = await self._calls.once(self._executor.record_get(self._record))
        if record is None:
            return await self._put(0, 1)
        value = _decode(record.value)
        if value.owner == self._owner:
            return await self._put(record.version, value.term)
        if not self._is_over(record):
            return False
        return await self._put(record.version, value.term + 1)

    async def resign(self) -> None:
        """Give the leadership back, if it is ours, so that nobody waits for the lease.

        Raises:
            DriverError: the backend failed; the lease will end it.
        """
        record = await self._calls.once(self._executor.record_get(self._record))
        if record is not None and _decode(record.value).owner == self._owner:
            put = self._executor.record_put(self._record, None, record.version, new_token())
            await self._calls.once(put)

    def _is_over(self, record: Record) -> bool:
        now = self._clock.monotonic()
        if record.version != self._seen:
            self._seen, self._seen_at = record.version, now
        return now - self._seen_at >= self._lease

    async def _put(self, expected: int, term: int) -> bool:
        value = msgspec.json.encode(_Value(self._owner, term))
        put = self._executor.record_put(self._record, value, expected, new_token())
        answer = await self._calls.once(put)
        self.term = term
        return answer.done
