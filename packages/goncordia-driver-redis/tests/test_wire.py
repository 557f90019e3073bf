"""Reading a connection without redis-py's layers, and with them where hiredis is missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import redis.asyncio
from redis import RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, NoScriptError, ResponseError

from goncordia.driver import DirectListener, FetchRequest, JobRow, NewJob, QueueFetch, Wake
from goncordia.ids import new_session_id
from goncordia_conformance.servers.redis import RedisServer
from goncordia_driver_redis import RedisDriver
from goncordia_driver_redis.clients import wire as wires
from goncordia_driver_redis.clients.given import place_of
from goncordia_driver_redis.clients.links import AsyncLink, connect
from goncordia_driver_redis.clients.urls import read_url
from goncordia_driver_redis.clients.wire import Wire

pytest.importorskip("hiredis", reason="without hiredis redis-py reads all connections")

LONG = 60.0


class Noted(Wire):
    """Tells when something has come."""

    def __init__(self, transport: asyncio.Transport, reader: Any) -> None:
        super().__init__(transport, reader)
        self.has_read, self.has_lost = asyncio.Event(), asyncio.Event()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.has_read.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.has_lost.set()


class Other:
    """The other side of a wire."""

    def __init__(self) -> None:
        self.wire: Noted
        self.says: asyncio.StreamWriter
        self.hears: asyncio.StreamReader

    async def say(self, *pieces: bytes) -> None:
        """Each piece by itself: the next one when this one has been read."""
        for piece in pieces:
            self.wire.has_read.clear()
            self.says.write(piece)
            await asyncio.wait_for(self.wire.has_read.wait(), LONG)


@pytest.fixture
async def other() -> AsyncIterator[Other]:
    other = Other()
    is_there: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other.hears, other.says = reader, writer
        is_there.set_result(None)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    await is_there
    connection = redis.asyncio.Connection()
    connection._writer = writer
    wire = Noted.over(connection)
    connection._writer = None
    assert wire is not None
    other.wire = wire
    yield other
    for each in (writer, other.says):
        each.close()
    server.close()
    await server.wait_closed()


async def test_an_answer_in_pieces(other: Other) -> None:
    answer = asyncio.ensure_future(other.wire.next(LONG))
    await asyncio.sleep(0)
    await other.say(b"*2\r\n$5\r\nhel", b"lo\r\n:1", b"2\r\n")
    assert await answer == [b"hello", 12]
    assert other.wire.is_open


async def test_several_answers_at_once(other: Other) -> None:
    await other.say(b"+OK\r\n-NOSCRIPT No matching script\r\n$-1\r\n")
    assert not other.wire.is_open  # nobody may ask while answers are left
    assert await other.wire.next(LONG) == b"OK"
    assert type(await other.wire.next(LONG)) is NoScriptError
    assert await other.wire.next(LONG) is None
    assert other.wire.is_open


async def test_what_is_pushed_is_no_answer(other: Other) -> None:
    await other.say(b">2\r\n$4\r\ntold\r\n$1\r\n1\r\n+OK\r\n")
    assert await other.wire.next(LONG) == b"OK"


@pytest.mark.parametrize("waiting", [True, False])
async def test_the_other_side_closes(other: Other, waiting: bool) -> None:
    if waiting:
        answer = asyncio.ensure_future(other.wire.next(LONG))
        await asyncio.sleep(0)
        other.says.close()
    else:
        other.says.close()
        await asyncio.wait_for(other.wire.has_lost.wait(), LONG)
        answer = asyncio.ensure_future(other.wire.next(LONG))
    with pytest.raises(RedisConnectionError, match="the connection was lost: the server closed"):
        await answer
    assert not other.wire.is_open


async def test_a_wait_that_is_cancelled_ends_the_connection(other: Other) -> None:
    answer = asyncio.ensure_future(other.wire.next(LONG))
    await asyncio.sleep(0)
    answer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answer
    assert not other.wire.is_open
    async with asyncio.timeout(LONG):
        assert await other.hears.read() == b""


class Closed(asyncio.Transport):
    """As uvloop's, when it is closed and has not said so yet."""

    def is_closing(self) -> bool:
        return False

    def write(self, data: object) -> None:
        raise RuntimeError("unable to perform operation on <TCPTransport closed=True>")

    def abort(self) -> None:
        raise RuntimeError("unable to perform operation on <TCPTransport closed=True>")


