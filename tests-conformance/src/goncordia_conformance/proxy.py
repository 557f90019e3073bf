"""A TCP proxy that makes a network fail: it cuts, delays, freezes and refuses connections.

It stands between clients and the server of any backend, and runs on a thread of its own, so that
tests of every kind can use it::

    with ChaosProxy.of(dsn) as proxy:
        driver = AsyncpgDriver(proxy.before(dsn))
        ...
        proxy.freeze("down")  # requests still arrive, answers do not
        proxy.cut()

All that is asked of it holds for the connections there are and for those to come, until it is taken
back; a cut is over at once.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal, Self, TypeAlias, TypeVar
from urllib.parse import urlsplit

from goncordia.errors import ConfigurationError
from goncordia_conformance.servers.process import free_port

__all__ = ["Break", "ChaosProxy", "Direction"]

Direction: TypeAlias = Literal["up", "down"]
"""``up`` is from the client to the server, ``down`` the way back."""

Break: TypeAlias = Literal["cut", "gone", "frozen"]
"""How connections break; see :meth:`ChaosProxy.break_at`."""

BOTH: tuple[Direction, ...] = ("up", "down")

R = TypeVar("R")

CHUNK = 1 << 16
QUEUED = 64
"""How many chunks may be under way in one direction before its sender has to wait."""


class ChaosProxy:
    """Forwards connections to a server as long as nothing else is asked of it.

    Its methods may be called from any thread; each has taken effect when it returns.

    Args:
        host: where the server is.
        port: its port.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = host, port
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="chaos-proxy")
        self._lanes: dict[Direction, _Lane] = {direction: _Lane() for direction in BOTH}
        self._links: set[_Link] = set()
        self._accepted = 0
        self._door: socket.socket | None = None
        self.host = "127.0.0.1"
        """Where it listens."""
        self.port = free_port()
        """Where it listens."""

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        self._do(self._listen)
        return self

    def __exit__(self, *_: object) -> None:
        """Cut all connections, and listen no more."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @classmethod
    def of(cls, dsn: str) -> Self:
        """The proxy before a DSN's server.

        Raises:
            ConfigurationError: the DSN names no host or no port.
        """
        parts = urlsplit(dsn)
        if parts.hostname is None or parts.port is None:
            raise ConfigurationError(
                "dsn: it must name a host and a port, such as postgresql://host:5432/"
            )
        return cls(parts.hostname, parts.port)

    def before(self, dsn: str) -> str:
        """The server's DSN, but with the proxy's address."""
        parts = urlsplit(dsn)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}{at}{self.host}:{self.port}").geturl()

    # ---------------------------------------------------------------- looking

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._links)

    @property
    def accepted(self) -> int:
        """How many connections there have been."""
        return self._accepted

    # ---------------------------------------------------------------- making trouble

    def cut(self, direction: Direction | None = None) -> None:
        """End every connection, both ends; what was under way is lost.

        Args:
            direction: end only this one: who reads there gets to the end of what was sent, while
                the other direction goes on.
        """

        async def cut() -> None:
            links = list(self._links)
            for link in links:
                link.cut(direction)
            if direction is None and links:
                await asyncio.wait([link.task for link in links])

        self._do(cut)

    def break_at(self, piece: int, direction: Direction, how: Break) -> None:
        """Break as soon as so much has come in one direction, once; until :meth:`spare`.

        Args:
            piece: at which piece, of those that come from now on, counted from 0. One is what was
                read from a connection at once.
            direction: where it comes.
            how: ``cut``: it is lost, and all connections are cut. ``gone``: also, new ones are
                refused. ``frozen``: it is kept, and nothing is delivered any more.
        """

        async def blast() -> None:
            if how == "frozen":
                for lane in self._lanes.values():
                    lane.flows.clear()
                return
            if how == "gone":
                await self._shut()
            for link in list(self._links):
                link.cut(None)

        async def lay() -> None:
            self._lanes[direction].mine = _Mine(piece, blast, loses=how != "frozen")

        self._do(lay)

    def spare(self) -> bool:
        """Take :meth:`break_at` back: thaw, and take new connections; whether it has broken."""

        async def spare() -> bool:
            mines = [lane.mine for lane in self._lanes.values() if lane.mine is not None]
            for lane in self._lanes.values():
                lane.mine = None
                lane.flows.set()
            await self._listen()
            return any(mine.left < 0 for mine in mines)

        return self._do(spare)

    def delay(self, seconds: float, direction: Direction | None = None) -> None:
        """Deliver everything so much later; 0 takes it back.

        Args:
            seconds: how long each piece is under way.
            direction: only this one.
        """

        async def delay() -> None:
            for lane in self._of(direction):
                lane.delay = seconds

        self._do(delay)

    def freeze(self, direction: Direction | None = None) -> None:
        """Deliver nothing, not even the end of a connection, until :meth:`thaw`.

        Args:
            direction: only this one.
        """

        async def freeze() -> None:
            for lane in self._of(direction):
                lane.flows.clear()

        self._do(freeze)

    def thaw(self, direction: Direction | None = None) -> None:
        """Deliver again, first what was held up.

        Args:
            direction: only this one.
        """

        async def thaw() -> None:
            for lane in self._of(direction):
                lane.flows.set()

        self._do(thaw)

    def refuse(self) -> None:
        """Refuse new connections, as a server does that is not there; the open ones go on."""
        self._do(self._shut)

    def admit(self) -> None:
        """Take new connections again, at the same port."""
        self._do(self._listen)

    # ---------------------------------------------------------------- on the thread

    def _run(self) -> None:
        # A runner cancels what is left in the end: the open connections, and one that just comes.
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        await self._stop.wait()
        await self._shut()

    def _do(self, step: Callable[[], Awaitable[R]]) -> R:
        async def run() -> R:
            return await step()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def _of(self, direction: Direction | None) -> list[_Lane]:
        return [self._lanes[d] for d in BOTH if direction in {None, d}]

    async def _listen(self) -> None:
        # Not by asyncio's server: closed while somebody connects, it leaves that connection open.
        if self._door is None:
            self._door = socket.create_server((self.host, self.port))
            self._door.setblocking(False)
            self._loop.add_reader(self._door, self._accept, self._door)

    async def _shut(self) -> None:
        if self._door is not None:
            self._loop.remove_reader(self._door)
            self._door.close()
            self._door = None

    def _accept(self, door: socket.socket) -> None:
        try:
            client, _ = door.accept()
        except OSError:
            return  # whoever it was has gone again
        client.setblocking(False)
        self._accepted += 1
        link = _Link(client, self._server, self._lanes)
        self._links.add(link)
        link.task.add_done_callback(lambda _: self._links.discard(link))


class _Mine:
    """Goes off once, under the piece that comes after so many others."""

    def __init__(self, left: int, blast: Callable[[], Awaitable[None]], *, loses: bool) -> None:
        self.left = left
        self._blast = blast
        self._loses = loses

    async def pass_over(self) -> bool:
        """Whether the piece gets over."""
        self.left -= 1
        if self.left != -1:
            return True
        await self._blast()
        return not self._loses


class _Lane:
    """One direction of all connections."""

    def __init__(self) -> None:
        self.delay = 0.0
        self.mine: _Mine | None = None
        self.flows = asyncio.Event()
        self.flows.set()


class _Link:
    """One connection, from the client to the proxy and from there to the server."""

    def __init__(
        self, client: socket.socket, server: tuple[str, int], lanes: dict[Direction, _Lane]
    ) -> None:
        self._lanes = lanes
        self._pumps: dict[Direction, asyncio.Task[None]] = {}
        self.task = asyncio.create_task(self._run(client, server))
        # Cut before its first step it does not run at all.
        self.task.add_done_callback(lambda _: client.close())

    def cut(self, direction: Direction | None) -> None:
        """End it, or one direction of it."""
        if direction is None:
            self.task.cancel()
        elif direction in self._pumps:
            self._pumps[direction].cancel()

    async def _run(self, client: socket.socket, server: tuple[str, int]) -> None:
        """Forward until both directions have ended, or one is broken, or it is cut."""
        try:
            reader, writer = await asyncio.open_connection(sock=client)
            async with _closed(writer):
                far_reader, far_writer = await asyncio.open_connection(*server)
                async with _closed(far_writer), asyncio.TaskGroup() as pumps:
                    up = _pump(reader, far_writer, self._lanes["up"])
                    down = _pump(far_reader, writer, self._lanes["down"])
                    self._pumps = {
                        "up": pumps.create_task(up),
                        "down": pumps.create_task(down),
                    }
        except* OSError:
            pass  # both ends see that it has ended


@asynccontextmanager
async def _closed(writer: asyncio.StreamWriter) -> AsyncGenerator[None, None]:
    """Close it at the end, at once."""
    try:
        yield
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lane: _Lane) -> None:
    """Carry one direction of a connection to its end, or until it is cancelled."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(QUEUED)

    async def take() -> None:
        data = b"-"
        while data:
            try:
                data = await reader.read(CHUNK)
            except OSError:
                data = b""  # its sender broke it off: that is its end, too
            await queue.put((loop.time() + lane.delay, data))

    taking = asyncio.create_task(take())
    try:
        while True:
            due, data = await queue.get()
            await asyncio.sleep(due - loop.time())
            if data and lane.mine is not None and not await lane.mine.pass_over():
                break
            await lane.flows.wait()
            if not data:
                break
            writer.write(data)
            await writer.drain()
    except asyncio.CancelledError:
        pass  # it is cut: the other end reads to the end of what came so far
    finally:
        taking.cancel()
        await asyncio.wait([taking])
    writer.write_eof()
