"""Defaults of several calls, one of which is refused: what the error says of those before it."""

from __future__ import annotations

import pytest

from goncordia.driver import Finish, PruneRequest
from goncordia.errors import DriverBusyError, DriverUnavailableError

from .pools import LEASE, Pool, live
from .ten import Lab


@pytest.fixture
def lab() -> Lab:
    return Lab()


def refuse(pool: Pool, call: str, number: int = 0) -> None:
    """Let the call of this number, of all by its name, be refused."""
    pool.ten.faults[call] = [*([None] * number), "refused"]


@pytest.mark.parametrize(
    ("call", "outcome"),
    [("finish_many", "not_applied"), ("record_get", "unknown"), ("fetch", "unknown")],
)
async def test_an_exchange(lab: Lab, call: str, outcome: str) -> None:
    pool = await Pool.start(lab)
    lab.insert()
    claim = await pool.claim()
    refuse(pool, call)
    with pytest.raises(DriverBusyError) as caught:
        await pool.ten.exchange([Finish(claim, "complete")], pool.request())
    assert caught.value.outcome == outcome


async def test_an_exchange_that_finishes_nothing(lab: Lab) -> None:
    pool = await Pool.start(lab)
    refuse(pool, "fetch")
    with pytest.raises(DriverBusyError) as caught:
        await pool.fetch()
    assert caught.value.outcome == "not_applied"


@pytest.mark.parametrize(("call", "outcome"), [("record_put", "not_applied"), ("held", "unknown")])
async def test_a_beat(lab: Lab, call: str, outcome: str) -> None:
    pool = await Pool.start(lab)
    refuse(pool, call)
    with pytest.raises(DriverBusyError) as caught:
        await pool.beat()
    assert caught.value.outcome == outcome


async def test_a_beat_that_first_repeats_the_last(lab: Lab) -> None:
    pool = await Pool.start(lab)
    pool.ten.faults["record_put"] = ["before"]
    with pytest.raises(DriverUnavailableError):
        await pool.beat()
    refuse(pool, "record_put", 1)
    with pytest.raises(DriverBusyError) as caught:
        await pool.beat()
    assert caught.value.outcome == "unknown"


@pytest.mark.parametrize(
    ("call", "number", "outcome"),
    [
        ("record_get", 0, "not_applied"),
        ("record_put", 0, "not_applied"),
        ("held", 0, "unknown"),
        ("finish_many", 0, "unknown"),
        ("record_put", 1, "unknown"),
    ],
)
async def test_a_close(lab: Lab, call: str, number: int, outcome: str) -> None:
    pool = await Pool.start(lab)
    lab.insert()
    await pool.claim()
    refuse(pool, call, number)
    with pytest.raises(DriverBusyError) as caught:
        await pool.ten.session_close(pool.session)
    assert caught.value.outcome == outcome


@pytest.mark.parametrize(
    ("call", "number", "outcome"),
    [
        ("record_list", 0, "not_applied"),
        ("record_put", 0, "not_applied"),
        ("record_put", 1, "unknown"),
        ("held", 0, "unknown"),
        ("list_jobs", 0, "unknown"),
    ],
)
async def test_an_expire(lab: Lab, call: str, number: int, outcome: str) -> None:
    pool = await Pool.start(lab)
    for _ in range(2):
        await Pool.start(lab)
    await live(lab, LEASE + 10, pool)  # the first look was at 10
    await lab.clock.advance(5)
    assert await pool.beat()
    refuse(pool, call, number)
    with pytest.raises(DriverBusyError) as caught:
        await pool.expire()
    assert caught.value.outcome == outcome


@pytest.mark.parametrize(
    ("call", "number", "outcome"),
    [
        ("list_jobs", 0, "not_applied"),
        ("change_many", 0, "not_applied"),
        ("change_many", 1, "unknown"),
    ],
)
async def test_a_prune(lab: Lab, call: str, number: int, outcome: str) -> None:
    pool = await Pool.start(lab)
    for _ in range(5):
        lab.insert()
        await pool.ten.finish_many([Finish(await pool.claim(), "complete")])
    await lab.clock.advance(1)
    refuse(pool, call, number)
    with pytest.raises(DriverBusyError) as caught:
        await pool.ten.prune(PruneRequest(completed=lab.clock.now()))
    assert caught.value.outcome == outcome
