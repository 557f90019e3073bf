"""Pauses in a record; counting and pruning by listing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from goncordia.driver import (
    After,
    At,
    Capabilities,
    Change,
    FetchRequest,
    FetchResult,
    Finish,
    FinishTo,
    JobRow,
    JobState,
    ListFilter,
    PruneRequest,
    QueueFetch,
    QueueState,
    QueueStats,
    UniqueHold,
    row_matches,
    unique_key_held,
)
from goncordia.driver.defaults import listing
from goncordia.errors import DriverUnavailableError, UnsupportedError
from goncordia.ids import new_session_id

from .ten import CAPABILITIES, Lab, TenExecutor

ALL_FILTERS = Capabilities(max_batch=3, list_filters=frozenset(ListFilter.__struct_fields__))
both = pytest.mark.parametrize("capabilities", [CAPABILITIES, ALL_FILTERS], ids=["bare", "filters"])
KEY = b"k" * 32


@pytest.fixture
def lab() -> Lab:
    return Lab()


async def claim(lab: Lab, *queues: str, limit: int = 1) -> list[JobRow]:
    session = new_session_id()
    wanted = tuple(QueueFetch(name, limit) for name in queues or ("default",))
    return (await lab.ten.fetch(FetchRequest(session, 1, limit, wanted))).jobs


async def finished(lab: Lab, to: FinishTo = "complete", **fields: Any) -> UUID:
    job_id = lab.insert(priority=9, **fields)
    (row,) = await claim(lab)
    assert row.claim is not None
    await lab.ten.finish_many([Finish(row.claim, to)])
    return job_id


# -------------------------------------------------------------------- pauses


async def test_paused_queues_are_left_out_of_a_fetch(lab: Lab) -> None:
    session = new_session_id()
    await lab.ten.session_open(session, "w", 30)
    stopped, going = lab.insert(queue="stopped"), lab.insert(queue="going")
    await lab.another().queue_pause("stopped")

    async def fetch(number: int, *queues: str) -> FetchResult:
        wanted = tuple(QueueFetch(name, 9) for name in queues)
        _, result = await lab.ten.exchange([], FetchRequest(session, number, 9, wanted))
        assert result is not None
        return result

    assert await fetch(1, "stopped") == FetchResult(jobs=[], paused=("stopped",))
    result = await fetch(2, "stopped", "going")
    assert ([row.id for row in result.jobs], result.paused) == ([going], ("stopped",))
    await lab.another().queue_resume("stopped")
    result = await fetch(3, "stopped", "going")
    assert ([row.id for row in result.jobs], result.paused) == ([stopped], ())


async def test_queues_are_listed_when_paused_once_or_holding_jobs(lab: Lab) -> None:
    lab.insert(queue="full")
    await finished(lab)
    for name in ("b", "a", "b"):
        await lab.ten.queue_pause(name)
    await lab.ten.queue_resume("a")
    await lab.ten.queue_resume("never paused")
    expected = [QueueState("a", False), QueueState("b", True), QueueState("full", False)]
    assert await lab.ten.queue_list() == expected


async def test_two_writers_of_pauses_lose_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, get, once = lab.another(), lab.ten.record_get, [True]

    async def another_comes_between(name: str) -> Any:
        record = await get(name)
        if once:
            once.pop()
            await other.queue_pause("theirs")
        return record

    monkeypatch.setattr(lab.ten, "record_get", another_comes_between)
    await lab.ten.queue_pause("ours")
    assert await lab.ten.queue_list() == [QueueState("ours", True), QueueState("theirs", True)]


@pytest.mark.parametrize("fault", ["before", "after"])
async def test_a_pause_can_be_repeated(lab: Lab, fault: Any) -> None:
    lab.ten.faults["record_put"] = [fault]
    with pytest.raises(DriverUnavailableError):
        await lab.ten.queue_pause("q")
    await lab.ten.queue_pause("q")
    assert await lab.ten.queue_list() == [QueueState("q", True)]


# -------------------------------------------------------------------- counts


async def mixed(lab: Lab) -> None:
    await finished(lab)
    await finished(lab, queue="default", tags=("a",))
    lab.insert(run_at=After(60))
    lab.insert(queue="mail", tags=("a", "b"))
    lab.insert(queue="mail")
    lab.insert(queue="low")
    await claim(lab, "low")
    (row,) = await claim(lab, "mail")
    assert row.claim is not None
    await lab.ten.finish_many([Finish(row.claim, "retry", After(5))])


@both
async def test_count_obeys_the_whole_filter(lab: Lab, capabilities: Capabilities) -> None:
    await mixed(lab)
    ten = lab.another(capabilities)
    assert await ten.count(ListFilter()) == 6
    assert await ten.count(ListFilter(states=frozenset({JobState.COMPLETED}))) == 2
    assert await ten.count(ListFilter(tags=frozenset({"a"}))) == 2
    assert await ten.count(ListFilter(queues=frozenset({"mail"}), kinds=frozenset({"k"}))) == 2
    assert await ten.count(ListFilter(created_until=lab.clock.now())) == 0
    assert await ten.count(ListFilter(group="g")) == 0


@both
async def test_queue_stats(lab: Lab, capabilities: Capabilities) -> None:
    due = lab.clock.now()
    await mixed(lab)
    await lab.clock.advance(1)
    assert await lab.another(capabilities).queue_stats() == [
        QueueStats("default", scheduled=1),
        QueueStats("low", running=1),
        QueueStats("mail", available=1, retryable=1, oldest_due=due),
    ]


@both
async def test_counting_stops_at_the_cap_and_says_so(
    lab: Lab, capabilities: Capabilities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "CAP", 5)
    ten = lab.another(capabilities)
    for _ in range(5):
        lab.insert()
    assert await ten.count(ListFilter()) == 5
    assert await ten.queue_stats() == [
        QueueStats("default", available=5, oldest_due=lab.clock.now())
    ]
    lab.insert()
    assert await ten.count(ListFilter()) == 5
    (stats,) = await ten.queue_stats()
    assert (stats.available, stats.exact) == (5, False)


async def test_marks_are_refused_by_name(lab: Lab) -> None:
    with pytest.raises(UnsupportedError) as caught:
        await lab.ten.mark_many([])
    assert (caught.value.driver, caught.value.capability) == ("ten", "marks")


async def test_now_is_the_clocks(lab: Lab) -> None:
    await lab.clock.advance(7)
    assert await lab.ten.now() == lab.clock.now()


# -------------------------------------------------------------------- retention


def ids_left(lab: Lab) -> set[UUID]:
    return {job.new.id for job in lab.store.jobs.values()}


@both
async def test_prune_deletes_what_ended_before_each_states_time(
    lab: Lab, capabilities: Capabilities
) -> None:
    start, ids = lab.clock.now(), {}
    ends: tuple[FinishTo, ...] = ("complete", "discard", "cancel")
    for age in (2, 1):
        for to in ends:
            ids[to, age] = await finished(lab, to)
        await lab.clock.advance(10)
    waiting = lab.insert()
    request = PruneRequest(
        completed=start + timedelta(seconds=10), discarded=start + timedelta(seconds=99)
    )
    ten = lab.another(capabilities)
    assert await ten.prune(request) == 3
    kept = {ids["complete", 1], ids["cancel", 2], ids["cancel", 1], waiting}
    assert ids_left(lab) == kept
    assert await ten.prune(request) == 0
    assert await ten.prune(PruneRequest()) == 0


@both
async def test_prune_is_bounded(lab: Lab, capabilities: Capabilities) -> None:
    for _ in range(12):
        await finished(lab)
    await lab.clock.advance(1)
    ten = lab.another(capabilities)
    request = PruneRequest(completed=lab.clock.now(), limit=5)
    assert [await ten.prune(request) for _ in range(4)] == [5, 5, 2, 0]


@both
async def test_prune_reaches_the_oldest_behind_many_newer_ones(
    lab: Lab, capabilities: Capabilities, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list gives the newest first, and what retention is after comes last."""
    monkeypatch.setattr(listing, "CAP", 5)
    old = [await finished(lab) for _ in range(3)]
    limit = lab.clock.now() + timedelta(seconds=1)
    await lab.clock.advance(2)
    young = [await finished(lab) for _ in range(20)]
    assert await lab.another(capabilities).prune(PruneRequest(completed=limit)) == 3
    assert ids_left(lab) == set(young)
    assert not set(old) & ids_left(lab)


