from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from goncordia.driver import After, At, Change, InsertResult, NewJob
from goncordia_sql.ops import base, insert
from goncordia_sql.states import Stored

New = Callable[..., NewJob]
KEY = bytes(range(32))


def statuses(results: list[InsertResult]) -> list[str]:
    return [result.status for result in results]


def states(bare: Any, jobs: list[NewJob]) -> list[int]:
    query = "SELECT state FROM goncordia_job WHERE id = ?"
    return [bare.value(query, job.id.bytes) for job in jobs]


def test_jobs_that_are_alike_go_in_one_statement(bare: Any, new_job: New) -> None:
    jobs = [new_job(args=b"[%d]" % n, tags=("a", "b"), meta={"k": "v"}) for n in range(1000)]
    assert statuses(bare.run(bare.ops.insert.insert_many(jobs))) == ["INSERTED"] * 1000
    assert len(bare.asked) == 1
    rows = bare.run(bare.ops.read.get_many([job.id for job in jobs]))
    assert [row.args for row in rows] == [job.args for job in jobs]
    assert {(row.tags, tuple(row.meta.items())) for row in rows} == {(("a", "b"), (("k", "v"),))}


def test_results_keep_the_order_of_the_jobs(bare: Any, new_job: New) -> None:
    jobs = [new_job(kind=f"k{n % 3}", run_at=After(n % 2)) for n in range(20)]
    results = bare.run(bare.ops.insert.insert_many(jobs))
    assert [result.id for result in results] == [job.id for job in jobs]
    assert len(bare.asked) == 6


def test_every_field_comes_back_either_way(bare: Any, new_job: New) -> None:
    """Alone, or among others that are alike."""
    fields: dict[str, Any] = {
        "kind": "ünï",
        "queue": "q",
        "priority": -7,
        "run_at": At(datetime(2027, 1, 2, 3, 4, 5, 678_901, UTC)),
        "payload_version": 3,
        "max_attempts": 4,
        "timeout": 0.1 + 0.2,
        "tags": ("x", "é"),
        "meta": {"trace": "1"},
        "group": "g",
        "group_limit": 2,
    }
    jobs = [new_job(**fields) for _ in range(2)]
    alone = new_job(**fields)
    bare.run(bare.ops.insert.insert_many(jobs))
    bare.run(bare.ops.insert.insert_many([alone]))
    for row in bare.run(bare.ops.read.get_many([job.id for job in [*jobs, alone]])):
        assert (row.kind, row.queue, row.priority) == ("ünï", "q", -7)
        assert row.run_at == datetime(2027, 1, 2, 3, 4, 5, 678_901, UTC)
        assert (row.payload_version, row.max_attempts, row.timeout) == (3, 4, 0.1 + 0.2)
        assert (row.tags, row.meta, row.group, row.group_limit) == (
            ("x", "é"), {"trace": "1"}, "g", 2,
        )  # fmt: skip
        assert row.unique_hold == "active"


def test_a_known_id_among_many(bare: Any, new_job: New) -> None:
    known = new_job()
    bare.run(bare.ops.insert.insert_many([known]))
    jobs = [new_job(), known, new_job()]
    assert statuses(bare.run(bare.ops.insert.insert_many(jobs))) == [
        "INSERTED", "REPLAYED", "INSERTED",
    ]  # fmt: skip


def test_the_same_id_twice_in_one_request(bare: Any, new_job: New) -> None:
    job = new_job()
    assert statuses(bare.run(bare.ops.insert.insert_many([job, job]))) == ["INSERTED", "REPLAYED"]


def test_a_key_is_taken_by_the_first_of_a_request(bare: Any, new_job: New) -> None:
    jobs = [new_job(unique_key=KEY), new_job(), new_job(unique_key=KEY)]
    results = bare.run(bare.ops.insert.insert_many(jobs))
    assert statuses(results) == ["INSERTED", "INSERTED", "DUPLICATE"]
    assert results[2].holder == jobs[0].id


