"""Bugs in limits: tokens from nowhere, slots that leak."""

from __future__ import annotations

from typing import Any

from goncordia.engine.buckets import Bucket, Rule
from goncordia.engine.keyed import KeySlots
from goncordia.engine.shared_buckets import SharedBuckets
from goncordia.job import Job

from .planting import bug

__all__: list[str] = []


@bug("tokens come with time only", Rule, "free", limits=True, records=False)
def tokens_are_free(self: Rule, bucket: Bucket, now: float) -> int:
    return 100


_write = SharedBuckets._write


@bug(
    "shared tokens are taken by compare-and-swap",
    SharedBuckets,
    "_write",
    within=200,
    limits=True,
    records=False,
)
async def tokens_are_taken_twice(
    self: SharedBuckets, record: str, buckets: dict[bytes, Bucket], version: int
) -> bool:
    found = await self._calls.once(self._executor.record_get(record))
    return await _write(self, record, buckets, 0 if found is None else found.version)


@bug("no more of a key run than its limit", KeySlots, "enter", limits=True)
def slots_of_keys_are_not_counted(self: KeySlots, job: Job[Any, Any]) -> tuple[str, float]:
    return "", 0.0


@bug(
    "a slot of a key is freed at the end of its run",
    KeySlots,
    "leave",
    within=5,
    limits=True,
    kinds=(20, 10, 65, 5),
)
def slots_of_keys_leak(self: KeySlots, key: str) -> None:
    return