async def test_what_is_written_when_it_is_closed() -> None:
    wire = Wire(Closed(), None)
    for _ in range(2):
        wire.send(b"PING")
        with pytest.raises(RedisConnectionError, match="the connection was lost: unable"):
            await wire.next(LONG)
    assert not wire.is_open


class Reads(redis.asyncio.Connection):
    async def read_response(self, *args: Any, **options: Any) -> Any:
        return await super().read_response(*args, **options)


class Writes(redis.asyncio.Connection):
    async def send_packed_command(self, *args: Any, **options: Any) -> None:
        await super().send_packed_command(*args, **options)


@pytest.mark.parametrize("kind", [Reads, Writes, redis.asyncio.Connection])
async def test_a_class_with_a_way_of_its_own_is_left_to_it(kind: Any, redis_url: str) -> None:
    pool = redis.asyncio.ConnectionPool.from_url(redis_url, connection_class=kind)
    link = await connect(place_of("client", redis.asyncio.Redis(connection_pool=pool), b"k").place)
    assert (link._wire is None) == (kind is not redis.asyncio.Connection)
    assert await link.ask(b"ECHO", b"x") == b"x"
    await link.aclose()


async def test_an_answer_that_comes_too_late(other: Other) -> None:
    with pytest.raises(TimeoutError):
        await other.wire.next(0.0)
    assert not other.wire.is_open
    with pytest.raises(RedisConnectionError, match="was not waited for"):
        await other.wire.next(LONG)


async def test_who_listens_in_vain_listens_on(other: Other) -> None:
    assert await other.wire.hear(0.0) is False
    assert other.wire.is_open


async def test_what_nobody_understands(other: Other) -> None:
    await other.say(b"?\r\n")
    assert not other.wire.is_open
    with pytest.raises(InvalidResponse):
        await other.wire.next(LONG)


async def test_who_listens_is_told_where_it_is_read(other: Other) -> None:
    taken: list[Any] = []
    other.wire.listen(taken.append)
    await other.say(b"+one\r\n+two\r\n", b"+thr")
    assert taken == [b"one", b"two"]
    heard = asyncio.ensure_future(other.wire.hear(LONG))
    await asyncio.sleep(0)
    await other.say(b"ee\r\n")
    assert taken == [b"one", b"two", b"three"]
    assert await heard is True


async def test_who_takes_fails(other: Other) -> None:
    def take(answer: Any) -> None:
        raise ZeroDivisionError

    other.wire.listen(take)
    await other.say(b"+one\r\n")
    with pytest.raises(ZeroDivisionError):
        await other.wire.hear(LONG)


async def test_who_listens_is_refused(other: Other) -> None:
    other.wire.listen([].append)
    await other.say(b"-NOPERM this user has no right\r\n")
    with pytest.raises(ResponseError, match="has no right"):
        await other.wire.hear(LONG)


# ---------------------------------------------------------------- with and without hiredis


