"""The pytest plugin: fixtures for tests of code that enqueues and works jobs.

They are plain fixtures, so they work the same in synchronous tests, under pytest-asyncio and under
anyio. All of them build on ``goncordia_driver``, which a project may override with its own.

pytest loads this module wherever the package is installed: it imports nothing before it is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from goncordia import AnyDriver, Client, Registry, SyncClient, WorkerPool
    from goncordia.gontest import MockClock, SyncTracker, Tracker

__all__ = [
    "MakeWorkerPool",
    "goncordia_client",
    "goncordia_clock",
    "goncordia_driver",
    "goncordia_sync_client",
    "goncordia_sync_tracker",
    "goncordia_tracker",
    "goncordia_worker_pool",
]


class MakeWorkerPool(Protocol):
    """What the fixture ``goncordia_worker_pool`` gives."""

    def __call__(self, registry: Registry[Any], /, **settings: Any) -> WorkerPool:
        """See :func:`goncordia.gontest.worker_pool`."""
        ...


@pytest.fixture
def goncordia_clock() -> MockClock:
    """A clock that stands still. A test that asks for it has its driver under it."""
    from goncordia.gontest import MockClock  # noqa: PLC0415 - nothing is imported before

    return MockClock()


@pytest.fixture
def goncordia_driver(request: pytest.FixtureRequest) -> Iterator[AnyDriver]:
    """The driver under all other fixtures: an empty one in memory, unless a project overrides it.

    It takes its time from ``goncordia_clock`` where the test, or a fixture of it, asks for that.
    """
    from goncordia.memory import MemoryDriver  # noqa: PLC0415 - as above

    clock = None
    if "goncordia_clock" in request.fixturenames:
        clock = request.getfixturevalue("goncordia_clock")
    driver = MemoryDriver(clock)
    yield driver
    driver.close()


@pytest.fixture
def goncordia_client(goncordia_driver: AnyDriver) -> Client[Any]:
    """A client on the driver."""
    from goncordia import Client  # noqa: PLC0415 - as above

    return Client(goncordia_driver)


@pytest.fixture
def goncordia_sync_client(goncordia_driver: AnyDriver) -> SyncClient[Any]:
    """A synchronous client on the driver."""
    from goncordia import SyncClient  # noqa: PLC0415 - as above

    return SyncClient(goncordia_driver)


@pytest.fixture
def goncordia_tracker(goncordia_client: Client[Any]) -> Tracker:
    """A tracker of what is enqueued on the driver."""
    from goncordia.gontest import Tracker  # noqa: PLC0415 - as above

    return Tracker(goncordia_client)


@pytest.fixture
def goncordia_sync_tracker(goncordia_sync_client: SyncClient[Any]) -> SyncTracker:
    """The same for synchronous tests."""
    from goncordia.gontest import SyncTracker  # noqa: PLC0415 - as above

    return SyncTracker(goncordia_sync_client)


@pytest.fixture
def goncordia_worker_pool(goncordia_driver: AnyDriver) -> MakeWorkerPool:
    """A function that makes worker pools on the driver, of a registry and settings."""
    from goncordia.gontest import worker_pool  # noqa: PLC0415 - as above

    def make(registry: Registry[Any], /, **settings: Any) -> WorkerPool:
        return worker_pool(goncordia_driver, registry, **settings)

    return make
