"""The rules in docs/redis/acl.md are enough, and not one of them is too many; the keys are told."""

from __future__ import annotations

import asyncio
import os
import re
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest
import redis

from goncordia import (
    Client,
    ConfigurationError,
    DriverError,
    FixedRetry,
    Job,
    Registry,
    SyncClient,
    UniqueOpts,
    WorkerPool,
)
from goncordia.driver import FetchRequest, Finish, Mark, PruneRequest, QueueFetch
from goncordia_conformance.backends import needed
from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.redis import TESTS, RedisServer, find_here
from goncordia_driver_redis import RedisDriver
from goncordia_driver_redis.operations import MAX_FETCH, MAX_INSERT
from goncordia_driver_redis.operations.claiming import MAX_FINISH
from goncordia_driver_redis.wire.layout import NUMBERS

PAGE = Path(__file__).parents[1] / "redis" / "acl.md"
LEASE = 30.0
SECONDS = 30
PASSWORD = "s3cret"  # of a server that is there for this test alone


@dataclass
class Ping:
    kind: ClassVar[str] = "ping"
    number: int = 0


class Server:
    """A server with one user, whose rules change."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.admin: Any = redis.Redis.from_url(url)
        self.user = ""

    def give(self, rules: Sequence[str]) -> None:
        """Make the user anew, with these rules."""
        self.admin.execute_command("ACL", "SETUSER", self.user, "reset", *rules)

    @property
    def theirs(self) -> str:
        """The URL of the user."""
        parts = urlsplit(self.url)
        login = f"{self.user}:{PASSWORD}@{parts.hostname}:{parts.port}"
        return parts._replace(netloc=login).geturl()


def rules(user: str) -> list[str]:
    """What the page grants to a user, word by word, less the name and the password."""
    found = re.search(
        rf"<!-- not run: {user} -->\n```text\nACL SETUSER {user} on >PASSWORD (.*?)```",
        PAGE.read_text(),
        re.DOTALL,
    )
    assert found is not None, user
    words: list[str] = re.findall(r"\([^)]*\)|\S+", found[1])
    return ["on", f">{PASSWORD}", *words]


@pytest.fixture
def server(redis_alone: str) -> Iterator[Server]:
    # A database that has to be selected, which is a right, too.
    server = Server(urlsplit(redis_alone)._replace(path="/1").geturl())
    with server.admin:
        yield server


# ---------------------------------------------------------------- what each of them does


async def enqueues(url: str) -> None:
    """All ways of enqueueing."""
    async with RedisDriver(url) as driver:
        client = Client(driver)
        await client.enqueue(Ping())
        await client.enqueue_many(
            [Ping(number) for number in range(520)]
        )  # more than a chunk of the index
        pipeline = uuid.uuid4().hex
        await client.enqueue_many([Ping(1), Ping(2)], pipeline_id=pipeline, delay=0.2)
        await client.enqueue(Ping(3), pipeline_id=pipeline)  # before its group's first
        await client.enqueue(Ping(), concurrency_key="k", concurrency_limit=2)
        await client.enqueue(Ping(), delay=0.2)
        await client.enqueue(Ping(), queue=uuid.uuid4().hex)  # of which nothing is known yet
        key = uuid.uuid4().hex
        for _ in range(2):
            await client.enqueue(Ping(), unique=UniqueOpts(key=key))
        await client.enqueue(Ping(), unique=UniqueOpts(by_args=True, by_period=60))
    with RedisDriver(url) as driver:
        SyncClient(driver).enqueue(Ping())


async def looks(url: str) -> None:
    async with RedisDriver(url) as driver:
        client = Client(driver)
        job, *_ = (await client.list(kind="ping")).jobs
        assert (await client.get(job)).id == job.id
        assert await client.count() > 0
        assert await client.queue_stats()


async def changes(url: str, **where: Any) -> None:
    async with RedisDriver(url) as driver:
        client = Client(driver)
        job, *_ = (await client.list(state="available", **where)).jobs
        await client.cancel(job)
        await client.retry(job)
        await client.reschedule(job, delay=0)
        await client.delete(job)


async def changes_of_a_group(url: str) -> None:
    await changes(url, concurrency_key="k")


async def pauses(url: str) -> None:
    async with RedisDriver(url) as driver:
        await Client(driver).queue_pause("q")
        await Client(driver).queue_resume("q")


async def works(url: str) -> None:
    """What a worker pool does, step by step; jobs of a group are there."""
    async with RedisDriver(url) as driver:
        await driver.verify()
        executor, session = driver.executor(), uuid.uuid4()
        put = await executor.record_put("leader/x", b"1", 0, b"a")
        put = await executor.record_put("leader/x", b"2", put.version, b"b")
        assert await executor.record_get("leader/x") is not None
        assert await executor.record_list("leader/")
        await executor.record_put("leader/x", None, put.version, b"c")
        await executor.session_open(session, "w", LEASE)
        assert (await executor.session_beat(session, LEASE)).held
        fetched = await executor.fetch(
            FetchRequest(session, 1, 1000, (QueueFetch("default", 1000),), "w")
        )
        claims = [row.claim for row in fetched.jobs if row.claim is not None]
        assert claims
        assert await executor.held(session, None, 10)
        await executor.mark_many([Mark(claim, started=True, checkpoint=b"1") for claim in claims])
        await executor.finish_many([Finish(claims[0], "release")])
        await executor.finish_many([Finish(claim, "complete", output=b"1") for claim in claims[1:]])
        assert await executor.expire(session, 10) == []
        now = await executor.now() + timedelta(seconds=1)
        await executor.prune(PruneRequest(completed=now, limit=1000))
        await executor.session_close(session)


async def a_pool_works(url: str) -> None:
    """The same by a pool, with a failure, and woken."""
    registry = Registry()

    @registry.worker(Ping, retry_policy=FixedRetry(0.01))
    async def ping(job: Job[Ping]) -> None:
        await job.checkpoint(job.attempt)
        if job.attempt == 1 and job.args.number == 0:
            raise ConnectionError

    async with (
        asyncio.timeout(SECONDS),
        RedisDriver(url) as driver,
        WorkerPool(driver, registry, poll_interval=SECONDS) as pool,
    ):
        await pool.drain(within=SECONDS)
        handle = await Client(driver).enqueue(Ping(1))
        assert (await Client(driver).wait(handle)) is None


async def hears(url: str) -> None:
    """What a worker's listener does; the driver itself would try again for ever."""
    with redis.Redis.from_url(url) as client, client.pubsub() as pubsub:
        pubsub.ssubscribe("{goncordia}:wake")
        pubsub.ping()
        answers = [pubsub.get_message(timeout=SECONDS) for _ in range(2)]
        assert [answer["type"] for answer in answers if answer] == ["ssubscribe", "pong"]


