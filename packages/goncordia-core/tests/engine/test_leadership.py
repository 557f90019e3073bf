"""Leadership over records: one at a time, another when it is gone, none for long."""

from __future__ import annotations

import asyncio
import random

import pytest

from goncordia.engine.calls import Calls
from goncordia.engine.leadership import Leadership
from goncordia.errors import DriverUnavailableError

from .stand import Stand


def candidate(stand: Stand, number: int, office: str = "cleaning") -> Leadership:
    executor = stand.driver.executor()
    calls = Calls(stand.clock, random.Random(number), bound=15.0)
    return Leadership(executor, calls, stand.clock, office, lease=30.0)


async def test_the_first_leads_and_the_others_do_not(stand: Stand) -> None:
    one, other = candidate(stand, 1), candidate(stand, 2)
    assert [await one.lead(), await other.lead(), await one.lead()] == [True, False, True]
    assert one.term == 1


async def test_each_office_has_its_own_leader(stand: Stand) -> None:
    assert await candidate(stand, 1).lead()
    assert await candidate(stand, 2, "cooking").lead()


async def test_a_leader_that_renews_stays(stand: Stand) -> None:
    one, other = candidate(stand, 1), candidate(stand, 2)
    for _ in range(10):
        assert await one.lead()
        assert not await other.lead()
        await stand.advance(10)


async def test_one_that_is_gone_is_followed_after_the_lease(stand: Stand) -> None:
    one, other = candidate(stand, 1), candidate(stand, 2)
    await one.lead()
    await stand.advance(1000)  # who was not looking cannot tell how long the record stood
    assert not await other.lead()
    await stand.advance(29)
    assert not await other.lead()
    await stand.advance(1)
    assert await other.lead()
    assert other.term == 2
    assert not await one.lead()  # it comes back, and is not the leader any more


async def test_two_that_follow_at_once_become_one(stand: Stand) -> None:
    one, other, third = (candidate(stand, number) for number in (1, 2, 3))
    await one.lead()
    assert [await other.lead(), await third.lead()] == [False, False]
    await stand.advance(31)
    hold = stand.wire.hold("record_put")  # both have read the record before either writes
    late = asyncio.ensure_future(third.lead())
    await stand.advance(0)
    assert hold.reached
    assert await other.lead()
    hold.let_go()
    assert not await late


async def test_who_resigns_leaves_it_at_once(stand: Stand) -> None:
    one, other = candidate(stand, 1), candidate(stand, 2)
    await one.lead()
    assert not await other.lead()
    await other.resign()  # not its to give
    assert await one.lead()
    await one.resign()
    assert await other.lead()


async def test_a_renewal_of_unknown_outcome_is_found_out_by_the_next(stand: Stand) -> None:
    one, other = candidate(stand, 1), candidate(stand, 2)
    stand.wire.fail("record_put", after=True)
    with pytest.raises(DriverUnavailableError):
        await one.lead()
    assert not await other.lead()
    assert await one.lead()
    assert one.term == 1
