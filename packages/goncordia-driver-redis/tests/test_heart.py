"""Beating from a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from goncordia.errors import MigrationRequiredError
from goncordia.gontest import MockClock
from goncordia.ids import new_session_id
from goncordia_conformance.servers.redis import RedisServer
from goncordia_driver_redis import RedisDriver

Make = Callable[..., RedisDriver]


async def test_it_beats(driver: RedisDriver) -> None:
    session, stranger = new_session_id(), new_session_id()
    await driver.executor().session_open(session, "w", 60)
    heart = driver.heartbeater()
    assert heart is not None
    for _ in range(3):
        assert (await asyncio.to_thread(heart.beat, session, 60)).held
    assert not (await asyncio.to_thread(heart.beat, stranger, 60)).held
    await driver.executor().session_close(session)
    assert not (await asyncio.to_thread(heart.beat, session, 60)).held
    heart.close()
    heart.close()


async def test_it_looks_at_what_is_stored_first(make: Make) -> None:
    async with make() as driver:
        heart = driver.heartbeater()
        assert heart is not None
        with pytest.raises(MigrationRequiredError):
            await asyncio.to_thread(heart.beat, new_session_id(), 60)
        heart.close()


async def test_with_a_clock_that_was_given_the_loop_beats(make: Make) -> None:
    assert make(clock=MockClock()).heartbeater() is None


async def test_a_connection_that_the_server_has_closed(server: RedisServer) -> None:
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        await driver.executor().session_open(session := new_session_id(), "w", 60)
        heart: Any = driver.heartbeater()
        for _ in range(3):
            assert (await asyncio.to_thread(heart.beat, session, 60)).held
            server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        heart.close()


async def test_its_bound_follows_the_lease(driver: RedisDriver) -> None:
    await driver.executor().session_open(session := new_session_id(), "w", 60)
    heart: Any = driver.heartbeater()
    for lease, bound in [(60, 5.0), (6, 1.0), (6, 1.0)]:
        assert (await asyncio.to_thread(heart.beat, session, lease)).held
        assert heart._link.connection.socket_timeout == bound
    heart.close()
