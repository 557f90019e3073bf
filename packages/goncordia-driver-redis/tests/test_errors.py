"""What a server's refusals become."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from redis import exceptions as theirs

from goncordia.driver import NewJob
from goncordia.errors import (
    ConfigurationError,
    DriverBusyError,
    DriverError,
    DriverUnavailableError,
    GoncordiaError,
)
from goncordia_conformance.servers.redis import RedisServer
from goncordia_driver_redis import RedisDriver
from goncordia_driver_redis.clients.parameters import Address, Parameters
from goncordia_driver_redis.clients.places import ClusterPlace, FixedPlace
from goncordia_driver_redis.errors import Stage, code_of, verdict

NewJobs = Callable[..., NewJob]
Servers = Callable[..., AbstractContextManager[RedisServer]]

HERE = FixedPlace(Parameters(Address("h", 1)))
CLUSTER = ClusterPlace(Parameters(Address("h", 1)), [Address("h", 1)], b"k")
INSIDE = " script: 0123, on @user_script:7."


def parsed(line: str) -> Exception:
    """What redis-py makes of an error's line."""
    from redis._parsers.base import BaseParser

    parser: Any = BaseParser
    error: Exception = parser.parse_error(line)
    return error


@pytest.mark.parametrize(
    ("line", "error", "outcome", "again", "says"),
    [
        ("LOADING Redis is loading", DriverUnavailableError, "not_applied", True, "loading its"),
        ("READONLY Can not", DriverUnavailableError, "not_applied", True, "is a replica"),
        ("MASTERDOWN Link", DriverUnavailableError, "not_applied", True, "lost its primary"),
        ("CLUSTERDOWN Hash", DriverUnavailableError, "not_applied", True, "the cluster is down"),
        ("TRYAGAIN Multiple", DriverUnavailableError, "not_applied", True, "moving the slot"),
        ("ASK 1 a:2", DriverUnavailableError, "not_applied", True, "moving the slot"),
        ("NOREPLICAS Not", DriverUnavailableError, "not_applied", False, "too few replicas"),
        ("OOM command not", DriverBusyError, "not_applied", False, "memory is full"),
        ("BUSY Redis is busy", DriverBusyError, "not_applied", True, "slow script"),
        ("MISCONF Errors", DriverBusyError, "not_applied", False, "cannot write to its disk"),
        ("NOSCRIPT No", DriverBusyError, "not_applied", True, "forgets our scripts"),
        ("ERR max number of clients reached", DriverBusyError, "not_applied", False, "maxclients"),
        ("OOM command not" + INSIDE, DriverBusyError, "unknown", False, "memory is full"),
        ("READONLY x" + INSIDE, DriverUnavailableError, "unknown", False, "is a replica"),
        (
            "NOAUTH Authentication required.",
            DriverUnavailableError,
            "not_applied",
            False,
            "the login",
        ),
        ("WRONGPASS invalid", DriverUnavailableError, "not_applied", False, "the login"),
        ("ERR x" + INSIDE, DriverError, "unknown", False, "refuses a call: ERR x"),
        ("ERR x", DriverError, "not_applied", False, "refuses a call: ERR x"),
    ],
)
def test_answers(line: str, error: type[Exception], outcome: str, again: bool, says: str) -> None:
    found = verdict(parsed(line), HERE, "p", "running")
    assert type(found.error) is error
    assert isinstance(found.error, DriverError)
    assert (found.error.outcome, found.again) == (outcome, again)
    assert says in str(found.error)
    assert line.partition(" ")[0] in str(found.error) or "maxclients" in says


@pytest.mark.parametrize(
    ("line", "stage", "says"),
    [
        ("WRONGPASS invalid username", "opening", "client: h:1 refuses the login: WRONGPASS"),
        (
            "NOAUTH HELLO must be",
            "opening",
            "client: h:1 refuses the login: it asks for a password",
        ),
        ("DENIED protected mode", "opening", "client: h:1 refuses the login: DENIED"),
        ("ERR DB index is out of range", "opening", "client: h:1 refuses the connection: ERR DB"),
        ("NOPERM User bob has no", "running", "client: its user lacks a right (NOPERM User bob"),
        ("ERR The user executing the script can't run" + INSIDE, "running", "lacks a right (ERR"),
        ("ERR ACL failure in script: User" + INSIDE, "running", "lacks a right (ERR ACL failure"),
        ("WRONGTYPE Operation" + INSIDE, "running", "prefix: under 'p' there is a key that is"),
        ("MOVED 5 a:1", "running", "give the driver a RedisCluster, or a URL redis+cluster://"),
    ],
)
def test_what_to_change(line: str, stage: Stage, says: str) -> None:
    found = verdict(parsed(line), HERE, "p", stage)
    assert type(found.error) is ConfigurationError
    assert says in str(found.error)
    assert not found.again


