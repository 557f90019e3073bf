"""Buckets that all pools share: records, changed by compare-and-swap.

The buckets of one rate are spread over a few records by a hash of their key. Each write leaves out
the buckets that are full again, so that a record holds only keys that were used lately; where it
holds so many that no more fit, new keys wait. Time is the backend's. When an answer is not known,
the tokens may be lost; none is ever taken twice.
"""

from __future__ import annotations

import hashlib
import logging
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from goncordia.clock import Clock
from goncordia.driver import BaseExecutor
from goncordia.engine.buckets import Bucket, Rule
from goncordia.engine.calls import Calls
from goncordia.ids import new_token

__all__ = ["MOST_KEYS", "Grant", "SharedBuckets"]

_logger = logging.getLogger("goncordia.engine")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SHARDS: Final = 1024
_TRIES: Final = 8
_PAUSE: Final = 0.01
_FRESH: Final = 60.0
"""Seconds for which the difference between two clocks is taken for the same."""

_SLOW: Final = 0.5
"""Seconds in which an answer says too little about the difference to be kept."""

MOST_KEYS: Final = 2600
"""In one record, of 25 bytes each at most: a record may have 64 KiB."""

_CROWDED: Final = 60.0
"""Seconds after which a key comes again that found no room, at most."""

_QUIET: Final = 3600.0
"""Seconds for which it is not said again that there is no room."""

_decode: Final = msgspec.msgpack.Decoder(dict[bytes, Bucket]).decode


class Grant(msgspec.Struct, frozen=True):
    """What was given.

    Attributes:
        tokens: how many.
        base: to be handed in with what is given back.
        wait: seconds until there is more, where it was less than asked.
        lasts: for how many seconds each may be kept for its use.
    """

    tokens: int
    base: float
    wait: float
    lasts: tuple[float, ...] = ()


class SharedBuckets:
    """The buckets of one rate.

    Args:
        executor: where the records are.
        calls: how to call it.
        clock: to go on from the backend's time.
        rng: for jitter between pools.
        name: of the rate, the same in all pools.
        rule: the rate.
    """

    def __init__(
        self,
        executor: BaseExecutor,
        calls: Calls,
        clock: Clock,
        rng: random.Random,
        name: str,
        rule: Rule,
    ) -> None:
        self._executor = executor
        self._calls = calls
        self._clock = clock
        self._rng = rng
        self._prefix = f"rate/{hashlib.blake2b(name.encode(), digest_size=12).hexdigest()}/"
        self._name = name
        self._rule = rule
        self._offset = 0.0
        self._offset_until = float("-inf")
        self._quiet_until = float("-inf")

    async def take(self, wanted: Mapping[str, int]) -> dict[str, Grant]:
        """Take up to so many tokens for each key.

        Raises:
            DriverError: the backend failed; what was taken is lost.
        """
        shards: dict[str, dict[str, int]] = {}
        for key, tokens in wanted.items():
            shards.setdefault(self._record(key), {})[key] = tokens
        granted: dict[str, Grant] = {}
        for record, keys in shards.items():
            granted |= await self._take(record, keys)
        return granted

    async def give_back(self, key: str, tokens: int, base: float) -> None:
        """Return tokens that were not used.

        Raises:
            DriverError: the backend failed; they are lost.
        """
        record, digest = self._record(key), _digest(key)
        for _ in range(_TRIES):
            buckets, version = await self._read(record)
            if (bucket := buckets.get(digest)) is None:
                return  # it is full
            self._rule.give_back(bucket, await self._now(), tokens, base)
            if await self._write(record, buckets, version):
                return
            await self._clock.sleep(_PAUSE * self._rng.random())

    async def _take(self, record: str, wanted: Mapping[str, int]) -> dict[str, Grant]:
        rule = self._rule
        for _ in range(_TRIES):
            buckets, version = await self._read(record)
            now = await self._now()
            buckets = {key: one for key, one in buckets.items() if not rule.is_full(one, now)}
            granted: dict[str, Grant] = {}
            for key, tokens in wanted.items():
                digest = _digest(key)
                if (bucket := buckets.get(digest)) is None:
                    if len(buckets) >= MOST_KEYS:
                        granted[key] = self._no_room()
                        continue
                    bucket = buckets[digest] = Bucket()
                number = min(tokens, rule.free(bucket, now))
                base = rule.take(bucket, now, number) if number else 0.0
                lasts = tuple(rule.lasts(base, index, now) for index in range(number))
                granted[key] = Grant(number, base, rule.wait(bucket, now), lasts)
            if not any(grant.tokens for grant in granted.values()):
                return granted
            if await self._write(record, buckets, version):
                return granted
            await self._clock.sleep(_PAUSE * self._rng.random())
        # Others were quicker each time. Their turn brings it forward; ours comes.
        return {key: Grant(0, 0.0, _PAUSE * (1 + self._rng.random())) for key in wanted}

    def _no_room(self) -> Grant:
        if self._clock.monotonic() >= self._quiet_until:
            self._quiet_until = self._clock.monotonic() + _QUIET
            _logger.warning(
                "rate limit %s: there is no room for more keys (about %d fit); "
                "jobs of others wait until some keys have all their tokens again",
                self._name,
                _SHARDS * MOST_KEYS,
            )
        return Grant(0, 0.0, min(_CROWDED, self._rule.per))

    async def _read(self, record: str) -> tuple[dict[bytes, Bucket], int]:
        found = await self._calls.once(self._executor.record_get(record))
        return ({}, 0) if found is None else (_decode(found.value), found.version)

    async def _write(self, record: str, buckets: dict[bytes, Bucket], version: int) -> bool:
        value = msgspec.msgpack.encode(buckets)
        put = self._executor.record_put(record, value, version, new_token())
        return (await self._calls.once(put)).done

    async def _now(self) -> float:
        """The backend's time, in seconds since 1970."""
        before = self._clock.monotonic()
        if before < self._offset_until:
            return self._offset + before
        now = await self._calls.once(self._executor.now())
        after = self._clock.monotonic()
        # As if the answer had come at once: behind at most, so that no token comes too early.
        self._offset = (now - _EPOCH) / timedelta(seconds=1) - after
        self._offset_until = after + (_FRESH if after - before < _SLOW else 0.0)
        return self._offset + after

    def _record(self, key: str) -> str:
        return f"{self._prefix}{int.from_bytes(_digest(key)[:2]) % _SHARDS}"


def _digest(key: str) -> bytes:
    return hashlib.blake2b(key.encode(errors="surrogatepass"), digest_size=8).digest()