@pytest.fixture(params=["hiredis", "redis-py"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who understands what comes."""
    if request.param == "redis-py":
        monkeypatch.setattr(wires, "hiredis", None)
    return str(request.param)


@pytest.fixture
async def link(parser: str, redis_url: str) -> AsyncIterator[AsyncLink]:
    link = await connect(read_url("url", redis_url, ours=False).place(b"k"))
    assert (link._wire is not None) == (parser == "hiredis")
    yield link
    await link.aclose()


async def test_questions(link: AsyncLink) -> None:
    assert await link.ask(b"ECHO", "é") == "é".encode()
    with pytest.raises(NoScriptError):
        await link.ask(b"EVALSHA", b"0" * 40, b"0")
    assert link.is_usable()
    await link.aclose()
    assert not link.is_usable()


async def test_many_questions(link: AsyncLink) -> None:
    wrong, right = b"*1\r\n$5\r\nWRONG\r\n", b"*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n"
    first, second, third = await link.send_many([right, wrong, right])
    assert (first, third) == (b"x", b"x")
    assert isinstance(second, RedisError)
    assert link.is_usable()


@pytest.mark.usefixtures("parser")
async def test_wakes(
    driver: RedisDriver, hearing: Callable[..., AbstractAsyncContextManager[Any]]
) -> None:
    async with hearing(driver) as ears:
        for queue in ("a", "b"):
            await driver.executor().queue_pause(queue)
            assert await ears.next() == Wake("queue", queue)


@pytest.mark.usefixtures("parser")
async def test_wakes_told_directly(driver: RedisDriver) -> None:
    listener, told = driver.listener(), asyncio.Queue[Wake]()
    assert isinstance(listener, DirectListener)
    listening = asyncio.create_task(listener.wakes_to(told.put_nowait))
    paused: list[Wake] = []
    async with asyncio.timeout(LONG):
        while told.empty():  # until it is subscribed
            paused.append(Wake("queue", f"{len(paused)}"))
            await driver.executor().queue_pause(f"{len(paused) - 1}")
            await asyncio.sleep(0.01)
        assert await told.get() in paused
    await listener.aclose()
    await listening


@pytest.mark.usefixtures("parser")
async def test_a_sign_of_life_is_waited_for(
    driver: RedisDriver,
    hearing: Callable[..., AbstractAsyncContextManager[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("goncordia.driver.connections.listener._KEEP_ALIVE", 0.01)
    async with hearing(driver) as ears:
        for number in range(20):
            await driver.executor().queue_pause(f"{number}")
            await asyncio.sleep(0.005)
        assert [(await ears.next()).queue for _ in range(20)] == [f"{n}" for n in range(20)]


# ---------------------------------------------------------------- exchanges that are begun


async def test_an_exchange_that_is_begun(
    parser: str, server: RedisServer, new_job: Callable[..., NewJob]
) -> None:
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        await driver.ready()
        executor, session = driver.executor(), new_session_id()
        await executor.session_open(session, "w", 60)

        def request(number: int) -> FetchRequest:
            return FetchRequest(session, number, 10, (QueueFetch("default", 10),), "w")

        await executor.fetch(request(1))  # the server learns the script
        await executor.insert_many([new_job()])
        begun = executor.begin_exchange((), request(2))
        assert (begun is not None) == (parser == "hiredis")
        if begun is None:
            return
        # It was sent: the server has done it before anybody asks for the answer.
        held: list[JobRow] = []
        async with asyncio.timeout(LONG):
            while not held:
                held = await executor.held(session, 2, 10)
        _, fetched = await begun
        assert fetched is not None
        assert [job.id for job in fetched.jobs] == [job.id for job in held]


async def test_a_script_that_the_server_has_forgotten(server: RedisServer) -> None:
    async with RedisDriver(server.url) as driver:
        await driver.migrate()
        await driver.ready()
        executor, session = driver.executor(), new_session_id()
        await executor.session_open(session, "w", 60)
        server.ask("SCRIPT", "FLUSH")
        begun = executor.begin_exchange((), FetchRequest(session, 1, 1, (QueueFetch("q", 1),), "w"))
        assert begun is not None
        outcomes, fetched = await begun
        assert (outcomes, fetched and fetched.jobs) == ([], [])


async def test_nothing_is_begun_where_that_would_have_to_wait(
    make: Callable[..., RedisDriver],
) -> None:
    session = new_session_id()
    request = FetchRequest(session, 1, 1, (QueueFetch("q", 1),), "w")
    async with make(pool_size=1) as driver:
        await driver.migrate()
        await driver.ready()
        executor = driver.executor()
        await executor.session_open(session, "w", 60)
        begun = executor.begin_exchange((), request)
        assert begun is not None
        assert executor.begin_exchange((), request) is None  # the only connection is taken
        begun.close()
        assert executor.begin_exchange((), request) is None  # and this is no good any more
        assert (await executor.exchange((), request))[1] is not None
    assert driver.executor().begin_exchange((), request) is None
