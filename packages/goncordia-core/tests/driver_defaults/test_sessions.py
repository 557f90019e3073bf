"""Sessions as records: beats, watching, orphans, and closing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from goncordia.driver import (
    Beat,
    Change,
    Claim,
    FetchResult,
    Finish,
    JobState,
    SessionInfo,
)
from goncordia.errors import DriverUnavailableError
from goncordia.ids import new_session_id

from .pools import LEASE, Pool, live, row
from .ten import Lab


@pytest.fixture
def lab() -> Lab:
    return Lab()


# -------------------------------------------------------------------- open and beat


async def test_an_open_session_is_listed(lab: Lab) -> None:
    pool = await Pool.start(lab)
    opened = lab.clock.now()
    await live(lab, 10, pool)
    assert await lab.ten.session_list() == [
        SessionInfo(pool.session, "w", open=True, opened_at=opened, lease=LEASE)
    ]


async def test_opening_again_changes_nothing(lab: Lab) -> None:
    pool = await Pool.start(lab)
    before = await lab.ten.session_list()
    await lab.another().session_open(pool.session, "thief", 99)
    assert await lab.ten.session_list() == before
    assert await pool.beat()


async def test_an_open_whose_answer_was_lost_has_happened(lab: Lab) -> None:
    pool = Pool(lab)
    pool.ten.faults["record_put"] = ["after"]
    with pytest.raises(DriverUnavailableError):
        await pool.ten.session_open(pool.session, "w", LEASE)
    await pool.ten.session_open(pool.session, "w", LEASE)
    assert await pool.beat()
    assert await pool.beat()


async def test_a_beat_never_creates_a_session(lab: Lab) -> None:
    assert await lab.ten.session_beat(new_session_id(), LEASE) == Beat(held=False)
    assert await lab.ten.session_list() == []


async def test_a_beat_tells_of_requested_cancels(lab: Lab) -> None:
    pool = await Pool.start(lab)
    jobs = [lab.insert() for _ in range(3)]
    await pool.fetch()
    await lab.ten.change_many([Change(jobs[1], "cancel")])
    beat = await pool.ten.session_beat(pool.session, LEASE)
    assert [claim.job_id for claim in beat.cancels] == [jobs[1]]


async def test_a_beat_carries_the_lease(lab: Lab) -> None:
    pool = await Pool.start(lab)
    await pool.ten.session_beat(pool.session, 99)
    assert (await lab.ten.session_list())[0].lease == 99


@pytest.mark.parametrize("fault", ["before", "after"])
async def test_a_beat_is_repeated_after_an_unknown_outcome(lab: Lab, fault: Any) -> None:
    pool = await Pool.start(lab)
    for _ in range(3):
        pool.ten.faults["record_put"] = [fault]
        with pytest.raises(DriverUnavailableError):
            await pool.beat()
        assert await pool.beat()
        assert await pool.beat()


async def test_the_repeat_of_an_old_beat_alone_does_not_renew(lab: Lab) -> None:
    """The first was applied long ago: repeating it changes nothing that a watcher could see."""
    pool, watcher = await Pool.start(lab), await Pool.start(lab)
    pool.ten.faults["record_put"] = ["after"]
    with pytest.raises(DriverUnavailableError):
        await pool.beat()
    name = f"session/{pool.session}"
    before = lab.store.records.get(name)
    assert before is not None
    await live(lab, 20, watcher)
    assert await pool.beat()
    after = lab.store.records.get(name)
    assert after is not None
    assert after.version != before.version


async def test_a_beat_that_arrives_late_neither_revives_nor_disturbs(lab: Lab) -> None:
    pool, watcher = await Pool.start(lab), await Pool.start(lab)
    pool.ten.faults["record_put"] = ["late"]
    with pytest.raises(DriverUnavailableError):
        await pool.beat()
    assert await pool.beat()
    pool.ten.deliver()
    assert await pool.beat()
    pool.ten.faults["record_put"] = ["late"]
    with pytest.raises(DriverUnavailableError):
        await pool.beat()
    await live(lab, LEASE + 20, watcher)
    assert [info.id for info in await lab.ten.session_list()] == [watcher.session]
    pool.ten.deliver()
    assert not await pool.beat()
    assert [info.id for info in await lab.ten.session_list()] == [watcher.session]


async def test_a_session_may_be_beaten_through_two_executors(lab: Lab) -> None:
    """As by a heartbeater with a connection of its own, and by the pool itself."""
    pool = await Pool.start(lab)
    other = lab.another()
    for _ in range(3):
        assert (await other.session_beat(pool.session, LEASE)).held
        assert (await other.session_beat(pool.session, LEASE)).held
        assert await pool.beat()
    await pool.ten.session_close(pool.session)
    assert not (await other.session_beat(pool.session, LEASE)).held
    assert not await pool.beat()


# -------------------------------------------------------------------- fetching under a session


async def test_exchange_is_lost_without_an_open_session(lab: Lab) -> None:
    job_id = lab.insert()
    pool = Pool(lab)
    lost = FetchResult(jobs=[], lost=True)
    assert await pool.fetch() == lost
    await pool.ten.session_open(pool.session, "w", LEASE)
    claim = await pool.claim()
    await pool.ten.session_close(pool.session)
    outcomes, result = await pool.ten.exchange([Finish(claim, "complete")], pool.request())
    assert ([outcome.status for outcome in outcomes], result) == (["ALREADY"], lost)
    assert row(lab, job_id).state is JobState.AVAILABLE


async def test_exchange_finishes_then_fetches(lab: Lab) -> None:
    pool = await Pool.start(lab)
    first, second = (lab.insert(group="g", group_limit=1) for _ in range(2))
    claim = await pool.claim()
    assert claim.job_id == first
    outcomes, result = await pool.ten.exchange([Finish(claim, "complete")], pool.request())
    assert [outcome.status for outcome in outcomes] == ["DONE"]
    assert result is not None
    assert [each.id for each in result.jobs] == [second]
    stale = Claim(second, pool.session, 99)
    outcomes, nothing = await pool.ten.exchange([Finish(stale, "complete")], None)
    assert ([outcome.status for outcome in outcomes], nothing) == (["STALE"], None)


# -------------------------------------------------------------------- expire


async def test_a_silent_session_is_ended_after_a_lease_and_its_jobs_are_given(lab: Lab) -> None:
    dead, watcher = await Pool.start(lab), await Pool.start(lab)
    job_id = lab.insert()
    claim = await dead.claim()
    await watcher.expire()
    assert await live(lab, LEASE, watcher) == []
    assert await live(lab, 10, watcher) == [job_id]
    assert [(info.id, info.open) for info in await lab.ten.session_list()] == sorted(
        [(dead.session, False), (watcher.session, True)]
    )
    assert not await dead.beat()
    assert await dead.fetch() == FetchResult(jobs=[], lost=True)
    assert await watcher.expire() == [job_id], "again, until it is finished"
    assert await dead.ten.finish_many([Finish(claim, "complete")]) != []
    assert await watcher.expire() == []
    assert [info.id for info in await lab.ten.session_list()] == [watcher.session]


async def test_a_session_that_beats_is_never_ended(lab: Lab) -> None:
    pools = [await Pool.start(lab) for _ in range(3)]
    await live(lab, 5 * LEASE, *pools)
    assert all(info.open for info in await lab.ten.session_list())
    assert len(await lab.ten.session_list()) == 3


async def test_expire_is_bounded_and_gives_the_same_again(lab: Lab) -> None:
    dead, watcher = await Pool.start(lab), await Pool.start(lab)
    also_dead = await Pool.start(lab)
    for pool in (dead, also_dead):
        for _ in range(3):
            lab.insert()
        await pool.fetch(3)
    await live(lab, LEASE + 20, watcher)
    everything = await watcher.expire()
    assert len(everything) == 6
    assert await watcher.expire(4) == everything[:4]
    assert await watcher.expire() == everything


@pytest.mark.parametrize("how", ["unknown", "closed", "ended"])
async def test_expire_does_nothing_for_a_session_that_is_not_open(lab: Lab, how: str) -> None:
    dead, watcher, asker = [await Pool.start(lab) for _ in range(3)]
    lab.insert()
    await dead.claim()
    if how == "unknown":
        asker = Pool(lab)
        await live(lab, LEASE + 20, watcher)
    elif how == "closed":
        await live(lab, LEASE + 20, watcher, asker)
        await asker.ten.session_close(asker.session)
    else:
        await live(lab, LEASE + 20, watcher)
    assert await asker.expire() == []
    assert len(await watcher.expire()) == 1


async def test_two_watchers_do_not_get_in_each_others_way(lab: Lab) -> None:
    dead, first, second = [await Pool.start(lab) for _ in range(3)]
    job_id = lab.insert()
    await dead.claim()
    rescued: list[list[UUID]] = []
    for _ in range(5):
        await live(lab, 10, first, second, watch=False)
        rescued = [await first.expire(), await second.expire()]
    assert rescued == [[job_id], [job_id]]


async def test_a_beat_between_the_look_and_the_end_saves_the_session(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, watcher = await Pool.start(lab), await Pool.start(lab)
    await watcher.expire()
    await live(lab, LEASE, watcher)
    await live(lab, 5, watcher, watch=False)
    list_records = watcher.ten.record_list

    async def beaten_meanwhile(prefix: str) -> Any:
        records = await list_records(prefix)
        assert await late.beat()
        return records

    monkeypatch.setattr(watcher.ten, "record_list", beaten_meanwhile)
    assert await watcher.expire() == []
    assert await late.beat()


# -------------------------------------------------------------------- orphans and closing


async def test_a_fetch_that_arrives_after_the_close_is_rescued(lab: Lab) -> None:
    """The zombie: its session's record is gone before its claims exist."""
    gone, watcher = await Pool.start(lab), await Pool.start(lab)
    job_id = lab.insert()
    gone.ten.faults["fetch"] = ["late"]
    with pytest.raises(DriverUnavailableError):
        await gone.fetch()
    await gone.ten.session_close(gone.session)
    gone.ten.deliver()
    assert row(lab, job_id).state is JobState.RUNNING
    assert await watcher.expire() == [job_id]
    assert await watcher.expire(1) == [job_id]
    claim = row(lab, job_id).claim
    assert claim is not None
    rescue = Finish(claim, "release", rescue=True)
    assert (await watcher.ten.finish_many([rescue]))[0].status == "DONE"
    assert await watcher.expire() == []
    assert row(lab, job_id).attempt == 0


