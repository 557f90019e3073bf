from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from typing import Any

import pytest

from goncordia.driver import Listener, Wake
from goncordia_conformance.backends import needed
from goncordia_conformance.jobs import claim_all, new_job
from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.redis import TESTS, RedisBinary, RedisServer, find_here
from goncordia_driver_redis import RedisDriver

__all__ = ["claim_all", "new_job"]  # the kit's fixtures, for the tests here

Make = Callable[..., RedisDriver]


@pytest.fixture
def make(redis_url: str, redis_prefix: str) -> Make:
    """Makes a driver under the test's prefix."""

    def make(client: Any = redis_url, **options: Any) -> RedisDriver:
        return RedisDriver(client, **{"prefix": redis_prefix, **options})

    return make


@pytest.fixture
async def driver(make: Make) -> AsyncIterator[RedisDriver]:
    """A driver that is migrated and ready."""
    async with make() as driver:
        await driver.migrate()
        await driver.ready()
        yield driver


@pytest.fixture(scope="session")
def here(request: pytest.FixtureRequest) -> RedisBinary:
    """A program on this machine, for servers of a test's own: no container will do."""
    return needed("redis", request.config, find_here)


@pytest.fixture(scope="session")
def a_server(here: RedisBinary) -> Callable[..., AbstractContextManager[RedisServer]]:
    """Runs a server of a test's own, with these settings more; '_' stands for '-'."""

    @contextmanager
    def a_server(binary: RedisBinary = here, **settings: str) -> Iterator[RedisServer]:
        more = {name.replace("_", "-"): value for name, value in settings.items()}
        server = RedisServer.create(binary, {**TESTS, **more})
        with guarded(server.run):
            yield server

    return a_server


@pytest.fixture
def server(
    a_server: Callable[..., AbstractContextManager[RedisServer]],
) -> Iterator[RedisServer]:
    """A server of the test's own, which it may freeze and kill."""
    with a_server() as server:
        yield server


class Ears:
    """What one listener hears."""

    def __init__(self, listener: Listener) -> None:
        self.heard: asyncio.Queue[Wake] = asyncio.Queue()
        self._listener = listener

    async def listen(self) -> None:
        async for wake in self._listener.wakes():
            self.heard.put_nowait(wake)

    async def next(self) -> Wake:
        async with asyncio.timeout(60):
            return await self.heard.get()


@asynccontextmanager
async def _hearing(driver: RedisDriver, through: RedisDriver | None = None) -> AsyncIterator[Ears]:
    asks = through or driver
    listener = driver.listener()
    ears = Ears(listener)
    task = asyncio.create_task(ears.listen())
    command = (b"PUBSUB", b"SHARDNUMSUB", driver._keys.channel)
    async with asyncio.timeout(60):
        while True:
            if (await asks._runner.ask(await asks._pools.get(), command))[1]:
                break
            await asyncio.sleep(0.01)
    try:
        yield ears
    finally:
        await listener.aclose()
        await task


@pytest.fixture(scope="session")
def hearing() -> Callable[..., AbstractAsyncContextManager[Any]]:
    """What a driver's listener hears, once the server knows of it; asked through another driver."""
    return _hearing