async def administers(url: str) -> None:
    """The schema, a look at the server, and at what is there."""
    async with RedisDriver(url) as driver:
        await driver.migrate()
        found = await driver.check()
        assert not [each for each in found if "lacks" in each.message or "NOPERM" in each.message]
    with redis.Redis.from_url(url) as client:
        assert client.config_get("appendonly")  # what check() would pass over
        for command in re.findall(r"```redis\n(.*?)```", MONITORING.read_text(), re.DOTALL):
            for line in command.splitlines():
                client.execute_command(*line.split())


MONITORING = PAGE.with_name("monitoring.md")
REFUSED = (ConfigurationError, DriverError, redis.ResponseError)
SAYS = re.compile("lacks a right|has no permissions")
Deeds = list[Callable[[str], Awaitable[None]]]

CASES: dict[str, tuple[Deeds, Deeds]] = {
    # What the rules are enough for; what they are not enough for.
    "shop_web": (
        [enqueues, looks],
        [changes, changes_of_a_group, pauses, works, hears, administers],
    ),
    "shop_worker": ([enqueues, looks, works, a_pool_works, hears, changes, pauses], [administers]),
    "shop_admin": ([administers, enqueues, looks, works, a_pool_works, hears, changes, pauses], []),
}


async def installed(server: Server) -> None:
    """Done by the owner of all rights."""
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
    await enqueues(server.url)


def left(server: Server) -> dict[bytes, Any]:
    """All that is there."""
    return {key: server.admin.dump(key) for key in sorted(server.admin.keys("*"))}


@pytest.mark.parametrize("user", CASES)
async def test_they_are_enough(user: str, server: Server) -> None:
    can, cannot = CASES[user]
    server.user = user
    server.give(rules(user))
    await installed(server)
    for deed in can:
        await enqueues(server.url)
        await deed(server.theirs)
    await enqueues(server.url)
    for deed in cannot:
        before = left(server)
        with pytest.raises(REFUSED) as caught:
            await deed(server.theirs)
        assert SAYS.search(str(caught.value))
        assert left(server) == before  # a script that is refused halfway is not rolled back


@pytest.mark.parametrize("user", CASES)
async def test_each_is_needed(user: str, server: Server) -> None:
    can, _ = CASES[user]
    deeds = [deed for deed in can if deed is not a_pool_works]  # it would try again for ever
    server.user = user
    await installed(server)
    all_rules = rules(user)
    for rule in (each for each in all_rules[2:] if not each.startswith("-")):
        server.give([each for each in all_rules if each != rule])
        said = "nothing"
        for deed in deeds:
            await enqueues(server.url)
            server.admin.delete("{goncordia}:told")  # somebody sleeps, and is to be woken
            try:
                await deed(server.theirs)
            except REFUSED as error:
                said = str(error)
                break
        assert SAYS.search(said), f"without {rule}: {said}"


