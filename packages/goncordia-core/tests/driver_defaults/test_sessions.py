"""Sessions as records: beats, watching, outages, orphans, and closing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from goncordia.driver import (
    Beat,
    Change,
    Claim,
    FetchRequest,
    FetchResult,
    Finish,
    JobRow,
    JobState,
    QueueFetch,
    SessionInfo,
)
from goncordia.errors import DriverUnavailableError
from goncordia.ids import new_session_id

from .ten import Lab

LEASE = 30


@pytest.fixture
def lab() -> Lab:
    return Lab()


class Pool:
    """A pool of another process: an executor of its own and one session."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.ten = lab.another()
        self.session = new_session_id()
        self.fetches = 0

    @classmethod
    async def start(cls, lab: Lab) -> Pool:
        pool = cls(lab)
        await pool.ten.session_open(pool.session, "w", LEASE)
        return pool

    def request(self, limit: int = 100) -> FetchRequest:
        self.fetches += 1
        queues = (QueueFetch("default", limit), QueueFetch("low", limit))
        return FetchRequest(self.session, self.fetches, limit, queues)

    async def fetch(self, limit: int = 100) -> FetchResult:
        outcomes, result = await self.ten.exchange([], self.request(limit))
        assert outcomes == []
        assert result is not None
        return result

    async def claim(self) -> Claim:
        (row,) = (await self.fetch(1)).jobs
        assert row.claim is not None
        return row.claim

    async def beat(self) -> bool:
        return (await self.ten.session_beat(self.session, LEASE)).held

    async def expire(self, limit: int = 100) -> list[UUID]:
        return [row.id for row in await self.ten.expire(self.session, limit)]


async def live(lab: Lab, seconds: float, *pools: Pool, watch: bool = True) -> list[UUID]:
    """Time passes; these pools beat every five seconds, the first looks every ten."""
    rescued: list[UUID] = []
    for step in range(round(seconds / 5)):
        await lab.clock.advance(5)
        for pool in pools:
            assert await pool.beat()
        if watch and step % 2:
            rescued = await pools[0].expire()
    return rescued


def row(lab: Lab, job_id: UUID) -> JobRow:
    job = lab.store.job(job_id)
    assert job is not None
    return job.row(lab.clock.now())


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


# -------------------------------------------------------------------- outages


async def outage(lab: Lab, seconds: float, down: set[str], *pools: Pool) -> None:
    """For so long these methods fail; all pools go on trying to beat and to look."""
    for pool in pools:
        pool.ten.down = down
    for _ in range(round(seconds / 5)):
        await lab.clock.advance(5)
        for pool in pools:
            for attempt in (pool.beat, pool.expire):
                try:
                    await attempt()
                except DriverUnavailableError:
                    continue
    for pool in pools:
        pool.ten.down = set()


EVERYTHING = {"record_get", "record_put", "record_list", "held", "finish_many", "list_jobs"}


@pytest.mark.parametrize(
    "down", [EVERYTHING, {"record_put"}, {"record_put", "record_get"}], ids=len
)
@pytest.mark.parametrize("seconds", [20, 30, 35, 100])
async def test_an_outage_ends_nobody(lab: Lab, down: set[str], seconds: float) -> None:
    """The watcher is back at once and looks first; the others come back later."""
    watcher, other = await Pool.start(lab), await Pool.start(lab)
    await live(lab, 2 * LEASE, watcher, other)
    await outage(lab, seconds, down, watcher, other)
    for _ in range(3):
        await watcher.expire()
        await lab.clock.advance(4)
        assert await watcher.beat()
        await watcher.expire()
    assert await other.beat()
    await live(lab, 2 * LEASE, watcher, other)
    assert all(info.open for info in await lab.ten.session_list())


async def test_an_outage_that_the_watching_executor_did_not_notice(lab: Lab) -> None:
    """Its session is beaten through another executor, and reads went well all the time."""
    watcher, other = await Pool.start(lab), await Pool.start(lab)
    heartbeater = lab.another()
    for step in range(12):
        await lab.clock.advance(5)
        assert (await heartbeater.session_beat(watcher.session, LEASE)).held
        assert await other.beat()
        if step % 2:
            await watcher.expire()
    for step in range(8):  # nobody can write
        await lab.clock.advance(5)
        if step % 2:
            assert await watcher.expire() == []
    assert (await heartbeater.session_beat(watcher.session, LEASE)).held
    assert await watcher.expire() == []
    assert await other.beat(), "it had no chance to beat before"


async def test_a_gap_of_the_watcher_restarts_the_watch(lab: Lab) -> None:
    """It was away for longer than the lease; what stood still meanwhile proves nothing."""
    watcher, other = await Pool.start(lab), await Pool.start(lab)
    await watcher.expire()
    await lab.clock.advance(LEASE + 1)
    assert await watcher.beat()
    await watcher.expire()
    assert await other.beat()
    dead = await Pool.start(lab)
    await live(lab, LEASE + 20, watcher, other)
    ids = {info.id for info in await lab.ten.session_list()}
    assert ids == {watcher.session, other.session}
    assert not await dead.beat()


@pytest.mark.parametrize("fault", ["before", "after"])
@pytest.mark.parametrize("method", ["record_list", "record_put", "list_jobs"])
async def test_calls_that_fail_now_and_then_do_not_restart_the_watch(
    lab: Lab, method: str, fault: Any
) -> None:
    """Else nobody would be rescued by who meets a failure in every lease."""
    watcher, dead = await Pool.start(lab), await Pool.start(lab)
    job_id = lab.insert()
    await dead.claim()
    await watcher.expire()
    for _ in range(LEASE // 10 + 1):
        watcher.ten.faults[method] = [fault]
        call = watcher.beat if method == "record_put" else watcher.expire
        with pytest.raises(DriverUnavailableError):
            await call()
        await live(lab, 10, watcher)
    assert await watcher.expire() == [job_id]


async def test_looks_that_fail_for_half_a_lease_restart_the_watch(lab: Lab) -> None:
    watcher, other = await Pool.start(lab), await Pool.start(lab)
    await live(lab, LEASE, watcher, other)
    await live(lab, LEASE / 2, watcher)
    watcher.ten.down = {"record_list"}
    for _ in range(4):
        await lab.clock.advance(5)
        assert await watcher.beat()
        with pytest.raises(DriverUnavailableError):
            await watcher.expire()
    watcher.ten.down = set()
    assert await watcher.expire() == []
    assert await other.beat(), "it may have been cut off as we were"


async def test_the_watch_goes_on_after_an_outage(lab: Lab) -> None:
    watcher, dead = await Pool.start(lab), await Pool.start(lab)
    job_id = lab.insert()
    await dead.claim()
    await outage(lab, 60, EVERYTHING, watcher)
    await watcher.beat()
    assert await live(lab, LEASE, watcher) == []
    assert await live(lab, 20, watcher) == [job_id]


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
