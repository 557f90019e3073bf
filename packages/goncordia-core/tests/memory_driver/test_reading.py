"""Lists, counts, statistics, retention and records."""

from __future__ import annotations

import random
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from goncordia.driver import (
    After,
    At,
    JobState,
    ListFilter,
    PruneRequest,
    PutResult,
    QueueState,
    QueueStats,
    Record,
)
from goncordia.errors import InvalidCursorError
from goncordia.memory.records import Records

from .box import START, Box, seconds

KEY = b"k" * 32
ALL = ListFilter()


@pytest.fixture
def box() -> Box:
    return Box()


def pages(box: Box, where: ListFilter, limit: int) -> Iterator[list[UUID]]:
    page = None
    while True:
        got = box.store.list_jobs(where, page, limit, box.now)
        yield [row.id for row in got.jobs]
        page = got.next
        if page is None:
            return


# -------------------------------------------------------------------- list and count


def test_get_many_follows_the_ids(box: Box) -> None:
    a, b = box.insert(), box.insert()
    rows = box.store.get_many([b, uuid4(), a, b], box.now)
    assert [row and row.id for row in rows] == [b, None, a, b]


def test_list_gives_the_newest_id_first_page_by_page(box: Box) -> None:
    new = [box.job() for _ in range(7)]
    random.Random(1).shuffle(new)
    box.store.insert_many(new, box.now)
    ids = sorted((job.id for job in new), reverse=True)
    assert list(pages(box, ALL, 3)) == [ids[:3], ids[3:6], ids[6:]]
    assert list(pages(box, ALL, 7)) == [ids]
    assert list(pages(box, ListFilter(kinds=frozenset({"x"})), 3)) == [[]]


def test_pages_stay_in_step_when_jobs_come_and_go(box: Box) -> None:
    ids = [box.insert() for _ in range(6)][::-1]
    first = box.store.list_jobs(ALL, None, 2, box.now)
    box.insert()
    box.change(ids[1], "delete")
    box.change(ids[2], "delete")
    second = box.store.list_jobs(ALL, first.next, 2, box.now)
    assert [row.id for row in second.jobs] == ids[3:5]


@pytest.mark.parametrize("page", [b"", b"x", b"x" * 17])
def test_a_page_that_was_never_given_is_refused(box: Box, page: bytes) -> None:
    with pytest.raises(InvalidCursorError):
        box.store.list_jobs(ALL, page, 2, box.now)


@pytest.fixture
def mixed(box: Box) -> dict[str, UUID]:
    """One job in each state, and some with other marks."""
    jobs = {"completed": box.insert()}
    box.finish(box.claim(), "complete")
    jobs["discarded"] = box.insert(kind="send")
    box.finish(box.claim(), "discard")
    jobs["retryable"] = box.insert(tags=("a", "b"))
    box.finish(box.claim(), "retry", After(60))
    jobs["running"] = box.insert(queue="mail", tags=("a",))
    box.fetch("mail")
    jobs["cancelled"] = box.insert(group="g", group_limit=1)
    box.change(jobs["cancelled"], "cancel")
    box.tick(10)
    jobs["scheduled"] = box.insert(queue="mail", run_at=After(60))
    jobs["available"] = box.insert(group="g", group_limit=1)
    return jobs


def some(*states: str) -> frozenset[JobState]:
    return frozenset(map(JobState, states))


@pytest.mark.parametrize(
    ("where", "names"),
    [
        *((ListFilter(states=some(state)), state) for state in JobState),
        (ListFilter(states=some("running", "retryable")), "running retryable"),
        (ListFilter(kinds=frozenset({"send", "x"})), "discarded"),
        (ListFilter(queues=frozenset({"mail"})), "running scheduled"),
        (ListFilter(queues=frozenset({"mail"}), states=some("running")), "running"),
        (ListFilter(tags=frozenset({"a"})), "running retryable"),
        (ListFilter(tags=frozenset({"a", "b"})), "retryable"),
        (ListFilter(group="g"), "cancelled available"),
        (ListFilter(created_from=START + seconds(10)), "scheduled available"),
        (
            ListFilter(created_until=START + seconds(10), queues=frozenset({"mail"})),
            "running",
        ),
        (ListFilter(created_from=START, created_until=START), ""),
    ],
)
def test_filters(box: Box, mixed: dict[str, UUID], where: ListFilter, names: str) -> None:
    expected = sorted((mixed[name] for name in names.split()), reverse=True)
    assert [row.id for row in box.store.list_jobs(where, None, 99, box.now).jobs] == expected
    assert box.store.count(where, box.now) == len(expected)


def test_states_follow_time(box: Box, mixed: dict[str, UUID]) -> None:
    box.tick(60)
    waiting = box.store.list_jobs(ListFilter(states=some("available")), None, 99, box.now).jobs
    assert {row.id for row in waiting} == {
        mixed["available"],
        mixed["scheduled"],
        mixed["retryable"],
    }


# -------------------------------------------------------------------- queues


@pytest.mark.usefixtures("mixed")
def test_queue_stats_count_unfinished_jobs(box: Box) -> None:
    assert box.store.queue_stats(box.now) == [
        QueueStats("default", available=1, retryable=1, oldest_due=START + seconds(10)),
        QueueStats("mail", scheduled=1, running=1),
    ]


def test_the_oldest_due_job(box: Box) -> None:
    box.insert(run_at=At(START - seconds(5)))
    box.insert(run_at=At(START - seconds(50)))
    box.insert()
    assert box.store.queue_stats(box.now) == [
        QueueStats("default", available=3, oldest_due=START - seconds(50))
    ]


