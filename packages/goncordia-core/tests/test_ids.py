"""Job ids: UUIDv7, strictly monotonic whatever the clock does."""

from __future__ import annotations

import random
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from goncordia.clock import SystemClock
from goncordia.gontest import MockClock
from goncordia.ids import JobIds, id_time, new_session_id, new_token

START = datetime(2026, 1, 1, 12, 30, 15, 123_456, tzinfo=UTC)


def test_they_are_uuid_version_7() -> None:
    ids = JobIds(SystemClock())
    for job_id in (ids() for _ in range(1000)):
        assert job_id.version == 7
        assert job_id.variant == uuid.RFC_4122


def test_they_carry_the_clocks_time_to_the_millisecond() -> None:
    ids = JobIds(MockClock(START))
    assert id_time(ids()) == START.replace(microsecond=123_000)


async def test_later_ids_are_greater_as_numbers_bytes_and_text() -> None:
    clock = MockClock(START)
    ids = JobIds(clock)
    made = []
    for step in (0, 0, 0.0001, 0.001, 0, 5, 0, 86400):
        await clock.advance(step)
        made.append(ids())
    assert [job_id.int for job_id in made] == sorted(job_id.int for job_id in made)
    assert [job_id.bytes for job_id in made] == sorted(job_id.bytes for job_id in made)
    assert [str(job_id) for job_id in made] == sorted(str(job_id) for job_id in made)
    assert len(set(made)) == len(made)


def test_they_go_on_when_the_clock_steps_back() -> None:
    clock = MockClock(START)
    ids = JobIds(clock)
    before = ids()
    clock.set(START - timedelta(hours=1))
    after = [ids() for _ in range(100)]
    assert [before, *after] == sorted({before, *after})
    assert id_time(after[-1]) == id_time(before)
    clock.set(START + timedelta(hours=1))
    assert id_time(ids()) == id_time(before) + timedelta(hours=1)


def test_a_full_counter_borrows_the_next_millisecond() -> None:
    ids = JobIds(MockClock(START), lambda bits: (1 << bits) - 1 if bits > 32 else 1 << 73)
    first, second = ids(), ids()
    assert second > first
    assert id_time(second) - id_time(first) == timedelta(milliseconds=1)
    assert second.version == 7


def test_two_sources_do_not_meet() -> None:
    clock = MockClock(START)
    one, two = JobIds(clock), JobIds(clock)
    assert not {one() for _ in range(1000)} & {two() for _ in range(1000)}


def test_the_same_random_bits_give_the_same_ids() -> None:
    def make() -> list[uuid.UUID]:
        ids = JobIds(MockClock(START), random.Random(7).getrandbits)
        return [ids() for _ in range(10)]

    assert make() == make()


def test_threads_share_a_source() -> None:
    ids = JobIds(SystemClock())
    with ThreadPoolExecutor(8) as threads:
        made = [
            job_id
            for part in threads.map(lambda _: [ids() for _ in range(500)], range(8))
            for job_id in part
        ]
    assert len(set(made)) == 4000


async def test_many_at_once_are_as_good_as_one_by_one() -> None:
    clock = MockClock(START)
    ids = JobIds(clock)
    made = [ids(), *ids.take(500), ids()]
    assert ids.take(0) == []
    clock.set(START - timedelta(hours=1))
    made += ids.take(3)
    clock.set(START + timedelta(hours=1))
    made += ids.take(3)
    assert made == sorted(set(made))
    assert len(made) == 508
    assert {job_id.version for job_id in made} == {7}
    assert id_time(made[-1]) - id_time(made[0]) == timedelta(hours=1)
    one, two = (JobIds(MockClock(START), random.Random(3).getrandbits) for _ in range(2))
    assert one.take(5) == two.take(5)


def test_session_ids_are_random() -> None:
    assert len({new_session_id() for _ in range(100)}) == 100


def test_tokens_are_sixteen_random_bytes() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert {len(token) for token in tokens} == {16}
