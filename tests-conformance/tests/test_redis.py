"""The kit over the Redis driver: Redis 7.0 and 8, Valkey, a cluster, Sentinels, both protocols."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

import pytest
import pytest_asyncio
import redis.asyncio
from hypothesis import settings

from goncordia.clock import Clock
from goncordia.driver import AnyDriver
from goncordia_conformance import (
    Borrowed,
    Breaks,
    Busy,
    CommitsOf,
    Conformance,
    CostOf,
    DriverConformance,
    MakeDriver,
    NetworkLink,
    SetSchema,
    StoredArgs,
    Unreachable,
)
from goncordia_conformance.rules.capabilities import CapabilityTests, ExchangeTests
from goncordia_conformance.rules.claim import ClaimTests
from goncordia_conformance.rules.errors import ErrorTests
from goncordia_conformance.rules.finishing import FinishingTests
from goncordia_conformance.rules.groups import GroupTests
from goncordia_conformance.rules.listing import ListingTests
from goncordia_conformance.rules.machine import StateMachineTests
from goncordia_conformance.rules.migrations import MigrationTests
from goncordia_conformance.rules.order import OrderTests
from goncordia_conformance.rules.ownership import OwnershipTests
from goncordia_conformance.rules.payload import PayloadTests
from goncordia_conformance.rules.pool import PoolTests
from goncordia_conformance.rules.records import RecordTests
from goncordia_conformance.rules.sessions import HeartbeaterTests, SessionTests
from goncordia_conformance.rules.sync import SyncTests
from goncordia_conformance.rules.uniqueness import UniquenessTests
from goncordia_conformance.rules.wakeups import WakeupTests
from goncordia_conformance.servers.prefixes import connect_redis, own_prefix
from goncordia_conformance.servers.process import free_port
from goncordia_conformance.servers.redis_monitor import Monitor
from goncordia_driver_redis import RedisDriver

FULL = os.environ.get("GONCORDIA_FULL") == "1"

EXAMPLES = 100 if FULL else 30
"""How long the state machine looks: every step of it goes to the server and back."""

MANY = 1_000_000 if FULL else 50_000
"""Jobs beside which a fetch must stay flat, on one server; what grows is seen among fewer, too."""

pytestmark = pytest.mark.timeout(900 if FULL else 120)

KILLED = {"test_killed_pools_lose_nothing": "done on one server, and on all in the long run"}


class Redis(Conformance):
    """What is the same on every server."""

    @pytest.fixture
    def url(self, redis_url: str) -> str:
        """Where it is."""
        return redis_url

    @pytest.fixture
    def prefix(self, url: str) -> Iterator[str]:
        with own_prefix(url) as prefix:
            yield prefix

    @pytest.fixture
    def direct(self, url: str) -> Iterator[Any]:
        """A client to look inside with."""
        with connect_redis(url) as client:
            yield client

    @pytest.fixture
    def make_driver(self, url: str, prefix: str) -> MakeDriver:
        return partial(RedisDriver, url, prefix=prefix)

    @pytest.fixture
    def stored_args(self, direct: Any, prefix: str) -> StoredArgs:
        async def stored_args(job_id: UUID) -> object:
            stored: bytes = direct.get(b"{%b}:j:%b" % (prefix.encode(), job_id.bytes))
            # The args are the end of it, as they were given; how long its beginning is, it says.
            return stored[int.from_bytes(stored[1:3], "little") :].decode()

        return stored_args

    @pytest.fixture
    def set_schema(self, direct: Any, prefix: str) -> SetSchema:
        async def set_schema(to: Literal["older", "newer", "compatible"]) -> None:
            key = f"{{{prefix}}}:schema"
            if to == "older":
                direct.delete(key)
            else:
                oldest = 99 if to == "newer" else 1
                direct.hset(key, mapping={"version": 99, "oldest": oldest})

        return set_schema

    @pytest.fixture
    def unreachable(self) -> Unreachable:
        return partial(RedisDriver, f"redis://127.0.0.1:{free_port()}/0")

    @pytest.fixture
    def breaks(self, url: str, prefix: str) -> Breaks:
        soon = f"{url}?socket_timeout=0.3"
        return partial(NetworkLink.of, soon, partial(RedisDriver, prefix=prefix), freezes=True)

    @pytest_asyncio.fixture
    async def _lent(self, url: str) -> AsyncGenerator[Any, None]:
        async with redis.asyncio.Redis.from_url(url) as client:
            yield client

    @pytest.fixture
    def borrowed(self, _lent: Any, prefix: str) -> Borrowed:
        async def works() -> bool:
            return bool(await _lent.ping())

        return RedisDriver(_lent, prefix=prefix), works


class Alone(Redis):
    """On a server that nobody else uses: all that it counts is ours, and it may be told things."""

    @pytest.fixture
    def cost_of(self, url: str) -> CostOf:
        """Commands, in scripts too, and what they looked at."""
        return Monitor(url).cost_of

    @pytest.fixture
    def commits_of(self, url: str) -> CommitsOf:
        """How many scripts were run."""
        return Monitor(url).commits_of

    @pytest.fixture
    def busy(self, direct: Any, make_driver: MakeDriver) -> Busy:
        """Its memory is full."""

        @asynccontextmanager
        async def busy() -> AsyncGenerator[AnyDriver, None]:
            direct.config_set("maxmemory", 1)
            try:
                yield make_driver()
            finally:
                direct.config_set("maxmemory", 0)

        return busy


class Redis8(Alone):
    """On another version."""

    @pytest.fixture
    def url(self, redis8_url: str) -> str:
        return redis8_url


class Valkey(Alone):
    """On its kin."""

    @pytest.fixture
    def url(self, valkey_url: str) -> str:
        return valkey_url


class Cluster(Redis):
    """On three nodes, of which one has the jobs."""

    @pytest.fixture
    def url(self, redis_cluster_url: str) -> str:
        return redis_cluster_url

    @pytest_asyncio.fixture
    async def _lent(self, url: str) -> AsyncGenerator[Any, None]:
        host, _, port = url.rpartition(",")[2].rpartition(":")
        async with redis.asyncio.RedisCluster(host=host, port=int(port)) as client:
            yield client


class Sentinels(Redis):
    """On a primary that Sentinels know."""

    @pytest.fixture
    def url(self, redis_sentinel_url: str) -> str:
        return redis_sentinel_url

    @pytest_asyncio.fixture
    async def _lent(self, url: str) -> AsyncGenerator[Any, None]:
        parts = urlsplit(url)
        host, _, port = parts.netloc.rpartition(":")
        name, _, database = parts.path.strip("/").partition("/")
        sentinel_class: Any = redis.asyncio.Sentinel  # its types say little
        sentinels = sentinel_class([(host, int(port))])
        async with sentinels.master_for(name, db=int(database)) as client:
            yield client
        for sentinel in sentinels.sentinels:
            await sentinel.aclose()


def passed_in(url: str, prefix: str, clock: Clock | None = None) -> RedisDriver:
    """A driver that was given a client whose answers are not those that ours needs."""
    client: Any = redis.asyncio.Redis.from_url(url, protocol=3, decode_responses=True)
    return RedisDriver(client, prefix=prefix, clock=clock)


class PassedIn(Alone):
    """By a client that a user made for something else: other answers, the newer protocol."""

    @pytest.fixture
    def make_driver(self, url: str, prefix: str) -> MakeDriver:
        return partial(passed_in, url, prefix)


class TestRedis(Alone, DriverConformance):
    """All of it, on whichever server there is."""

    machine_settings = settings(StateMachineTests.machine_settings, max_examples=EXAMPLES)
    many = MANY


# The rest of it all takes minutes, so for every change there is what may be different there.


class TestRedis8(
    Redis8,
    OrderTests,
    FinishingTests,
    GroupTests,
    UniquenessTests,
    ErrorTests,
    MigrationTests,
    ExchangeTests,
    WakeupTests,
):
    """What another version may change."""

    __test__ = not FULL


class TestValkey(
    Valkey,
    OrderTests,
    FinishingTests,
    GroupTests,
    UniquenessTests,
    ErrorTests,
    MigrationTests,
    ExchangeTests,
    WakeupTests,
):
    """What its kin may do otherwise."""

    __test__ = not FULL


class TestCluster(
    Cluster,
    ClaimTests,
    HeartbeaterTests,
    OwnershipTests,
    MigrationTests,
    CapabilityTests,
    WakeupTests,
    SyncTests,
    PoolTests,
):
    """What many nodes may change."""

    __test__ = not FULL
    not_applicable = KILLED


class TestSentinels(
    Sentinels,
    ClaimTests,
    HeartbeaterTests,
    OwnershipTests,
    MigrationTests,
    WakeupTests,
    SyncTests,
    PoolTests,
):
    """What asking for the primary may change."""

    __test__ = not FULL
    not_applicable = KILLED


class TestPassedIn(
    PassedIn,
    OrderTests,
    SessionTests,
    HeartbeaterTests,
    PayloadTests,
    RecordTests,
    ListingTests,
    ExchangeTests,
    WakeupTests,
    SyncTests,
):
    """What other answers may change."""

    __test__ = not FULL


class TestRedis8Whole(Redis8, DriverConformance):
    """All of it."""

    __test__ = FULL


class TestValkeyWhole(Valkey, DriverConformance):
    """All of it."""

    __test__ = FULL


# They are not alone: what only a server tells or is told is proved on those above.
SHARED: Mapping[str, str] = dict.fromkeys(
    (
        "test_a_busy_backend",
        "test_what_a_busy_backend_did_not_apply_is_not_there",
        "test_what_was_not_applied_is_not_there",
        "test_nor_is_what_synchronous_code_did_not_apply",
        "test_nor_is_what_a_frozen_backend_did_not_apply",
        "test_fetch_stays_flat",
        "test_claimed_it_is_one_commit",
    ),
    "the servers are shared with other tests: proved on a single server",
)


class TestClusterWhole(Cluster, DriverConformance):
    """All of it."""

    __test__ = FULL
    not_applicable = SHARED


class TestSentinelsWhole(Sentinels, DriverConformance):
    """All of it."""

    __test__ = FULL
    not_applicable = SHARED


class TestPassedInWhole(PassedIn, DriverConformance):
    """All of it."""

    __test__ = FULL
