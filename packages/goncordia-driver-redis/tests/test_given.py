"""Clients that are passed in: only how they connect is read, and they stay as they were."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.asyncio.cluster
import redis.asyncio.sentinel
import redis.cluster
import redis.sentinel
from redis.credentials import StreamingCredentialProvider

from goncordia.driver import ListFilter, NewJob
from goncordia.errors import ConfigurationError
from goncordia.ids import new_session_id
from goncordia_conformance.servers.redis import RedisServer
from goncordia_driver_redis import RedisDriver
from goncordia_driver_redis.clients.given import place_of
from goncordia_driver_redis.clients.parameters import Address
from goncordia_driver_redis.clients.places import ClusterPlace, SentinelPlace

# redis-py's Sentinels are not typed.
Sentinels: Any = redis.asyncio.sentinel.Sentinel
SyncSentinels: Any = redis.sentinel.Sentinel

NewJobs = Callable[..., NewJob]
Make = Callable[..., RedisDriver]


def parameters_of(client: Any) -> Any:
    return place_of("client", client, b"{p}:").place.parameters


async def works(driver: RedisDriver, new_job: NewJobs) -> None:
    """On asyncio, on the calling thread, from the heartbeat's and with the listener."""
    async with driver:
        await driver.migrate()
        await driver.ready()
        job = new_job(args=b'"\xc3\xa9"')
        (result,) = await driver.executor().insert_many([job])
        assert result.status == "INSERTED"
        (row,) = await asyncio.to_thread(driver.sync_executor().get_many, [job.id])
        assert row is not None
        assert row.args == job.args


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"decode_responses": True},
        {"protocol": 2},
        {"protocol": 3},
        {"protocol": 3, "decode_responses": True, "encoding": "latin-1"},
        {"health_check_interval": 1, "retry_on_timeout": True, "client_name": "mine"},
        {"socket_timeout": None, "socket_connect_timeout": None},
        {"max_connections": 1, "single_connection_client": True},
        {"username": None, "password": None, "db": 0},
    ],
    ids=str,
)
async def test_whatever_the_client_is_like(
    make: Make, redis_url: str, new_job: NewJobs, options: dict[str, Any]
) -> None:
    client = redis.asyncio.Redis.from_url(redis_url, **options)
    try:
        before = dict(client.connection_pool.connection_kwargs)
        await works(make(client), new_job)
        assert client.connection_pool.connection_kwargs == before
        assert await client.ping()
    finally:
        await client.aclose()


async def test_a_blocking_pool_that_is_used_up_is_not_waited_for(
    make: Make, redis_url: str, new_job: NewJobs
) -> None:
    pool: Any = redis.asyncio.BlockingConnectionPool.from_url(
        redis_url, max_connections=1, timeout=60
    )
    client = redis.asyncio.Redis(connection_pool=pool)
    connection = await pool.get_connection()
    try:
        await works(make(client), new_job)
    finally:
        await pool.release(connection)
        await client.aclose()
        await pool.aclose()


async def test_a_cluster_client(redis_cluster_url: str, new_job: NewJobs) -> None:
    host, port = redis_cluster_url.partition("://")[2].split(",")[0].split(":")
    client = redis.asyncio.RedisCluster(host=host, port=int(port), decode_responses=True)
    try:
        prefix = f"given-{new_job().id.hex}"
        await works(RedisDriver(client, prefix=prefix), new_job)
        assert await client.ping()
    finally:
        await client.aclose()


async def test_a_client_of_sentinels(redis_sentinel_url: str, new_job: NewJobs) -> None:
    hosts, service, _ = redis_sentinel_url.partition("://")[2].split("/")
    places = [(each.split(":")[0], int(each.split(":")[1])) for each in hosts.split(",")]
    sentinel = Sentinels(places)
    client = sentinel.master_for(service, protocol=3)
    try:
        await works(RedisDriver(client, prefix=f"given-{new_job().id.hex}"), new_job)
        assert await client.ping()
    finally:
        for each in (client, *sentinel.sentinels):
            await each.aclose()


async def test_a_synchronous_client_serves_synchronous_code_only(
    make: Make, redis_url: str, new_job: NewJobs
) -> None:
    client = redis.Redis.from_url(redis_url, decode_responses=True)
    driver = make(client)
    only = "a synchronous client serves SyncClient only; for anything else"
    with pytest.raises(ConfigurationError, match=only):
        await driver.ready()
    with pytest.raises(ConfigurationError, match=only):
        await driver.executor().insert_many([new_job()])
    with driver:
        driver.migrate_sync()
        (result,) = driver.sync_executor().insert_many([new_job()])
        assert result.status == "INSERTED"
    assert client.ping()
    client.close()


class Tunnel(redis.asyncio.Connection):
    """Connections of a class of the caller's."""


async def test_a_class_of_connections_that_has_no_twin(
    make: Make, redis_url: str, new_job: NewJobs
) -> None:
    pool = redis.asyncio.ConnectionPool.from_url(redis_url, connection_class=Tunnel)
    client = redis.asyncio.Redis(connection_pool=pool)
    twin = redis.Redis.from_url(redis_url)
    async with make(client) as driver:
        await driver.migrate()
        assert driver.heartbeater() is None
        with pytest.raises(ConfigurationError, match="give SyncClient's as sync_client="):
            driver.sync_executor().now()
    driver = make(client, sync_client=twin)
    assert driver.heartbeater() is not None
    await works(driver, new_job)
    await client.aclose()
    await pool.aclose()
    twin.close()