async def test_what_a_cluster_needs_besides(provide: Callable[[str], None]) -> None:
    rule = "+cluster|slots"
    assert f"add `{rule}`" in PAGE.read_text()
    provide("redis-cluster")
    url = os.environ["REDIS_URL"]

    def give(*more: str) -> None:
        for address in urlsplit(url).netloc.split(","):
            with redis.Redis.from_url(f"redis://{address}") as admin:
                words = [*rules("shop_worker"), *more]
                admin.execute_command("ACL", "SETUSER", "shop_worker", "reset", *words)

    theirs = url.replace("//", f"//shop_worker:{PASSWORD}@")
    async with RedisDriver(url) as driver:
        await driver.migrate()
    give(rule)
    for deed in (enqueues, works):
        await deed(theirs)
    give()
    with pytest.raises(REFUSED) as caught:
        await enqueues(theirs)
    assert SAYS.search(str(caught.value))


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            if is_so():
                return
            await asyncio.sleep(0.01)


async def test_what_waiting_needs_besides(request: pytest.FixtureRequest) -> None:
    safe, info = "%W~{goncordia}:safe", "+info"
    assert f"add `{safe}` for `shop_web`" in PAGE.read_text()
    assert f"And add `{info}`" in PAGE.read_text()
    program = needed("redis", request.config, find_here)
    primary = RedisServer.create(program, {**TESTS, "repl-diskless-sync-delay": "0"})
    replica = RedisServer.create(program)
    with guarded(primary.run), guarded(replica.run), redis.Redis.from_url(primary.url) as admin:
        server = Server(primary.url)
        server.user = "shop_web"

        async def enqueue(*more: str, seconds: int = 2 * SECONDS) -> None:
            server.give([*rules("shop_web"), *more])
            url = f"{server.theirs}?replicas=1&socket_timeout={seconds}"
            async with RedisDriver.from_url(url) as driver:
                await Client(driver).enqueue(Ping())

        def replicas(number: int) -> bool:
            return primary.info("replication")["connected_slaves"] == str(number)

        async with RedisDriver(primary.url) as driver:
            await driver.migrate()
        replica.ask("REPLICAOF", "127.0.0.1", str(primary.port))
        await until(lambda: replica.info("replication").get("master_link_status") == "up")
        await enqueue(safe, info)
        with pytest.raises(DriverError, match="whether it is safe cannot be told") as caught:
            await enqueue(info)
        assert "NOPERM" in str(caught.value)
        replica.ask("REPLICAOF", "NO", "ONE")
        await until(lambda: replicas(0))
        before = admin.dbsize()
        with pytest.raises(DriverError, match="replicas: the primary has 0") as caught:
            await enqueue(safe, info)
        assert (caught.value.outcome, admin.dbsize()) == ("not_applied", before)
        with pytest.raises(DriverError, match="not on 1 of 1 replicas") as caught:
            await enqueue(safe, seconds=10)
        assert (caught.value.outcome, admin.dbsize()) == ("unknown", before + 1)
        server.admin.close()


def test_the_bounds_are_told() -> None:
    """Of one answer and of one request, on the page of sizing."""
    text = PAGE.with_name("sizing.md").read_text()
    mebi = 1 << 20
    claims = f"{MAX_FETCH:,} jobs, and about {NUMBERS['ANSWER_SIZE'] // mebi} MiB of them"
    assert f"| claims | {claims}" in text
    assert f"about {NUMBERS['READ_SIZE'] // mebi} MiB, then the next" in text
    assert f"| inserts | {MAX_INSERT:,} jobs" in text
    assert f"| results | {MAX_FINISH}" in text
    assert f"With more than {NUMBERS['FEW_LINES']} priorities" in text
    most = RedisDriver("redis://localhost").capabilities.max_payload
    assert most is not None
    assert f"{most // mebi} MiB of args" in text


async def test_every_key_is_told(server: Server) -> None:
    """Those that the kinds of use above leave, on the page of monitoring."""
    server.user = "shop_admin"
    server.give(rules("shop_admin"))
    await installed(server)
    kept = dict.fromkeys(left(server))
    for deed in CASES["shop_admin"][0]:
        await enqueues(server.url)
        await deed(server.theirs)
        kept |= left(server)
    names = {key.partition(b":")[2].decode("utf-8", "replace") for key in kept}
    told = re.findall(r"`([a-z]+)[`:]", MONITORING.read_text())
    assert {name.partition(":")[0] for name in names} - set(told) == set()