def test_in_a_cluster_the_slot_is_looked_for_again() -> None:
    found = verdict(parsed("MOVED 5 a:1"), CLUSTER, "p", "running")
    assert isinstance(found.error, DriverUnavailableError)
    assert (found.again, found.moved) == (True, True)
    assert not verdict(parsed("ASK 5 a:1"), CLUSTER, "p", "running").moved


@pytest.mark.parametrize(
    "error",
    [
        theirs.ConnectionError("Connection closed by server."),
        theirs.TimeoutError("Timeout reading from h:1"),
        TimeoutError(),
        ConnectionResetError(104, "Connection reset by peer"),
        ssl.SSLError("bad record"),
        asyncio.IncompleteReadError(b"+O", 4),
        theirs.InvalidResponse("Protocol Error"),
    ],
)
def test_lost_connections(error: Exception) -> None:
    for stage, writes, outcome in [
        ("running", True, "unknown"),
        ("running", False, "not_applied"),
        ("connecting", True, "not_applied"),
        ("opening", True, "not_applied"),
    ]:
        found: Any = verdict(error, HERE, "p", stage, writes=writes)  # type: ignore[arg-type]
        assert type(found.error) is DriverUnavailableError
        assert found.error.outcome == outcome
        assert "h:1" in str(found.error)


@pytest.mark.parametrize(
    ("error", "tls", "hint"),
    [
        (theirs.ConnectionError("Connection closed by server."), False, True),
        (theirs.ConnectionError("Error: (104, 'Connection reset by peer')"), False, True),
        (theirs.ConnectionError("Error 32 while writing. Broken pipe."), False, True),
        (theirs.ConnectionError("Error while writing. Connection lost."), False, True),
        (ConnectionResetError(104, "Connection reset by peer"), False, True),
        (ConnectionResetError(104, "Connection reset by peer"), True, False),
        (theirs.ConnectionError("Error 111 connecting to h:1."), False, False),
        (TimeoutError(), False, False),
        (TimeoutError(), True, True),
        (theirs.TimeoutError("Timeout connecting to server"), True, True),
        (theirs.ConnectionError("[SSL: WRONG_VERSION_NUMBER] wrong version number"), True, True),
        (theirs.ConnectionError("certificate verify failed"), True, False),
    ],
)
def test_the_wrong_kind_of_port(error: Exception, tls: bool, hint: bool) -> None:
    scheme = "redis" if tls else "rediss"
    place = FixedPlace(Parameters(Address("h", 1), tls=tls))
    said = str(verdict(error, place, "p", "opening").error)
    assert said.endswith(f"the scheme is {scheme})") is hint
    assert ("is that port for TLS?" in said) is hint
    socket = FixedPlace(Parameters("/s", tls=tls))
    for other, stage in ((place, "connecting"), (place, "running"), (socket, "opening")):
        assert "port" not in str(verdict(error, other, "p", stage).error)  # type: ignore[arg-type]


def test_what_was_sent_is_not_shown() -> None:
    error = parsed("ERR unknown command 'EVALSHA', with args beginning with: 's3cr3t' ")
    assert "s3cr3t" not in str(verdict(error, HERE, "p", "running").error)


def test_codes() -> None:
    assert code_of(parsed("CLUSTERDOWN Hash slot not served")) == "CLUSTERDOWN"
    assert code_of(parsed("WRONGTYPE Operation")) == "WRONGTYPE"
    assert code_of(parsed("no code at all")) == "ERR"
    assert code_of(theirs.ConnectionError("gone")) is None


# ---------------------------------------------------------------- of real servers


async def test_memory_that_is_full(new_job: NewJobs, a_server: Servers) -> None:
    with a_server(maxmemory="1", maxmemory_policy="noeviction") as server:
        async with RedisDriver(server.url) as driver:
            await driver.migrate()
            await driver.ready()
            with pytest.raises(DriverBusyError, match="memory is full") as failed:
                await driver.executor().insert_many([new_job()])
            assert failed.value.outcome == "not_applied"
            with pytest.raises(DriverBusyError, match="memory is full"):
                driver.sync_executor().insert_many([new_job()])
            server.ask("CONFIG", "SET", "maxmemory", "0")
            (result,) = await driver.executor().insert_many([new_job()])
            assert result.status == "INSERTED"


async def test_a_password_that_is_missing(new_job: NewJobs, a_server: Servers) -> None:
    with a_server(requirepass="s3cr3t") as server:
        none = server.url + "?protocol="
        asks = r"refuses the login: it asks for a password: redis://:password@host"
        for url, says in (
            (none + "2", asks),
            (none + "3", asks),
            (server.url.replace("//", "//:wr0ng@"), "refuses the login: WRONGPASS"),
        ):
            with pytest.raises(ConfigurationError, match=says) as failed:
                await RedisDriver(url).open()
            assert "wr0ng" not in str(failed.value)
            with pytest.raises(ConfigurationError, match=says):
                RedisDriver(url).sync_executor().now()
        async with RedisDriver(server.url.replace("//", "//:s3cr3t@")) as driver:
            assert await driver.migrate()


