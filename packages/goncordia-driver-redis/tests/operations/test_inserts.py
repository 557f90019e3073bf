"""Jobs alone and in batches: what is stored, what is answered, and what it costs."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from redis.exceptions import OutOfMemoryError

from goncordia.driver import After, At, Change, Finish, ListFilter, NewJob
from goncordia.errors import UnsupportedError
from goncordia_driver_redis.wire.layout import NUMBERS

Audit = Callable[[Any], None]

FULL = NUMBERS["CHUNK_SIZE"] // 16
LATER = After(50)
FIELDS: list[dict[str, Any]] = [
    {},
    {"queue": "other", "kind": "käse", "priority": -7},
    {"run_at": LATER},
    {"run_at": After(-50), "max_attempts": 3},
    {"run_at": After(1e15), "priority": 32767},
    {"tags": ("a", "b"), "meta": {"c": "d"}, "timeout": 2.5, "content": "x"},
]


def _insert(bare: Any, jobs: Sequence[NewJob]) -> list[str]:
    return [each.status for each in bare(bare.ops.insert_many(jobs))]


def _jobs(bare: Any, count: int) -> list[NewJob]:
    return [bare.job() for _ in range(count)]


# ---------------------------------------------------------------- the same either way


def test_one_by_one_and_together_are_the_same(bare: Any, audit: Audit) -> None:
    jobs = [bare.job(**fields) for fields in (*FIELDS, *FIELDS)]
    jobs.append(bare.job(run_at=At(bare.clock.now())))
    for job in jobs:
        assert _insert(bare, [job]) == ["INSERTED"]
    audit(bare)
    one_by_one = bare.dump()
    rows = bare(bare.ops.get_many([job.id for job in jobs]))
    bare.client.flushall()
    assert _insert(bare, jobs) == ["INSERTED"] * len(jobs)
    assert bare.dump() == one_by_one
    for job, row in zip(jobs, rows, strict=True):
        for name in ("id", "kind", "queue", "priority", "args", "content", "max_attempts"):
            assert getattr(row, name) == getattr(job, name)
        assert (row.tags, row.meta, row.timeout) == (job.tags, job.meta, job.timeout)


@pytest.mark.parametrize("fields", FIELDS)
def test_the_first_of_all_is_like_others(bare: Any, fields: dict[str, Any]) -> None:
    job = bare.job(**fields)
    assert _insert(bare, [job]) == ["INSERTED"]
    first = bare.dump()
    bare.client.flushall()
    bare.add(id=UUID(int=1))
    assert _insert(bare, [job]) == ["INSERTED"]
    other = bare.dump()
    key = bare.key(b"j:" + job.id.bytes)
    assert first[key] == other[key]


@pytest.mark.parametrize("count", [1, 3])
def test_a_replay_changes_nothing(bare: Any, audit: Audit, count: int) -> None:
    bare.open()
    jobs = _jobs(bare, count)
    _insert(bare, jobs)

    def is_replayed() -> None:
        before = bare.dump()
        assert _insert(bare, jobs) == ["REPLAYED"] * count
        assert bare.dump() == before

    is_replayed()
    rows = bare.claim(count)
    bare(bare.ops.listen())  # as if nobody had been told
    is_replayed()
    bare(bare.ops.finish_many([Finish(row.claim, "retry", LATER) for row in rows]))
    is_replayed()
    bare(bare.ops.change_many([Change(row.id, "retry") for row in rows]))
    bare(bare.ops.finish_many([Finish(row.claim, "complete") for row in bare.claim(count)]))
    is_replayed()
    audit(bare)
    bare(bare.ops.change_many([Change(row.id, "delete") for row in rows]))
    assert _insert(bare, jobs) == ["INSERTED"] * count
    audit(bare)


def test_some_of_a_batch_are_there(bare: Any, audit: Audit) -> None:
    jobs = _jobs(bare, 4)
    _insert(bare, jobs[1:3])
    assert _insert(bare, jobs) == ["INSERTED", "REPLAYED", "REPLAYED", "INSERTED"]
    assert bare.client.zcard(bare.key(b"l:0:p:7:default:work")) == 4
    audit(bare)


def test_only_what_comes_anew_leads_its_line(bare: Any, audit: Audit) -> None:
    """The first of a batch would be, but it is there, and runs."""
    bare.open()
    first = bare.job(run_at=After(-50))
    _insert(bare, [first, bare.job()])
    bare.claim()
    _insert(bare, [first, bare.job(run_at=After(-5))])
    audit(bare)


def test_a_batch_in_any_order_with_an_id_twice(bare: Any, audit: Audit) -> None:
    jobs = _jobs(bare, 3)
    mixed = [jobs[2], jobs[0], jobs[2], jobs[1]]
    assert _insert(bare, mixed) == ["INSERTED", "INSERTED", "REPLAYED", "INSERTED"]
    audit(bare)
    ids = [row.id for row in bare(bare.ops.list_jobs(ListFilter(), None, 10)).jobs]
    assert ids == [job.id for job in reversed(jobs)]


def test_runs_of_all_sorts(bare: Any, audit: Audit) -> None:
    """What has the same header and what has not, in turn; groups and keys among them."""
    key = {"unique_key": b"k" * 32}
    kinds = [*FIELDS, {"group": "g", "group_limit": 1}, {}, key, {}, key, {"group": "g", **key}]
    jobs = [bare.job(**fields) for fields in kinds for _ in range(2)]
    expected = [
        "DUPLICATE" if job.unique_key and job is not jobs[16] else "INSERTED" for job in jobs
    ]
    assert _insert(bare, jobs) == expected
    audit(bare)


@pytest.mark.parametrize("count", [1, 2])
def test_none_with_memory_full(bare: Any, count: int) -> None:
    jobs = _jobs(bare, count)
    bare.add()
    before = bare.dump()
    bare.client.config_set("maxmemory", 1)
    try:
        with pytest.raises(OutOfMemoryError):
            _insert(bare, jobs)
    finally:
        bare.client.config_set("maxmemory", 0)
    assert bare.dump() == before
    assert _insert(bare, jobs) == ["INSERTED"] * count


def test_more_bytes_than_go_in_one_step(bare: Any) -> None:
    large = [bare.job(args=bytes(33 << 20)) for _ in range(2)]
    with pytest.raises(
        UnsupportedError, match="at most 64 MiB of args are inserted all or nothing"
    ):
        _insert(bare, large)
    with pytest.raises(UnsupportedError):
        _insert(bare, [*_jobs(bare, 1000), *large])
    assert not bare.dump()


# ---------------------------------------------------------------- what it costs


def test_few_steps(bare: Any) -> None:
    bare.add()
    # Looks at the line, the queue and the index; writes the job, the index and the line.
    for job in (bare.job(), bare.job(run_at=LATER)):
        assert bare.commands(bare.ops.insert_many([job])) == 6
    few = bare.commands(bare.ops.insert_many(_jobs(bare, 10)))
    assert bare.commands(bare.ops.insert_many(_jobs(bare, 400))) == few


# ---------------------------------------------------------------- chunks of the index


def _sizes(bare: Any) -> list[int]:
    """The ids in each chunk, in order."""
    starts = bare.client.zrange(bare.key(b"i"), 0, -1)
    return [bare.client.strlen(bare.key(b"i:") + start) // 16 for start in starts]


def test_chunks_of_ids_in_order_are_full(bare: Any, audit: Audit) -> None:
    for _ in range(2 * FULL + 1):
        bare.add()
    assert _sizes(bare) == [FULL, FULL, 1]
    _insert(bare, _jobs(bare, 1000))
    assert _sizes(bare) == [FULL, FULL, 1, FULL, 1000 - FULL]
    _insert(bare, _jobs(bare, 24))
    assert _sizes(bare)[4:] == [FULL]
    audit(bare)


def test_the_first_batch_is_cut(bare: Any, audit: Audit) -> None:
    _insert(bare, _jobs(bare, 1000))
    assert _sizes(bare) == [FULL, 1000 - FULL]
    audit(bare)


@pytest.mark.parametrize("at_once", [1, 7])
def test_chunks_of_several_clients(bare: Any, audit: Audit, at_once: int) -> None:
    """Whose ids come nearly in order."""
    rng = random.Random(at_once)
    ids = [UUID(int=(n << 64) + rng.getrandbits(68)) for n in range(3000)]
    for start in range(0, len(ids), at_once):
        _insert(bare, [bare.job(id=each) for each in ids[start : start + at_once]])
    audit(bare)
    sizes = _sizes(bare)
    assert max(sizes) <= 2 * FULL
    assert len(sizes) <= 2 * len(ids) / FULL


def test_a_client_whose_clock_is_behind(bare: Any, audit: Audit) -> None:
    ahead = [UUID(int=(1 << 100) + n) for n in range(FULL)]
    behind = [UUID(int=(1 << 90) + n) for n in range(2 * FULL)]
    _insert(bare, [bare.job(id=each) for each in ahead])
    for each in behind:
        _insert(bare, [bare.job(id=each)])
    audit(bare)
    assert max(_sizes(bare)) <= 2 * FULL
    page = bare(bare.ops.list_jobs(ListFilter(), None, 1000))
    assert [row.id for row in page.jobs] == [*ahead[::-1], *behind[: FULL - 1000 - 1 : -1]]