async def test_what_is_read_of_a_client() -> None:
    client = redis.asyncio.Redis(
        host="h",
        port=7,
        db=3,
        username="u",
        password="p",
        ssl=True,
        ssl_check_hostname=False,
        socket_timeout=1,
        socket_connect_timeout=2,
        client_name="c",
    )
    found = parameters_of(client)
    assert (found.address, found.tls, found.answer, found.connect) == (Address("h", 7), True, 1, 2)
    wanted = {"db": 3, "username": "u", "password": "p", "client_name": "c"}
    assert wanted.items() <= found.options.items()
    assert found.options["ssl_check_hostname"] is False
    assert parameters_of(redis.Redis(unix_socket_path="/s")).address == "/s"


async def test_what_is_read_of_clusters_and_sentinels() -> None:
    nodes = [redis.asyncio.cluster.ClusterNode(host, 7) for host in ("a", "b")]
    client = redis.asyncio.RedisCluster(startup_nodes=nodes, password="p", ssl=True)
    place = place_of("client", client, b"{p}:").place
    assert isinstance(place, ClusterPlace)
    assert str(place) == "the cluster at a:7, b:7"
    assert place.parameters.tls
    assert place.parameters.options["password"] == "p"
    sentinel = SyncSentinels([("a", 1)], sentinel_kwargs={"password": "s"}, ssl=True, password="p")
    given = place_of("client", sentinel.master_for("jobs", db=5), b"{p}:")
    assert given.synchronous
    assert isinstance(given.place, SentinelPlace)
    assert given.place.parameters.tls
    assert given.place.parameters.options["password"] == "p"
    assert given.place.parameters.options["db"] == 5
    question = next(given.place.find())
    assert (question.parameters.address, question.parameters.tls) == (Address("a", 1), False)
    assert question.parameters.options["password"] == "s"


@pytest.mark.parametrize(
    ("client", "says"),
    [
        (None, "client: NoneType is not a URL such as 'redis://localhost:6379/0'"),
        (5, "client: int is not a URL"),
        (redis.asyncio.ConnectionPool(), "client: redis.asyncio.connection.ConnectionPool is not"),
        (redis.Redis().pipeline(), "client: it is a pipeline"),
        (redis.asyncio.Redis().pipeline(), "client: it is a pipeline"),
        (
            Sentinels([("h", 1)]).slave_for("jobs"),
            r"nothing can be written; use Sentinel.master_for\('jobs'\)",
        ),
    ],
)
def test_what_is_no_client(client: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        RedisDriver(client)


def test_other_wrong_values() -> None:
    client = redis.asyncio.Redis()
    with pytest.raises(ConfigurationError, match="sync_client: it is a client for asynchronous"):
        RedisDriver(client, sync_client=client)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"sync_client: Fraction is not"):
        RedisDriver(client, sync_client=Fraction(1))  # type: ignore[arg-type]
    make: Any = RedisDriver
    for name, value, says in [
        ("replicas", -1, "replicas: -1 is not a whole number from 0"),
        ("replicas", True, "replicas: True is not a whole number"),
        ("fsync", 1, "fsync: 1 is not True or False"),
        ("keep_finished", -1, "keep_finished: -1 is not a whole number from 0"),
        ("pool_size", 0, "pool_size: 0 is not a whole number from 1"),
        ("timeout", 0, "timeout: 0 is not"),
        ("clock", 5, "clock: 5 is not a Clock"),
        ("prefix", "a b", "prefix: 'a b' has a brace, a space"),
    ]:
        with pytest.raises(ConfigurationError, match=says):
            make(client, **{name: value})


class Rotating(StreamingCredentialProvider):
    """Gives the password that holds now; and keeps whom it is to tell."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.number = self.asked = 0
        self.told: list[Callable[[Any], None]] = []

    @property
    def password(self) -> str:
        return f"pw{self.number}"

    def get_credentials(self) -> tuple[str, str]:
        self.asked += 1
        return self.user, self.password

    async def get_credentials_async(self) -> tuple[str, str]:
        return self.get_credentials()

    def on_next(self, callback: Callable[[Any], None]) -> None:
        self.told.append(callback)

    def on_error(self, callback: Callable[[Exception], None]) -> None: ...

    def is_streaming(self) -> bool:
        return True


@pytest.mark.parametrize("kind", [redis.asyncio.Redis, redis.Redis])
async def test_a_password_that_changes(server: RedisServer, new_job: NewJobs, kind: Any) -> None:
    provider = Rotating("app")

    def rotate() -> None:
        provider.number += 1
        words = ("resetpass", f">{provider.password}", "~*", "&*", "+@all")
        server.ask("ACL", "SETUSER", "app", "on", *words)
        server.ask("CLIENT", "KILL", "USER", "app")

    rotate()
    client = kind(port=server.port, credential_provider=provider)
    theirs = list(provider.told)
    driver = RedisDriver(client)
    driver.migrate_sync()
    synchronous = driver.sync_executor()
    for _ in range(3):
        assert synchronous.insert_many([new_job()])[0].status == "INSERTED"
        if kind is redis.asyncio.Redis:
            # What only reads is sent again when its connection is gone.
            assert await driver.executor().count(ListFilter()) > 0
            result = await driver.executor().insert_many([new_job()])
            assert result[0].status == "INSERTED"
            heart = driver.heartbeater()
            assert heart is not None
            assert not heart.beat(new_session_id(), 60).held
            heart.close()
        rotate()
        asked = provider.asked
        assert synchronous.count(ListFilter()) > 0
        assert provider.asked > asked
    # What it tells goes to the client that was given, as before.
    assert provider.told == theirs
    if kind is redis.asyncio.Redis:
        await driver.aclose()
        await client.aclose()
    else:
        driver.close()
        client.close()
