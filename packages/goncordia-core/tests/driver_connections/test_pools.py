"""Connections that are kept, without a server."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from goncordia.driver.connections import pools
from goncordia.driver.connections.loops import PerLoop
from goncordia.driver.connections.pools import Pool, within
from goncordia.errors import DriverBusyError


class Fake:
    """A connection."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.usable, self.wanted, self.closed, self.renewed = True, False, False, 0

    def renew(self) -> None:
        self.renewed += 1

    def is_usable(self) -> bool:
        return self.usable and not self.closed

    def is_wanted(self) -> bool:
        return self.wanted

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed = True


class Maker:
    """Makes them."""

    def __init__(self) -> None:
        self.made: list[Fake] = []
        self.asked = 0
        self.error: Exception | None = None
        self.hold: asyncio.Event | None = None

    async def __call__(self) -> Any:
        self.asked += 1
        if self.hold is not None:
            await self.hold.wait()
        if self.error is not None:
            raise self.error
        self.made.append(Fake(len(self.made)))
        return self.made[-1]


@pytest.fixture
def maker() -> Maker:
    return Maker()


def pool_of(maker: Maker, *, size: int = 2, timeout: float = 5.0, keep: float = 60.0) -> Pool[Any]:
    return Pool(maker, size=size, timeout=timeout, keep=keep)


async def test_what_is_given_back_is_given_again(maker: Maker) -> None:
    pool = pool_of(maker)
    one = await pool.acquire()
    two = await pool.acquire()
    pool.release(one, clean=True)
    pool.release(two, clean=True)
    assert await pool.acquire() is two
    assert await pool.acquire() is one
    assert len(maker.made) == 2
    assert one.renewed
    pool.release(one, clean=True)
    await pool.aclose()
    assert one.closed
    assert not two.closed  # it is held


async def test_what_comes_back_to_a_closed_pool_is_closed(maker: Maker) -> None:
    pool = pool_of(maker)
    one = await pool.acquire()
    await pool.aclose()
    pool.release(one, clean=True)
    await pool.aclose()
    assert one.closed


@pytest.mark.parametrize("why", ["unclean", "unusable", "wanted"])
async def test_what_is_no_good_or_wanted_leaves(maker: Maker, why: str) -> None:
    pool = pool_of(maker, size=1)
    one = await pool.acquire()
    one.usable = why != "unusable"
    one.wanted = why == "wanted"
    pool.release(one, clean=why != "unclean")
    two = await pool.acquire()
    assert two is not one
    assert one.closed
    pool.release(two, clean=True)
    await pool.aclose()


async def test_what_breaks_while_it_is_idle_is_not_given(maker: Maker) -> None:
    pool = pool_of(maker)
    one = await pool.acquire()
    pool.release(one, clean=True)
    one.usable = False
    assert await pool.acquire() is not one
    await pool.aclose()
    assert one.closed


async def test_who_comes_first_is_served_first(maker: Maker) -> None:
    pool = pool_of(maker, size=1)
    one = await pool.acquire()
    first = asyncio.create_task(pool.acquire())
    second = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    pool.release(one, clean=True)
    assert await first is one
    assert not second.done()
    pool.release(one, clean=False)
    assert (await second) is maker.made[1]
    pool.release(await second, clean=True)
    await pool.aclose()


async def test_who_waits_too_long_is_told(maker: Maker) -> None:
    pool = pool_of(maker, size=1, timeout=0.02)
    one = await pool.acquire()
    with pytest.raises(DriverBusyError, match="none of the pool's 1 connections"):
        await pool.acquire()
    pool.release(one, clean=True)
    assert await pool.acquire() is one
    pool.release(one, clean=True)
    await pool.aclose()


async def test_who_gives_up_loses_nothing(maker: Maker) -> None:
    """Cancelled in the moment in which a connection was handed over."""
    pool = pool_of(maker, size=1)
    one = await pool.acquire()
    waiting = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    pool.release(one, clean=True)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await pool.acquire() is one
    pool.release(one, clean=True)
    await pool.aclose()


async def test_a_connection_that_cannot_be_made_takes_no_room(maker: Maker) -> None:
    pool = pool_of(maker, size=1)
    maker.error = OSError("away")
    with pytest.raises(OSError, match="away"):
        await pool.acquire()
    maker.error = None
    maker.hold = asyncio.Event()
    making = asyncio.create_task(pool.acquire())
    waiting = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    maker.hold.set()
    assert await waiting is maker.made[0]
    pool.release(maker.made[0], clean=True)
    await pool.aclose()


async def test_a_server_that_gives_none_is_not_waited_for_long(maker: Maker) -> None:
    maker.hold = asyncio.Event()
    with pytest.raises(TimeoutError):
        await within(0.02, maker)()


