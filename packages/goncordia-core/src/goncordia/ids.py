"""Job and session ids.

Job ids are UUIDv7: the first 48 bits are the time in milliseconds, so ids sort by age. Within one
process they are strictly monotonic, also within a millisecond and when the clock steps back.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID, SafeUUID

from goncordia.clock import Clock

__all__ = ["JobIds", "id_at", "id_time", "new_session_id", "new_token"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_VERSION: Final = 7 << 76
_VARIANT: Final = 2 << 62
# rand_a (12 bits) and rand_b (62 bits) together are one 74-bit counter, started at random.
_COUNTER_BITS: Final = 74
_LOW: Final = (1 << 62) - 1
_UNKNOWN: Final = SafeUUID.unknown
_new: Final = object.__new__
_set: Final = object.__setattr__


class JobIds:
    """A source of monotonic UUIDv7; calls from several threads are safe."""

    def __init__(self, clock: Clock, random_bits: Callable[[int], int] = secrets.randbits) -> None:
        self._clock = clock
        self._random_bits = random_bits
        self._lock = threading.Lock()
        self._millisecond = 0
        self._counter = 0

    def __call__(self) -> UUID:
        """The next id, greater than every one before it."""
        now = (self._clock.now() - _EPOCH) // _MILLISECOND
        with self._lock:
            if now > self._millisecond:
                self._begin(now)
            else:
                self._counter += 1 + self._random_bits(32)
                if self._counter >> _COUNTER_BITS:
                    self._begin(self._millisecond + 1)
            return _uuid(self._millisecond, self._counter)

    def take(self, count: int) -> list[UUID]:
        """The next ids, in order: as many calls would give, for a fraction of their cost."""
        now = (self._clock.now() - _EPOCH) // _MILLISECOND
        bits = self._random_bits(32 * count).to_bytes(4 * count, "little")
        made: list[UUID] = []
        with self._lock:
            if now > self._millisecond:
                self._begin(now)
            for step in memoryview(bits).cast("I"):
                self._counter += 1 + step
                if self._counter >> _COUNTER_BITS:
                    self._begin(self._millisecond + 1)
                made.append(_uuid(self._millisecond, self._counter))
        return made

    def _begin(self, millisecond: int) -> None:
        self._millisecond = millisecond
        # The top bit stays free, so that counting on within a millisecond has room.
        self._counter = self._random_bits(_COUNTER_BITS - 1)


def _uuid(millisecond: int, counter: int) -> UUID:
    number = millisecond << 80 | _VERSION | counter >> 62 << 64 | _VARIANT | counter & _LOW
    # As UUID(int=number) does, whose checks of what is known cost twice as much as all else.
    made = _new(UUID)
    _set(made, "int", number)
    _set(made, "is_safe", _UNKNOWN)
    return made


def id_at(when: datetime, what: bytes) -> UUID:
    """The UUIDv7 of a time whose rest is not random but a hash: the same for the same ``what``."""
    rest = int.from_bytes(hashlib.sha256(what).digest()) >> 256 - _COUNTER_BITS
    millisecond = (when - _EPOCH) // _MILLISECOND
    return UUID(int=millisecond << 80 | _VERSION | rest >> 62 << 64 | _VARIANT | rest & _LOW)


def id_time(job_id: UUID) -> datetime:
    """The time in a UUIDv7, to the millisecond."""
    return _EPOCH + (job_id.int >> 80) * _MILLISECOND


def new_session_id() -> UUID:
    """A random 128-bit id, always of the system: two pools must not have the same."""
    return UUID(int=secrets.randbits(128))


def new_token() -> bytes:
    """Sixteen random bytes that tell one put of a record from every other."""
    return secrets.token_bytes(16)