async def test_a_database_that_is_not_there(redis_url: str) -> None:
    url = f"{redis_url.rpartition('/')[0]}/999999"
    with pytest.raises(ConfigurationError, match=r"client: .* refuses the connection: .*DB index"):
        await RedisDriver(url).open()


async def test_nobody_listens() -> None:
    driver = RedisDriver("redis://127.0.0.1:1")
    for _ in range(2):
        with pytest.raises(DriverUnavailableError, match=r"connect to 127\.0\.0\.1:1: ") as failed:
            await driver.open()
        assert failed.value.outcome == "not_applied"
    with pytest.raises(DriverUnavailableError, match=r"connect to 127\.0\.0\.1:1: "):
        driver.sync_executor().now()


async def test_too_many_clients(new_job: NewJobs, a_server: Servers) -> None:
    with a_server(maxclients="2") as server:
        async with RedisDriver(server.url, pool_size=5) as driver:
            await driver.migrate()
            await driver.ready()
            executor = driver.executor()
            jobs = [new_job() for _ in range(20)]
            results = await asyncio.gather(
                *[executor.insert_many([job]) for job in jobs], return_exceptions=True
            )
            refused = [each for each in results if isinstance(each, DriverError)]
            assert len(refused) + sum(isinstance(each, list) for each in results) == len(jobs)
            assert refused
            # Its answer may be lost: the server hangs up at once.
            assert {type(each) for each in refused} <= {DriverBusyError, DriverUnavailableError}
            assert {each.outcome for each in refused} == {"not_applied"}
            # The connection that is there stays in use.
            (result,) = await executor.insert_many([new_job()])
            assert result.status == "INSERTED"


async def test_a_replica(new_job: NewJobs, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goncordia_driver_redis.runner._PAUSES", (0.001, None))
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        await driver.ready()
        server.ask("REPLICAOF", "127.0.0.1", "1")
        with pytest.raises(DriverUnavailableError, match="is a replica") as failed:
            await driver.executor().insert_many([new_job()])
        assert failed.value.outcome == "not_applied"
        server.ask("REPLICAOF", "NO", "ONE")
        (result,) = await driver.executor().insert_many([new_job()])
        assert result.status == "INSERTED"


async def test_a_key_that_is_not_ours(
    driver: RedisDriver, redis_url: str, new_job: NewJobs
) -> None:
    import redis.asyncio

    async with redis.asyncio.Redis.from_url(redis_url) as client:
        await client.set(f"{{{driver.prefix}}}:h:7:default:work", "mine")
    with pytest.raises(ConfigurationError) as failed:
        await driver.executor().insert_many([new_job()])
    assert f"prefix: under {driver.prefix!r} there is a key that is not" in str(failed.value)


async def test_a_single_server_is_no_cluster(redis_url: str) -> None:
    url = redis_url.replace("redis://", "redis+cluster://").rpartition("/")[0]
    with pytest.raises(ConfigurationError, match="is not a node of a cluster; for a single server"):
        await RedisDriver(url).open()


async def test_a_node_of_a_cluster_is_no_single_server(redis_cluster_url: str) -> None:
    nodes = redis_cluster_url.partition("://")[2].split(",")
    says: list[str] = []
    for node in nodes:
        async with RedisDriver(f"redis://{node}", prefix="nobody's") as driver:
            with pytest.raises(GoncordiaError) as failed:
                await driver.verify()
            says.append(str(failed.value))
    refused = ["is a node of a cluster: give the driver a RedisCluster" in each for each in says]
    # One of them has the slot; nothing was migrated there.
    assert sum(refused) == len(nodes) - 1


async def test_sentinels_that_do_not_know_the_name(redis_sentinel_url: str) -> None:
    url = redis_sentinel_url.rpartition("/")[0].rpartition("/")[0]
    with pytest.raises(ConfigurationError, match=r"service: the Sentinels .* know no primary 'x'"):
        await RedisDriver(f"{url}/x").open()
    with pytest.raises(ConfigurationError, match="know no primary 'x'"):
        RedisDriver(f"{url}/x").sync_executor().now()


async def test_sentinels_that_do_not_answer() -> None:
    driver = RedisDriver("redis+sentinel://127.0.0.1:1,127.0.0.1:2/jobs")
    with pytest.raises(
        DriverUnavailableError, match=r"no Sentinel of .*127\.0\.0\.1:2 tells where"
    ):
        await driver.open()
    driver = RedisDriver("redis+cluster://127.0.0.1:1,127.0.0.1:2")
    with pytest.raises(DriverUnavailableError, match=r"no node of the cluster at .* tells who has"):
        await driver.open()
