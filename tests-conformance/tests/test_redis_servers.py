"""Servers of tests: Redis and Valkey, a cluster, Sentinels, and rooms on them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.exceptions import NoScriptError

from goncordia_conformance.backends import docker_runs, needed
from goncordia_conformance.marks import MISSING
from goncordia_conformance.servers.containers import describe_redis, redis_container
from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.prefixes import connect_redis, own_prefix
from goncordia_conformance.servers.process import NotHereError
from goncordia_conformance.servers.redis import (
    SAFE,
    TESTS,
    RedisBinary,
    RedisServer,
    asked_for,
    find_here,
    find_redis,
)
from goncordia_conformance.servers.redis_cluster import RedisCluster
from goncordia_conformance.servers.redis_monitor import Monitor
from goncordia_conformance.servers.redis_sentinel import RedisSentinel

KINDS = ["redis_url", "redis8_url", "valkey_url", "redis_cluster_url", "redis_sentinel_url"]


@pytest.fixture
def binary(request: pytest.FixtureRequest) -> RedisBinary:
    """A program; without one there is nothing to test here."""
    return needed("redis", request.config, find_here)


# ---------------------------------------------------------------- one server


@pytest.mark.parametrize(
    ("fixture", "about"),
    [("redis8_url", "redis_version:8"), ("valkey_url", "valkey_version:")],
)
def test_it_is_what_its_name_says(request: pytest.FixtureRequest, fixture: str, about: str) -> None:
    with connect_redis(request.getfixturevalue(fixture)) as client:
        name, _, version = about.partition(":")
        assert str(client.info("server")[name]).startswith(version)


def test_what_it_answered_to_is_there_after_a_crash(binary: RedisBinary) -> None:
    server = RedisServer.create(binary, SAFE)
    with guarded(server.run):
        server.ask("SET", "answer", "42")
        server.kill()
        with pytest.raises(redis.ConnectionError):
            server.ask("PING")
        server.kill()  # it is dead already
        server.start()
        assert server.ask("GET", "answer") == "42"
        server.stop()
        server.start()
        assert server.ask("GET", "answer") == "42"
    assert not server.home.exists()
    with pytest.raises(redis.ConnectionError):
        server.ask("PING")


def test_it_keeps_nothing_where_it_need_not(binary: RedisBinary) -> None:
    server = RedisServer.create(binary)
    with guarded(server.run):
        assert server.ask("CONFIG", "GET", "save")[1] == ""
        server.ask("SET", "answer", "42")
        server.stop()
        server.start()
        assert server.ask("GET", "answer") is None


def test_it_stands_still_and_goes_on(binary: RedisBinary) -> None:
    server = RedisServer.create(binary)
    with guarded(server.run) as url, redis.Redis.from_url(url, socket_timeout=0.1) as client:
        assert client.ping()
        server.freeze()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        server.thaw()
        assert server.ask("PING") == "PONG"


def test_one_that_does_not_start_is_told_with_its_words(binary: RedisBinary) -> None:
    server = RedisServer.create(binary, {**TESTS, "maxmemory": "plenty"})
    with pytest.raises(RuntimeError, match="maxmemory"), guarded(server.run):
        pass
    assert not server.home.exists()


def test_a_version_that_is_not_here() -> None:
    with pytest.raises(NotHereError, match=r"no server program of redis 1\.3 on this machine"):
        find_redis("redis", 1, 3)


def test_a_program_of_another_system_runs_with_its_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from goncordia_conformance.servers import redis as module

    libraries, programs = tmp_path / "usr/lib/arch", tmp_path / "usr/bin"
    for folder in (libraries, programs):
        folder.mkdir(parents=True)
    loader, program = libraries / "ld-linux-arch.so.2", programs / "valkey-server"
    right = f"--library-path {libraries} {program} --version"
    loader.write_text(f'#!/bin/sh\n[ "$*" = "{right}" ] && echo "Valkey server v=8.1.3 sha=0"\n')
    program.write_text("#!/bin/sh\necho wrong libraries >&2; exit 1\n")
    for file in (loader, program):
        file.chmod(0o755)
    monkeypatch.setattr(module, "_PLACES", (str(programs),))
    monkeypatch.setenv("PATH", "/nowhere")
    found = find_redis()
    assert (found.flavour, found.version) == ("valkey", (8, 1))
    assert found.command[0] == str(loader)
    with pytest.raises(NotHereError):
        find_redis("redis")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", (None, ())),
        ("7.4", ("redis", (7, 4))),
        ("8", ("redis", (8,))),
        ("redis-7.0", ("redis", (7, 0))),
        ("valkey-8.1", ("valkey", (8, 1))),
    ],
)
def test_the_version_that_is_asked_for(text: str, meant: object) -> None:
    assert asked_for(text) == meant


def test_the_container_is_described_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    # All that making one asks of Docker: which version it speaks.
    monkeypatch.setattr("docker.api.client.APIClient._retrieve_server_version", lambda _: "1.44")
    container = describe_redis("valkey", "8.1")
    assert container.image == "valkey/valkey:8.1"
    assert str(container._command).startswith("['valkey-server', '--save', '',")
    assert describe_redis("redis", "7.4").image == "redis:7.4"


def test_a_container_starts() -> None:
    if not docker_runs():
        pytest.skip(f"{MISSING}: a container of Redis: Docker does not run here")
    with guarded(partial(redis_container, "valkey", "8")) as url, connect_redis(url) as client:
        assert client.ping()


# ---------------------------------------------------------------- many


def test_a_cluster_has_all_slots_and_a_replica_of_each(binary: RedisBinary) -> None:
    cluster = RedisCluster.create(binary, replicas=1)
    with guarded(cluster.run) as url, connect_redis(url) as client:
        owners = {
            cluster.owner(f"{{{key}}}:x", node).port for key in "abcdef" for node in cluster.nodes
        }
        assert owners == {node.port for node in cluster.nodes[:3]}
        for key in "abcdef":
            client.set(key, "1")
        for primary, replica in zip(cluster.nodes[:3], cluster.nodes[3:], strict=True):
            assert replica.info("replication")["master_port"] == f"{primary.port}"


def test_sentinels_make_the_replica_the_primary(binary: RedisBinary) -> None:
    watched = RedisSentinel.create(binary, sentinels=3, settle=3000)
    with guarded(watched.run) as url:
        first = watched.primary()
        assert first == watched.servers[0]
        watched.fail_over()
        with connect_redis(url) as client:
            assert client.set("answer", "42")
            assert client.wait(1, 20_000) == 1
        assert [server.ask("GET", "answer") for server in watched.servers] == ["42", "42"]
        assert watched.primary() == watched.servers[1]


def test_a_slot_is_moved(binary: RedisBinary) -> None:
    cluster = RedisCluster.create(binary)
    with guarded(cluster.run) as url, connect_redis(url) as client:
        for number in range(50):
            client.set(b"{a}\xff%d" % number, "1")
        owner = cluster.owner("{a}", cluster.nodes[0])
        to = next(node for node in cluster.nodes if node != owner)
        cluster.move("{a}", to)
        assert all(cluster.owner("{a}", node) == to for node in cluster.nodes)
        assert client.get(b"{a}\xff7") == b"1"
        assert (owner.ask("DBSIZE"), to.ask("DBSIZE")) == (0, 50)


# ---------------------------------------------------------------- rooms


@pytest.mark.parametrize("fixture", KINDS)
def test_what_is_below_a_prefix_is_removed_and_nothing_else(
    request: pytest.FixtureRequest, fixture: str
) -> None:
    url: str = request.getfixturevalue(fixture)
    with own_prefix(url) as other, connect_redis(url) as client:
        client.set(f"{{{other}}}:kept", "1")
        with own_prefix(url) as prefix:
            keys = [f"{{{prefix}}}:{number}" for number in range(7)]
            for key in keys:
                client.set(key, "1")
        assert client.exists(*keys) == 0
        assert client.exists(f"{{{other}}}:kept") == 1


# ---------------------------------------------------------------- what a server was asked to do

COUNT_UP = """
    local all = redis.call('ZRANGE', KEYS[1], 0, -1)
    redis.call('ZADD', KEYS[1], #all, 'n' .. #all)
    return #all
    """
LOOK_AT_TWO = """
    redis.call('ZSCORE', KEYS[1], 'a')
    return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf', 'LIMIT', ARGV[1], 2)
    """


@pytest.fixture
def numbers(redis_url: str, redis_prefix: str) -> Iterator[tuple[Any, str]]:
    """A client, and the key of a sorted set of a hundred."""
    key = f"{{{redis_prefix}}}:numbers \"'\\é\n"
    with connect_redis(redis_url) as client:
        client.zadd(key, {f"{number}": number for number in range(100)})
        yield client, key


@pytest.mark.parametrize(
    ("script", "argument", "cost"),
    [
        # The scripts' own words are counted, too: EVAL has four besides its name.
        (COUNT_UP, "", 4 + (1 + 101) + 3),
        (LOOK_AT_TWO, 0, 4 + 2 + (1 + 0 + 2)),
        (LOOK_AT_TWO, 50, 4 + 2 + (1 + 50 + 2)),
    ],
)
async def test_what_a_call_costs(
    redis_url: str, numbers: tuple[Any, str], script: str, argument: object, cost: int
) -> None:
    client, key = numbers

    async def call() -> None:
        client.eval(script, 1, key, argument)

    assert await Monitor(redis_url).cost_of(call) == cost


async def test_loading_a_script_costs_nothing(redis_url: str, numbers: tuple[Any, str]) -> None:
    client, key = numbers

    async def call() -> None:
        with pytest.raises(NoScriptError):
            client.evalsha("f" * 40, 1, key)
        client.evalsha(client.script_load(LOOK_AT_TWO), 1, key, 0)

    assert await Monitor(redis_url).cost_of(call) == 9


async def test_a_command_of_unknown_cost_is_told(redis_url: str, numbers: tuple[Any, str]) -> None:
    client, key = numbers

    async def call() -> None:
        client.sort(key)

    with pytest.raises(AssertionError, match="what does b'SORT' look at"):
        await Monitor(redis_url).cost_of(call)


async def test_all_that_was_asked_is_heard(redis_url: str, numbers: tuple[Any, str]) -> None:
    client, key = numbers

    async def call() -> None:
        client.eval("redis.call('zadd', KEYS[1], ARGV[1], ARGV[2])", 1, key, 7, bytes(range(256)))

    outer, inner = await Monitor(redis_url).commands_of(call)
    assert (outer.name, outer.in_script) == (b"EVAL", False)
    assert (inner.name, inner.in_script) == (b"ZADD", True)
    assert inner.words[1:] == [key.encode(), b"7", bytes(range(256))]


async def test_commits_are_counted(redis_url: str, numbers: tuple[Any, str]) -> None:
    client, key = numbers

    async def call() -> None:
        with pytest.raises(NoScriptError):
            client.evalsha("f" * 40, 0)
        sha = client.script_load(COUNT_UP)
        for _ in range(3):
            client.evalsha(sha, 1, key)

    assert await Monitor(redis_url).commits_of(call) == 3

    async def outside() -> None:
        client.zadd(key, {"x": 1})

    with pytest.raises(AssertionError, match="not all of it was done by scripts"):
        await Monitor(redis_url).commits_of(outside)
