"""Waiting until what was enqueued is safe."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import pytest
from redis.exceptions import NoScriptError

from goncordia.driver import NewJob
from goncordia.errors import ConfigurationError, DriverError, DriverUnavailableError
from goncordia_conformance.backends import needed
from goncordia_conformance.servers.redis import RedisBinary, RedisServer, find_redis
from goncordia_driver_redis import RedisDriver

NewJobs = Callable[..., NewJob]
Servers = Callable[..., AbstractContextManager[RedisServer]]


BINARIES: dict[str, Callable[[], RedisBinary]] = {
    "redis": partial(find_redis, "redis"),
    "redis8": partial(find_redis, "redis", 8),
    "valkey": partial(find_redis, "valkey"),
}
"""What finds a program, by the name of its backend."""


@pytest.fixture(params=BINARIES)
def binary(request: pytest.FixtureRequest) -> RedisBinary:
    """What a client has to do to be waited for differs from version to version."""
    return needed(request.param, request.config, BINARIES[request.param])


@contextmanager
def a_pair(a_server: Servers, binary: RedisBinary) -> Iterator[tuple[RedisServer, RedisServer]]:
    """A primary, and a replica that has reached it."""
    with (
        a_server(binary, repl_diskless_sync_delay="0") as primary,
        a_server(binary) as replica,
    ):
        replica.ask("REPLICAOF", "127.0.0.1", str(primary.port))
        yield primary, replica


def has_reached(replica: RedisServer) -> bool:
    return replica.info("replication").get("master_link_status") == "up"


async def reached(replica: RedisServer) -> None:
    async with asyncio.timeout(60):
        while True:
            if has_reached(replica):
                return
            await asyncio.sleep(0.01)


async def test_replicas(a_server: Servers, binary: RedisBinary, new_job: NewJobs) -> None:
    with a_pair(a_server, binary) as (primary, replica):
        await reached(replica)
        async with RedisDriver(primary.url + "?socket_timeout=60", replicas=1) as driver:
            await driver.migrate()
            await driver.ready()
            (result,) = await driver.executor().insert_many([new_job()])
            assert result.status == "INSERTED"
            (result,) = driver.sync_executor().insert_many([new_job()])
            assert result.status == "INSERTED"


async def test_replicas_that_do_not_answer(
    a_server: Servers, binary: RedisBinary, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is repeated is waited for as well, though it writes nothing."""
    monkeypatch.setattr("goncordia_driver_redis.driver._SAFE", 0.3)
    says = "enqueued, but within 0.3 s not on 1 of 1 replicas: it is lost if"
    job = new_job()
    with a_pair(a_server, binary) as (primary, replica):
        await reached(replica)
        async with RedisDriver(primary.url) as driver:
            await driver.migrate()
        replica.freeze()
        for _ in range(2):  # on new connections, which have written nothing yet
            async with RedisDriver(primary.url, replicas=1) as driver:
                with pytest.raises(DriverUnavailableError, match=says) as failed:
                    await driver.executor().insert_many([job])
                assert failed.value.outcome == "unknown"
                (row,) = await driver.executor().get_many([job.id])
                assert row is not None
        with (
            RedisDriver(primary.url, replicas=1) as driver,
            pytest.raises(DriverUnavailableError, match=says),
        ):
            driver.sync_executor().insert_many([job])


class Forgetful:
    """A connection to a server that forgets scripts three times."""

    def __init__(self) -> None:
        self.answers: list[list[Any]] = [[NoScriptError("No"), b"OK", 1]] * 3 + [[[], b"OK", 0]]

    def send_many(self, commands: Sequence[bytes]) -> list[Any]:
        assert len(commands) == 3
        return self.answers.pop(0)

    def ask(self, *command: bytes) -> None:
        assert command[:2] == (b"SCRIPT", b"LOAD")


def test_scripts_that_are_forgotten_do_not_make_it_less_safe(new_job: NewJobs) -> None:
    driver = RedisDriver("redis://h", replicas=1)
    call = next(driver._operations.insert_many([new_job()]))
    link: Any = Forgetful()
    with pytest.raises(DriverUnavailableError, match="not on 1 of 1 replicas"):
        driver._sync_runner.on(link, call, durable=True)
    assert link.answers == []


async def are_refused(
    server: RedisServer, error: type[Exception], says: str, new_job: NewJobs, **options: Any
) -> None:
    """Asynchronous and synchronous code are, before anything is written."""
    async with RedisDriver(server.url, **options) as driver:
        await driver.migrate()
        job = new_job()
        for _ in range(2):
            with pytest.raises(error, match=says):
                await driver.ready()
            with pytest.raises(error, match=says):
                driver.sync_executor().insert_many([job])
        assert await driver.executor().get_many([job.id]) == [None]


async def test_servers_that_cannot_tell(
    a_server: Servers, binary: RedisBinary, new_job: NewJobs
) -> None:
    says = "fsync: the server is Redis 7.0, which has no WAITAOF; .* 7.2"
    if binary.version >= (7, 2):
        says = "fsync: the server has no append-only file: set its appendonly to yes"
    with a_server(binary) as server:
        await are_refused(server, ConfigurationError, says, new_job, fsync=True)


async def test_fewer_replicas(a_server: Servers, binary: RedisBinary, new_job: NewJobs) -> None:
    with a_pair(a_server, binary) as (primary, replica):
        await reached(replica)
        says = "replicas: the primary has 1, and 2 are to have what is enqueued: connect more"
        await are_refused(primary, DriverUnavailableError, says, new_job, replicas=2)
        says = "replicas: the primary has 0, and 1 are"
    with a_server(binary) as alone:
        await are_refused(alone, DriverUnavailableError, says, new_job, replicas=1)


async def test_who_may_not_ask_goes_on(a_server: Servers, new_job: NewJobs) -> None:
    """What the server cannot do shows then when something is enqueued, and is no setting's."""
    with a_server() as server:
        async with RedisDriver(server.url) as driver:
            await driver.migrate()
        server.ask("ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-info")
        url = server.url.replace("//", "//app:pw@")
        async with RedisDriver(url, fsync=True) as driver:
            await driver.ready()
            await is_unsure(driver, new_job())


async def test_the_disk(a_server: Servers, binary: RedisBinary, new_job: NewJobs) -> None:
    if binary.version < (7, 2):
        pytest.skip("it has no WAITAOF")
    with a_server(binary, appendonly="yes") as server:
        async with RedisDriver(server.url + "?socket_timeout=60", fsync=True) as driver:
            await driver.migrate()
            await driver.ready()
            (result,) = await driver.executor().insert_many([new_job()])
            assert result.status == "INSERTED"
            (result,) = driver.sync_executor().insert_many([new_job()])
            assert result.status == "INSERTED"
            server.ask("CONFIG", "SET", "appendonly", "no")
            await is_unsure(driver, new_job())


async def is_unsure(driver: RedisDriver, job: NewJob) -> None:
    """The job is there, and the error does not say otherwise."""
    for _ in range(2):
        with pytest.raises(DriverError, match="enqueued, but whether it is safe") as failed:
            await driver.executor().insert_many([job])
        assert failed.value.outcome == "unknown"
        with pytest.raises(DriverError, match="enqueued, but whether it is safe") as failed:
            driver.sync_executor().insert_many([job])
        assert failed.value.outcome == "unknown"
    (row,) = await driver.executor().get_many([job.id])
    assert row is not None
