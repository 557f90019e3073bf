"""Sessions as records: an outage ends nobody, and the watch goes on after it."""

from __future__ import annotations

from typing import Any

import pytest

from goncordia.errors import DriverUnavailableError

from .pools import LEASE, Pool, live
from .ten import Lab


@pytest.fixture
def lab() -> Lab:
    return Lab()


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