async def test_what_nobody_uses_leaves(maker: Maker) -> None:
    pool = pool_of(maker, keep=0.03)
    loop = asyncio.get_running_loop()
    one, two = await pool.acquire(), await pool.acquire()
    pool.release(one, clean=True)
    while not one.closed:
        pool.release(two, clean=True)
        given_back = loop.time()
        await asyncio.sleep(0.01)
        again = await pool.acquire()
        if again is not two:
            assert loop.time() - given_back >= 0.03  # a slow machine
            two = again
    assert not two.closed
    pool.release(two, clean=True)
    while not two.closed:  # noqa: ASYNC110  # it tells nobody
        await asyncio.sleep(0.01)
    await pool.aclose()


async def test_each_loop_has_its_own() -> None:
    closed: list[int] = []
    made: list[int] = []

    async def make() -> int:
        await asyncio.sleep(0)
        made.append(len(made))
        return made[-1]

    async def close(which: int) -> None:
        closed.append(which)

    each = PerLoop(make, close)
    assert await asyncio.gather(*[each.get() for _ in range(5)]) == [0] * 5
    assert await asyncio.to_thread(lambda: asyncio.run(each.get())) == 1
    assert await asyncio.to_thread(lambda: asyncio.run(each.get())) == 2
    await each.aclose()
    assert closed == [0]  # the others are gone with their loops
    assert await each.get() == 3
    await each.aclose()


# -------------------------------------------------------------------- those whose askers have gone


async def asked_and_gone(pool: Pool[Any]) -> None:
    """Somebody asks for a connection, and is cancelled while it is made."""
    asking = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # it is being made
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_what_its_asker_did_not_wait_for_is_there_for_the_next(maker: Maker) -> None:
    pool = pool_of(maker, size=1)
    maker.hold = asyncio.Event()
    await asked_and_gone(pool)
    next_one = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    maker.hold.set()
    one = await next_one
    assert maker.made == [one]
    assert maker.asked == 1
    pool.release(one, clean=True)
    await pool.aclose()
    assert one.closed


async def test_what_nobody_waits_for_is_kept_without_use(maker: Maker) -> None:
    pool = pool_of(maker, size=2)
    maker.hold = asyncio.Event()
    await asked_and_gone(pool)
    maker.hold.set()
    for _ in range(3):
        await asyncio.sleep(0)
    assert [each.number for each in maker.made] == [0]
    assert await pool.acquire() is maker.made[0]
    pool.release(maker.made[0], clean=True)
    await pool.aclose()


async def test_no_more_are_made_than_the_pool_has(maker: Maker) -> None:
    pool = pool_of(maker, size=2)
    maker.hold = asyncio.Event()
    for _ in range(2):
        await asked_and_gone(pool)
    waiting = [asyncio.create_task(pool.acquire()) for _ in range(2)]
    await asyncio.sleep(0)
    maker.hold.set()
    assert {each.number for each in await asyncio.gather(*waiting)} == {0, 1}
    for each in maker.made:
        pool.release(each, clean=True)
    await pool.aclose()
    assert len(maker.made) == 2


async def test_what_fails_with_nobody_there_makes_room_in_silence(maker: Maker) -> None:
    said: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    pool = pool_of(maker, size=1)
    maker.hold = asyncio.Event()
    maker.error = OSError("away")
    await asked_and_gone(pool)
    waiting = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    maker.hold.set()
    with pytest.raises(OSError, match="away"):  # its own, of another attempt
        await waiting
    maker.error = None
    one = await pool.acquire()
    pool.release(one, clean=True)
    await pool.aclose()
    gc.collect()
    assert said == []


async def test_closing_waits_for_what_is_nearly_there(maker: Maker) -> None:
    pool = pool_of(maker)
    maker.hold = asyncio.Event()
    await asked_and_gone(pool)
    closing = asyncio.create_task(pool.aclose())
    await asyncio.sleep(0)
    maker.hold.set()
    await closing
    assert [each.closed for each in maker.made] == [True]


async def test_closing_gives_up_what_does_not_come(
    maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "_ARRIVING", 0.01)
    pool = pool_of(maker)
    maker.hold = asyncio.Event()
    await asked_and_gone(pool)
    await pool.aclose()
    assert len(asyncio.all_tasks()) == 1  # this one
    assert maker.made == []


def test_a_loop_that_ends_takes_along_what_is_being_made(maker: Maker) -> None:
    async def ask() -> None:
        maker.hold = asyncio.Event()
        await asked_and_gone(pool_of(maker))

    asyncio.run(ask())  # it cancels what is left: and nothing is said, or the test fails
    gc.collect()
    assert maker.made == []
