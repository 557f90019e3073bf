"""What ``goncordia doctor`` says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import redis

from goncordia.driver import AnyDriver, FetchRequest, NewJob, PruneRequest, QueueFetch
from goncordia.errors import ConfigurationError
from goncordia.ids import new_session_id
from goncordia_conformance.commands import doctor_before_and_after
from goncordia_conformance.servers.redis import RedisServer
from goncordia_driver_redis import RedisDriver
from goncordia_driver_redis.durability import Durability
from goncordia_driver_redis.server import Server, read_info

Servers = Callable[..., AbstractContextManager[RedisServer]]


GOOD = {"appendonly": "yes", "appendfsync": "everysec", "maxmemory_policy": "noeviction"}


async def findings(url: str, **options: int | bool) -> list[tuple[str, str]]:
    async with RedisDriver(url, **options) as driver:  # type: ignore[arg-type]
        await driver.migrate()
        return [(each.level, each.message) for each in await driver.check()]


async def test_nothing_is_wrong(a_server: Servers) -> None:
    with a_server(**GOOD) as server:
        for protocol in (2, 3):
            assert await findings(f"{server.url}?protocol={protocol}") == []


async def test_before_the_migration(server: RedisServer) -> None:
    async with RedisDriver(server.url) as driver:
        (finding,) = await driver.check()
    assert finding.level == "error"
    assert "run migrate()" in finding.message


@pytest.mark.parametrize(
    ("name", "value", "level", "says"),
    [
        ("maxmemory-policy", "allkeys-lru", "warning", "throws jobs away"),
        ("appendfsync", "no", "warning", "appendfsync is no"),
        ("appendonly", "no", "error", "persistence is off (appendonly no, and no save)"),
    ],
)
async def test_settings(name: str, value: str, level: str, says: str, a_server: Servers) -> None:
    with a_server(**GOOD) as server:
        server.ask("CONFIG", "SET", name, value)
        ((found, message),) = await findings(server.url)
    assert found == level
    assert says in message


async def test_snapshots_alone(a_server: Servers) -> None:
    with a_server(save="60 1000") as server:
        ((level, message),) = await findings(server.url)
    assert level == "warning"
    assert "since its last snapshot" in message


async def test_memory(a_server: Servers) -> None:
    with a_server(**GOOD, maxmemory="1gb") as server:
        server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
        ((level, message),) = await findings(server.url)
        assert level == "error"
        assert "throws jobs away" in message
        server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1mb")
        ((level, message),) = await findings(server.url)
        assert level == "warning"
        assert "of maxmemory is used" in message


async def test_rights(a_server: Servers) -> None:
    with a_server(**GOOD) as server:
        await findings(server.url)
        url = server.url.replace("//", "//app:pw@")
        server.ask("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "&*", "-ssubscribe")
        async with RedisDriver(url) as driver:
            (finding,) = await driver.check()
        assert finding.level == "warning"
        assert "may not hear on the channel {goncordia}:wake: idle workers poll" in finding.message
        server.ask("ACL", "SETUSER", "app", "-evalsha")
        async with RedisDriver(url) as driver:
            (finding,) = await driver.check()
        assert finding.level == "error"
        assert "its user lacks a right (NOPERM" in finding.message


async def test_what_nobody_holds(a_server: Servers, new_job: Callable[..., NewJob]) -> None:
    with a_server(**GOOD) as server:
        async with RedisDriver(server.url) as driver:
            await driver.migrate()
            executor, session = driver.executor(), new_session_id()
            jobs = [new_job(), new_job()]
            await executor.insert_many(jobs)
            await executor.session_open(session, "w", 60)
            request = FetchRequest(session, 1, 2, (QueueFetch("default", 2),), "w")
            assert len((await executor.fetch(request)).jobs) == 2
            assert await driver.check() == []
            with redis.Redis.from_url(server.url) as client:
                client.zrem(b"{goncordia}:c:" + session.bytes, jobs[1].id.bytes)
            (finding,) = await driver.check()
            assert finding.level == "error"
            assert "2 running jobs are counted, and worker pools hold 1" in finding.message
            assert f"held by nobody: {jobs[1].id}. Any worker pool mends" in finding.message
            await executor.prune(PruneRequest())
            assert await driver.check() == []


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        (b"l:0:p:7:default:", "1 jobs at least are in no line or list, where worker pools and"),
        (b"gr", "1 running jobs are counted in groups, and worker pools hold 2"),
    ],
)
async def test_keys_that_are_gone(
    lost: bytes, says: str, a_server: Servers, new_job: Callable[..., NewJob]
) -> None:
    with a_server(**GOOD) as server:
        async with RedisDriver(server.url) as driver:
            await driver.migrate()
            executor, session = driver.executor(), new_session_id()
            jobs = [new_job(group=name, group_limit=1) for name in "ab"]
            await executor.insert_many(jobs)
            await executor.session_open(session, "w", 60)
            request = FetchRequest(session, 1, 2, (QueueFetch("default", 2),), "w")
            assert len((await executor.fetch(request)).jobs) == 2
            await executor.insert_many([job := new_job()])
            assert await driver.check() == []
            with redis.Redis.from_url(server.url) as client:
                if lost == b"gr":
                    assert client.hdel(b"{goncordia}:gr", "a")
                else:
                    assert client.delete(b"{goncordia}:" + lost + job.kind.encode())
            (finding,) = await driver.check()
            assert finding.level == "error"
            assert says in finding.message
            assert "Any worker pool mends that within its retention's" in finding.message
            await executor.prune(PruneRequest())
            assert await driver.check() == []


async def test_what_an_enqueue_is_to_wait_for(a_server: Servers) -> None:
    with a_server() as server:
        found = await findings(server.url, replicas=1, fsync=True)
    assert [level for level, _ in found] == ["error"] * 3
    assert "persistence is off" in found[0][1]
    assert "replicas: the primary has 0, and 1 are to have" in found[1][1]
    assert "fsync: the server " in found[2][1]


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ("redis_version:7.0.15\naof_enabled:1", "is Redis 7.0, which has no WAITAOF"),
        ("redis_version:7.2.0\naof_enabled:0", "has no append-only file"),
        ("redis_version:7.2.4\nvalkey_version:8.0.1\naof_enabled:0", "has no append-only file"),
        ("redis_version:7.2.4\naof_enabled:1", None),
        ("redis_version:unstable", None),
        ("", None),
    ],
)
def test_servers_without_waitaof(said: str, says: str | None) -> None:
    found = list(Durability(0, True, 1.0).unmet(read_info(said.encode())))
    assert [each for each in found if says is None or says not in str(each)] == []
    assert len(found) == (says is not None)


def test_a_replica_has_none_of_its_own() -> None:
    asked = Durability(1, False, 1.0)
    assert list(asked.unmet({"role": "slave", "connected_slaves": "0"})) == []
    assert list(asked.unmet({"role": "master", "connected_slaves": "1"})) == []
    assert len(list(asked.unmet({"role": "master", "connected_slaves": "0"}))) == 1


async def test_replicas_that_nobody_waits_for(redis_sentinel_url: str) -> None:
    messages = [message for _, message in await findings(redis_sentinel_url)]
    assert any("does not wait for them" in message for message in messages)


async def test_a_replica(server: RedisServer) -> None:
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        server.ask("REPLICAOF", "127.0.0.1", "1")
        found = [each.message for each in await driver.check()]
        server.ask("REPLICAOF", "NO", "ONE")
    assert any("the server is a replica" in message for message in found)


@pytest.mark.parametrize(
    ("said", "shown", "old"),
    [
        ("redis_version:6.2.19", "Redis 6.2", True),
        ("redis_version:7.0.15", "Redis 7.0", False),
        ("redis_version:10.0.0", "Redis 10.0", False),
        ("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.0", "Valkey 9.1", False),
        ("redis_version:7.0.0\r\nvalkey_version:7.1.0", "Valkey 7.1", True),
    ],
)
def test_versions(said: str, shown: str, old: bool) -> None:
    server = Server.read(read_info(f"# Server\r\n{said}\r\n".encode()))
    assert server is not None
    assert str(server) == shown
    if old:
        with pytest.raises(ConfigurationError, match=f"the server is {shown}; Goncordia needs"):
            server.check()
    else:
        server.check()


@pytest.mark.parametrize("answer", [None, Exception("NOPERM"), b"", b"redis_version:unstable\r\n"])
def test_a_version_that_is_not_told(answer: object) -> None:
    assert Server.read(read_info(answer)) is None


def test_the_command(make: Callable[..., AnyDriver], monkeypatch: pytest.MonkeyPatch) -> None:
    found = doctor_before_and_after(make, monkeypatch)
    # The server of the tests is one that keeps nothing.
    assert [each for each in found["findings"] if "persistence" not in each["message"]] == []