async def test_prune_leaves_rows_that_hold_their_key(lab: Lab) -> None:
    kept = await finished(lab, unique_key=KEY, unique_hold="until_deleted")
    over = lab.clock.now() + timedelta(seconds=60)
    timed = await finished(lab, unique_key=b"t" * 32, unique_hold=At(over))
    await finished(lab, unique_key=b"f" * 32)
    await lab.clock.advance(1)
    assert await lab.ten.prune(PruneRequest(completed=lab.clock.now())) == 1
    assert ids_left(lab) == {kept, timed}
    await lab.clock.advance(59)
    assert await lab.ten.prune(PruneRequest(completed=lab.clock.now())) == 1
    assert ids_left(lab) == {kept}


async def test_what_was_retried_meanwhile_is_not_counted_as_pruned(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, other = await finished(lab), await finished(lab)
    await lab.clock.advance(1)
    change_many = lab.ten.change_many

    async def late(changes: Any) -> Any:
        await lab.another().change_many([Change(job_id, "retry")])
        await claim(lab)
        return await change_many(changes)

    monkeypatch.setattr(lab.ten, "change_many", late)
    assert await lab.ten.prune(PruneRequest(completed=lab.clock.now())) == 1
    assert ids_left(lab) == {job_id}
    assert other not in ids_left(lab)


# -------------------------------------------------------------------- the helpers for authors


def row_of(lab: Lab, ten: TenExecutor, **fields: Any) -> JobRow:
    del ten
    job = lab.store.job(lab.insert(**fields))
    assert job is not None
    return job.row(lab.clock.now())


def test_row_matches(lab: Lab) -> None:
    now = lab.clock.now()
    row = row_of(lab, lab.ten, queue="q", tags=("a", "b"), group="g", group_limit=1)
    yes = (
        ListFilter(),
        ListFilter(states=frozenset({JobState.AVAILABLE, JobState.RUNNING})),
        ListFilter(kinds=frozenset({"k"}), queues=frozenset({"q"}), group="g"),
        ListFilter(tags=frozenset({"a"})),
        ListFilter(created_from=now, created_until=now + timedelta(microseconds=1)),
    )
    no = (
        ListFilter(states=frozenset({JobState.RUNNING})),
        ListFilter(kinds=frozenset({"x"})),
        ListFilter(queues=frozenset({"x"})),
        ListFilter(tags=frozenset({"a", "c"})),
        ListFilter(group="h"),
        ListFilter(created_from=now + timedelta(microseconds=1)),
        ListFilter(created_until=now),
    )
    assert [row_matches(row, where) for where in yes] == [True] * len(yes)
    assert [row_matches(row, where) for where in no] == [False] * len(no)


@pytest.mark.parametrize(
    ("hold", "waiting", "finished_", "later"),
    [
        ("active", True, False, False),
        ("until_deleted", True, True, True),
        ("time", True, True, False),
    ],
)
async def test_unique_key_held(
    lab: Lab, hold: str, waiting: bool, finished_: bool, later: bool
) -> None:
    until = lab.clock.now() + timedelta(seconds=60)
    holds: dict[str, UniqueHold] = {
        "active": "active",
        "until_deleted": "until_deleted",
        "time": At(until),
    }
    job_id = lab.insert(unique_key=KEY, unique_hold=holds[hold])

    async def held(now: datetime) -> bool:
        (row,) = await lab.ten.get_many([job_id])
        assert row is not None
        return unique_key_held(row, now)

    assert await held(lab.clock.now()) is waiting
    (row,) = await claim(lab)
    assert row.claim is not None
    assert await held(lab.clock.now()) is waiting
    await lab.ten.finish_many([Finish(row.claim, "complete")])
    assert await held(lab.clock.now()) is finished_
    assert await held(until) is later


def test_a_row_without_a_key_holds_none(lab: Lab) -> None:
    row = row_of(lab, lab.ten, unique_hold="until_deleted")
    assert not unique_key_held(row, lab.clock.now())
