"""Buckets by key in the records that all pools share, where there are very many keys."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable

import msgspec
import pytest

from goncordia import RateLimit
from goncordia.engine import shared_buckets
from goncordia.engine.buckets import Bucket, Rule
from goncordia.engine.calls import Calls
from goncordia.engine.shared_buckets import MOST_KEYS, SharedBuckets
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver

DAY = 86400.0


class Rate:
    """A rate by key, two a day, in a single record."""

    def __init__(self) -> None:
        self.clock = MockClock()
        driver = MemoryDriver(clock=self.clock)
        rng = random.Random(1)
        rule = Rule(RateLimit(2, per=DAY, scope="global", key=lambda job: job.meta["key"]))
        calls = Calls(self.clock, rng, bound=15)
        self.buckets = SharedBuckets(driver.executor(), calls, self.clock, rng, "kind:work:0", rule)

    async def take(self, keys: Iterable[str]) -> dict[str, int]:
        granted = await self.buckets.take(dict.fromkeys(keys, 1))
        return {key: grant.tokens for key, grant in granted.items()}


@pytest.fixture
def rate(monkeypatch: pytest.MonkeyPatch) -> Rate:
    monkeypatch.setattr(shared_buckets, "_SHARDS", 1)
    return Rate()


def test_the_most_keys_fit_a_record() -> None:
    largest = Bucket(1.7e9, 2**31 - 1)
    full = {number.to_bytes(8): largest for number in range(MOST_KEYS)}
    assert len(msgspec.msgpack.encode(full)) <= 64 * 1024  # of a record


async def test_keys_are_spread_over_all_records() -> None:
    rate = Rate()
    records = {rate.buckets._record(f"key {n}") for n in range(20_000)}
    assert len(records) == shared_buckets._SHARDS


async def test_too_many_keys_keep_only_new_ones_waiting(
    rate: Rate, caplog: pytest.LogCaptureFixture
) -> None:
    known = [f"known {n}" for n in range(MOST_KEYS - 10)]
    assert set((await rate.take(known)).values()) == {1}
    assert not caplog.records
    new = [f"new {n}" for n in range(30)]
    taken = await rate.take([*new, *known])
    assert {key for key in known if taken[key]} == set(known)
    assert sum(taken[key] for key in new) == 10
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "rate limit kind:work:0: there is no room for more keys (about 2600 fit); "
        "jobs of others wait until some keys have all their tokens again"
    )


async def test_it_is_said_once_an_hour(rate: Rate, caplog: pytest.LogCaptureFixture) -> None:
    await rate.take(f"known {n}" for n in range(MOST_KEYS))
    for minutes in (0, 1, 30, 40):
        await rate.clock.advance(minutes * 60)
        granted = await rate.buckets.take({"new": 1})
        assert granted["new"].tokens == 0
        assert granted["new"].wait == 60
    assert len(caplog.records) == 2


async def test_there_is_room_again_with_time(rate: Rate) -> None:
    await rate.take(f"known {n}" for n in range(MOST_KEYS))
    assert await rate.take(["new"]) == {"new": 0}
    await rate.clock.advance(DAY / 2)
    assert await rate.take(["new"]) == {"new": 1}


async def test_a_lost_race_is_another_thing(
    rate: Rate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def beaten(*_: object) -> bool:
        return False

    monkeypatch.setattr(rate.buckets, "_write", beaten)
    taking = asyncio.create_task(rate.buckets.take({"key": 1}))
    await rate.clock.advance(1)
    granted = await taking
    assert granted["key"].tokens == 0
    assert granted["key"].wait < 1
    assert not caplog.records
