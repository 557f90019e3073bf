from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from goncordia.clock import SystemClock
from goncordia.driver import FetchRequest, JobRow, NewJob, QueueFetch
from goncordia.ids import JobIds, new_session_id
from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.redis import TESTS, RedisServer, find_here
from goncordia_driver_redis import RedisDriver

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


@contextmanager
def a_server(**settings: str) -> Iterator[RedisServer]:
    """A server of a test's own, with these settings more; '_' stands for '-'."""
    more = {name.replace("_", "-"): value for name, value in settings.items()}
    server = RedisServer.create(find_here(), {**TESTS, **more})
    with guarded(server.run):
        yield server


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """A server of the test's own, which it may freeze and kill."""
    with a_server() as server:
        yield server


@pytest.fixture(scope="session")
def new_job() -> Callable[..., NewJob]:
    ids = JobIds(SystemClock())

    def new_job(**fields: Any) -> NewJob:
        fields.setdefault("id", ids())
        fields.setdefault("kind", "work")
        fields.setdefault("args", b"{}")
        return NewJob(**fields)

    return new_job


@pytest.fixture
def claim_all() -> Callable[[RedisDriver], Any]:
    async def claim_all(driver: RedisDriver) -> list[JobRow]:
        """Everything that is due, claimed by a session of its own."""
        executor, session = driver.executor(), new_session_id()
        await executor.session_open(session, "w", 60)
        request = FetchRequest(session, 1, 1000, (QueueFetch("default", 1000),), "w")
        return (await executor.fetch(request)).jobs

    return claim_all