def test_a_key_whose_time_is_over_is_taken_over(bare: Any, new_job: New) -> None:
    until = At(datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
    first, second, third = (new_job(unique_key=KEY, unique_hold=until) for _ in range(3))
    bare.run(bare.ops.insert.insert_many([first]))
    assert bare.run(bare.ops.insert.insert_many([second])) == [
        InsertResult(second.id, "DUPLICATE", first.id)
    ]
    bare.clock.advance(60)
    later = new_job(unique_key=KEY)
    assert statuses(bare.run(bare.ops.insert.insert_many([later]))) == ["INSERTED"]
    assert bare.run(bare.ops.insert.insert_many([third])) == [
        InsertResult(third.id, "DUPLICATE", later.id)
    ]


def test_a_known_id_goes_before_its_key(bare: Any, new_job: New) -> None:
    job = new_job(unique_key=KEY)
    bare.run(bare.ops.insert.insert_many([job]))
    bare.run(bare.ops.change.change_many([Change(job.id, "cancel")]))
    bare.run(bare.ops.insert.insert_many([new_job(unique_key=KEY)]))
    assert statuses(bare.run(bare.ops.insert.insert_many([job]))) == ["REPLAYED"]


def test_odd_args_go_alone_and_come_back(bare: Any, new_job: New) -> None:
    odd = [b"\x00", b'"\x00"', b"\xff\xfe", b'"' + b"x" * base._LARGE + b'"']
    jobs = [new_job(args=args) for args in [b"{}", *odd, b"{}"]]
    jobs.append(new_job(args=b"\x01\x02", content="zip"))
    assert statuses(bare.run(bare.ops.insert.insert_many(jobs))) == ["INSERTED"] * 7
    rows = bare.run(bare.ops.read.get_many([job.id for job in jobs]))
    assert [row.args for row in rows] == [job.args for job in jobs]


def test_json_is_stored_as_text_and_a_codecs_bytes_as_bytes(bare: Any, new_job: New) -> None:
    job, coded = new_job(args='{"a":"é"}'.encode()), new_job(args=b"{}", content="zip")
    bare.run(bare.ops.insert.insert_many([job, coded]))
    query = "SELECT typeof(args) || args FROM goncordia_job WHERE id = ?"
    assert bare.value(query, job.id.bytes) == 'text{"a":"é"}'
    assert bare.value(query, coded.id.bytes) == "blob{}"


def test_a_set_is_split_by_its_size(bare: Any, new_job: New, monkeypatch: Any) -> None:
    monkeypatch.setattr(insert, "LONGEST_SET", 100)
    jobs = [new_job(args=b'"%s"' % (b"x" * 38)) for _ in range(5)]
    assert statuses(bare.run(bare.ops.insert.insert_many(jobs))) == ["INSERTED"] * 5
    assert len(bare.asked) == 3


def test_nothing_to_insert(bare: Any) -> None:
    assert bare.run(bare.ops.insert.insert_many([])) == []


# ---------------------------------------------------------------- groups


def test_what_is_due_is_ready_and_what_is_not_is_later(bare: Any, new_job: New) -> None:
    jobs = [new_job(), new_job(run_at=After(0)), new_job(run_at=After(0.000_001))]
    bare.run(bare.ops.insert.insert_many(jobs))
    assert states(bare, jobs) == [Stored.READY, Stored.READY, Stored.LATER]


def test_more_than_the_group_takes_are_parked(bare: Any, new_job: New) -> None:
    jobs = [new_job(group="g", group_limit=2) for _ in range(5)]
    bare.run(bare.ops.insert.insert_many(jobs[:1]))
    bare.run(bare.ops.insert.insert_many(jobs[1:]))
    assert states(bare, jobs) == [Stored.READY] * 2 + [Stored.PARKED] * 3


def test_the_order_decides_who_is_parked_not_the_request(bare: Any, new_job: New) -> None:
    jobs = [new_job(group="g", group_limit=2) for _ in range(5)]
    bare.run(bare.ops.insert.insert_many(jobs[::-1]))
    assert states(bare, jobs) == [Stored.READY] * 2 + [Stored.PARKED] * 3


def test_who_comes_before_the_others_is_ready(bare: Any, new_job: New) -> None:
    bare.run(bare.ops.insert.insert_many([new_job(group="g", group_limit=1)]))
    first = new_job(group="g", group_limit=1, priority=1)
    scheduled = new_job(group="g", group_limit=1, run_at=After(1))
    other_kind = new_job(group="g", group_limit=1, kind="other")
    behind = new_job(group="g", group_limit=1)
    jobs = [first, scheduled, other_kind, behind]
    bare.run(bare.ops.insert.insert_many(jobs))
    assert states(bare, jobs) == [Stored.READY, Stored.LATER, Stored.READY, Stored.PARKED]