def test_queues_are_listed_when_paused_once_or_holding_jobs(box: Box) -> None:
    box.insert(queue="full")
    box.insert(queue="over")
    box.finish(next(row.claim for row in box.fetch("over").jobs if row.claim), "complete")
    box.store.queue_set_paused("b", paused=True)
    box.store.queue_set_paused("a", paused=True)
    box.store.queue_set_paused("a", paused=False)
    box.store.queue_set_paused("never", paused=False)
    expected = [QueueState("a", False), QueueState("b", True), QueueState("full", False)]
    assert box.store.queue_list() == expected


# -------------------------------------------------------------------- retention


def finished(box: Box, to: str, **fields: object) -> UUID:
    job_id = box.insert(**fields)
    claim = box.claim()
    match to:
        case "complete" | "discard" | "cancel":
            box.finish(claim, to)
        case _:
            raise AssertionError(to)
    return job_id


def test_prune_deletes_what_ended_before_each_states_time(box: Box) -> None:
    ids = {}
    for age in (2, 1):
        for to in ("complete", "discard", "cancel"):
            ids[to, age] = finished(box, to)
        box.tick(10)
    waiting = box.insert()
    request = PruneRequest(completed=START + seconds(10), discarded=START + seconds(99))
    assert box.store.prune(request, box.now) == 3
    left = {row.id for row in box.store.list_jobs(ALL, None, 99, box.now).jobs}
    assert left == {ids["complete", 1], ids["cancel", 2], ids["cancel", 1], waiting}
    assert box.store.prune(request, box.now) == 0


def test_prune_is_bounded(box: Box) -> None:
    for to in ("complete", "cancel", "complete", "cancel", "complete"):
        finished(box, to)
    box.tick(1)
    request = PruneRequest(completed=box.now, cancelled=box.now, limit=2)
    assert [box.store.prune(request, box.now) for _ in range(4)] == [2, 2, 1, 0]
    assert box.store.jobs == {}


def test_prune_leaves_rows_that_hold_their_key(box: Box) -> None:
    kept = finished(box, "complete", unique_key=KEY, unique_hold="until_deleted")
    timed = finished(box, "complete", unique_key=b"t" * 32, unique_hold=At(START + seconds(60)))
    finished(box, "complete", unique_key=b"f" * 32)
    box.tick(1)
    assert box.store.prune(PruneRequest(completed=box.now), box.now) == 1
    assert {box.row(job_id).id for job_id in (kept, timed)} == {kept, timed}
    box.tick(59)
    assert box.store.prune(PruneRequest(completed=box.now), box.now) == 1
    assert box.store.prune(PruneRequest(completed=box.now), box.now) == 0
    assert box.row(kept).id == kept


def test_a_retried_job_is_not_pruned_by_its_old_end(box: Box) -> None:
    job_id = finished(box, "complete")
    box.tick(5)
    box.change(job_id, "retry")
    assert box.store.prune(PruneRequest(completed=box.now), box.now) == 0
    box.finish(box.claim(), "complete")
    assert box.store.prune(PruneRequest(completed=box.now), box.now) == 0
    box.tick(1)
    assert box.store.prune(PruneRequest(completed=box.now), box.now) == 1


# -------------------------------------------------------------------- records


def test_a_record_is_changed_by_compare_and_swap() -> None:
    records = Records()
    assert records.get("a") is None
    first = records.put("a", b"1", 0, b"token 1")
    assert first.done
    assert records.get("a") == Record("a", b"1", first.version)
    assert records.put("a", b"2", 0, b"token 2") == PutResult(False, first.version)
    second = records.put("a", b"2", first.version, b"token 2")
    assert second.done
    assert second.version != first.version
    assert records.put("a", b"3", first.version, b"token 3") == PutResult(False, second.version)
    assert records.get("a") == Record("a", b"2", second.version)


def test_the_token_of_the_last_put_is_answered_and_changes_nothing() -> None:
    records = Records()
    first = records.put("a", b"1", 0, b"token 1")
    assert records.put("a", b"1", 0, b"token 1") == first
    second = records.put("a", b"2", first.version, b"token 2")
    assert records.put("a", b"2", first.version, b"token 2") == second
    assert records.put("a", b"1", 0, b"token 1") == PutResult(False, second.version)


def test_deleting_what_is_not_there_is_done() -> None:
    records = Records()
    assert records.put("a", None, 7, b"token") == PutResult(True, 0)
    version = records.put("a", b"1", 0, b"token 1").version
    assert records.put("a", None, version + 1, b"token 2") == PutResult(False, version)
    assert records.put("a", None, version, b"token 3") == PutResult(True, 0)
    assert records.put("a", None, version, b"token 3") == PutResult(True, 0)
    assert records.get("a") is None
    assert records.put("a", b"2", version, b"token 4") == PutResult(False, 0)


def test_a_version_never_comes_again() -> None:
    records = Records()
    seen = set()
    for number in range(5):
        token = bytes([number])
        put = records.put("a", b"x", 0, b"put" + token)
        assert put.version not in seen
        seen.add(put.version)
        records.put("a", None, put.version, b"del" + token)


def test_records_are_listed_by_prefix_and_name() -> None:
    records = Records()
    for name in ("b/2", "a", "b/1", "c", "b"):
        records.put(name, name.encode(), 0, name.encode())
    assert [record.name for record in records.list_by("b/")] == ["b/1", "b/2"]
    assert [record.name for record in records.list_by("")] == ["a", "b", "b/1", "b/2", "c"]