async def test_claims_of_a_session_opened_meanwhile_are_no_orphans(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher, late = await Pool.start(lab), Pool(lab)
    lab.insert()
    list_records = watcher.ten.record_list

    async def before_it_opened(prefix: str) -> Any:
        records = await list_records(prefix)
        await late.ten.session_open(late.session, "w", LEASE)
        await late.fetch()
        return records

    monkeypatch.setattr(watcher.ten, "record_list", before_it_opened)
    assert await watcher.expire() == []


async def test_closing_releases_what_is_held_without_an_attempt(lab: Lab) -> None:
    pool = await Pool.start(lab)
    jobs = [lab.insert() for _ in range(8)]
    await pool.fetch()
    await lab.ten.change_many([Change(jobs[3], "cancel")])
    await lab.clock.advance(5)
    await pool.ten.session_close(pool.session)
    for job_id in jobs:
        got = row(lab, job_id)
        cancelled = job_id == jobs[3]
        assert got.state is (JobState.CANCELLED if cancelled else JobState.AVAILABLE)
        assert (got.attempt, got.run_at) == (0, got.created_at)
    assert await lab.ten.session_list() == []
    await pool.ten.session_close(pool.session)
    assert not await pool.beat()


@pytest.mark.parametrize("fault", ["before", "after"])
@pytest.mark.parametrize("method", ["record_get", "record_put", "held", "finish_many"])
@pytest.mark.parametrize("call", [0, 1])
async def test_a_close_can_be_repeated_until_it_is_answered(
    lab: Lab, method: str, fault: Any, call: int
) -> None:
    pool = await Pool.start(lab)
    jobs = [lab.insert() for _ in range(5)]
    await pool.fetch()
    no_fault: Any = ""
    pool.ten.faults[method] = [*[no_fault] * call, fault]
    with pytest.raises(DriverUnavailableError):
        await pool.ten.session_close(pool.session)
    await pool.ten.session_close(pool.session)
    assert {row(lab, job_id).state for job_id in jobs} == {JobState.AVAILABLE}
    assert await lab.ten.session_list() == []


async def test_a_close_that_meets_a_beat_still_releases_everything(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record changed between the look and the end: look again, and leave nothing held."""
    pool = await Pool.start(lab)
    job_id = lab.insert()
    await pool.claim()
    heartbeater = lab.another()
    get = pool.ten.record_get
    beats = [True]

    async def beaten_meanwhile(name: str) -> Any:
        record = await get(name)
        if beats:
            beats.pop()
            assert (await heartbeater.session_beat(pool.session, LEASE)).held
        return record

    monkeypatch.setattr(pool.ten, "record_get", beaten_meanwhile)
    await pool.ten.session_close(pool.session)
    assert row(lab, job_id).state is JobState.AVAILABLE
    assert await lab.ten.session_list() == []
