"""The chaos proxy, before a server that echoes lines and counts what it got."""

from __future__ import annotations

import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from goncordia.errors import ConfigurationError
from goncordia_conformance.proxy import ChaosProxy, Direction
from goncordia_conformance.servers.process import free_port

PATIENCE = 30.0
SHORT = 0.2
"""For how long nothing must come."""


class EchoServer:
    """Answers each line by itself, and says at a connection's end how many bytes it got."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._door.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(1 << 16):
                    self.got.append(data)
                    connection.sendall(data)
                connection.sendall(b"bye\n")
            except OSError:
                pass

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        for thread in self._threads:
            thread.join(PATIENCE)

    @property
    def text(self) -> bytes:
        return b"".join(self.got)


@pytest.fixture
def server() -> Iterator[EchoServer]:
    server = EchoServer()
    yield server
    server.close()


@pytest.fixture
def proxy(server: EchoServer) -> Iterator[ChaosProxy]:
    with ChaosProxy("127.0.0.1", server.port) as proxy:
        yield proxy


@contextmanager
def client(proxy: ChaosProxy) -> Iterator[socket.socket]:
    with socket.create_connection((proxy.host, proxy.port), timeout=PATIENCE) as connection:
        yield connection


def ask(connection: socket.socket, text: bytes) -> bytes:
    connection.sendall(text)
    return read(connection, len(text))


def read(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = connection.recv(length - len(data))
        if not more:
            break
        data += more
    return data


def silent(connection: socket.socket) -> bool:
    connection.settimeout(SHORT)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(PATIENCE)
    return False


def eventually(condition: Callable[[], Any]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def ended(connection: socket.socket) -> bool:
    """Whether the connection is at its end."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_it_forwards(proxy: ChaosProxy) -> None:
    with client(proxy) as connection:
        assert ask(connection, b"hello\n") == b"hello\n"
        much = bytes(range(256)) * 4096
        sender = threading.Thread(target=connection.sendall, args=(much,))
        sender.start()
        assert read(connection, len(much)) == much
        sender.join()
        connection.shutdown(socket.SHUT_WR)
        assert read(connection, 4) == b"bye\n"
        assert ended(connection)


def test_it_counts(proxy: ChaosProxy) -> None:
    assert (proxy.connections, proxy.accepted) == (0, 0)
    with client(proxy) as one, client(proxy) as two:
        ask(one, b"1")
        ask(two, b"2")
        assert (proxy.connections, proxy.accepted) == (2, 2)
    assert eventually(lambda: proxy.connections == 0)
    assert proxy.accepted == 2


def test_it_cuts_all(proxy: ChaosProxy) -> None:
    with client(proxy) as one, client(proxy) as two:
        ask(one, b"1")
        ask(two, b"2")
        proxy.cut()
        assert proxy.connections == 0
        assert ended(one)
        assert ended(two)
    with client(proxy) as three:
        assert ask(three, b"3") == b"3"


def test_it_cuts_what_has_just_come(proxy: ChaosProxy) -> None:
    """Before the connection's task has taken its first step."""

    async def come_and_cut() -> socket.socket:
        assert proxy._door is not None
        connection = socket.create_connection((proxy.host, proxy.port), timeout=PATIENCE)
        proxy._accept(proxy._door)
        (link,) = proxy._links
        link.cut(None)
        return connection

    with proxy._do(come_and_cut) as connection:
        assert connection.recv(1) == b""
    proxy.cut()  # what was left open would be reported when it is collected
    gc.collect()


def test_it_cuts_the_way_up(proxy: ChaosProxy, server: EchoServer) -> None:
    with client(proxy) as connection:
        ask(connection, b"1")
        proxy.cut("up")
        # The server has read to the end, and says so: the way down goes on.
        assert read(connection, 4) == b"bye\n"
        assert server.text == b"1"


def test_it_cuts_the_way_down(proxy: ChaosProxy, server: EchoServer) -> None:
    with client(proxy) as connection:
        ask(connection, b"1")
        proxy.cut("down")
        assert ended(connection)
        connection.sendall(b"2")
        assert eventually(lambda: server.text == b"12")


def test_it_cuts_at_a_request(proxy: ChaosProxy, server: EchoServer) -> None:
    with client(proxy) as connection, client(proxy) as other:
        ask(other, b"0")
        proxy.break_at(1, "up", "cut")
        assert ask(connection, b"1") == b"1"
        connection.sendall(b"2")
        assert ended(connection)
        assert ended(other)
    assert server.text == b"01"
    with client(proxy) as connection:
        assert ask(connection, b"3") == b"3"  # it breaks once
    assert proxy.spare()
    assert not proxy.spare()


def test_it_cuts_at_an_answer(proxy: ChaosProxy, server: EchoServer) -> None:
    with client(proxy) as connection:
        proxy.break_at(0, "down", "gone")
        connection.sendall(b"1")
        assert ended(connection)
        assert server.text == b"1"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((proxy.host, proxy.port))
    assert proxy.spare()
    with client(proxy) as connection:
        assert ask(connection, b"2") == b"2"


@pytest.mark.parametrize("direction", ["up", "down"])
def test_it_freezes_at_a_piece(proxy: ChaosProxy, server: EchoServer, direction: Direction) -> None:
    with client(proxy) as connection:
        proxy.break_at(1, direction, "frozen")
        assert ask(connection, b"1") == b"1"
        connection.sendall(b"2")
        assert silent(connection)
        assert server.text == (b"1" if direction == "up" else b"12")
        assert proxy.spare()
        assert read(connection, 1) == b"2"


def test_it_spares_what_has_not_come_so_far(proxy: ChaosProxy) -> None:
    with client(proxy) as connection:
        proxy.break_at(1, "down", "cut")
        assert ask(connection, b"1") == b"1"
        assert not proxy.spare()
        assert ask(connection, b"2") == b"2"


@pytest.mark.parametrize("direction", ["up", "down"])
def test_it_freezes_one_direction(
    proxy: ChaosProxy, server: EchoServer, direction: Direction
) -> None:
    with client(proxy) as connection:
        ask(connection, b"1")
        proxy.freeze(direction)
        connection.sendall(b"2")
        assert silent(connection)
        if direction == "up":
            assert server.text == b"1"
        else:
            assert eventually(lambda: server.text == b"12")
        proxy.thaw(direction)
        assert read(connection, 1) == b"2"


def test_a_frozen_end_is_not_seen(proxy: ChaosProxy) -> None:
    with client(proxy) as connection:
        ask(connection, b"1")
        proxy.freeze("up")
        connection.shutdown(socket.SHUT_WR)
        assert silent(connection)
        assert proxy.connections == 1
        proxy.thaw()
        assert read(connection, 4) == b"bye\n"


def test_new_connections_are_frozen_too(proxy: ChaosProxy) -> None:
    proxy.freeze()
    with client(proxy) as connection:
        connection.sendall(b"1")
        assert silent(connection)
        proxy.cut()
        assert ended(connection)


@pytest.mark.parametrize(("up", "down"), [(0.1, 0.0), (0.0, 0.1), (0.1, 0.1)])
def test_it_delays(proxy: ChaosProxy, up: float, down: float) -> None:
    with client(proxy) as connection:
        ask(connection, b"1")
        proxy.delay(up, "up")
        proxy.delay(down, "down")
        started = time.monotonic()
        assert ask(connection, b"2") == b"2"
        assert time.monotonic() - started >= up + down


def test_delayed_pieces_do_not_wait_for_each_other(proxy: ChaosProxy) -> None:
    with client(proxy) as connection:
        ask(connection, b"1")
        proxy.delay(0.3)
        started = time.monotonic()
        for _ in range(20):
            connection.sendall(b"x")
            time.sleep(0.001)
        assert read(connection, 20) == b"x" * 20
        assert time.monotonic() - started < 20 * 0.3


def test_it_refuses(proxy: ChaosProxy) -> None:
    with client(proxy) as connection:
        ask(connection, b"1")
        port = proxy.port
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError), client(proxy):
            pass
        assert ask(connection, b"2") == b"2"
        proxy.admit()
        assert proxy.port == port
        with client(proxy) as other:
            assert ask(other, b"3") == b"3"


def test_a_server_that_is_not_there_ends_connections() -> None:
    with ChaosProxy("127.0.0.1", free_port()) as proxy:
        with client(proxy) as connection:
            assert ended(connection)
        assert eventually(lambda: proxy.connections == 0)


def test_the_dsn_before_it(proxy: ChaosProxy) -> None:
    dsn = "postgresql://user:p%40ss@db.example:5432/jobs?sslmode=disable"
    expected = f"postgresql://user:p%40ss@127.0.0.1:{proxy.port}/jobs?sslmode=disable"
    assert proxy.before(dsn) == expected
    assert proxy.before("redis://db:6379/0") == f"redis://127.0.0.1:{proxy.port}/0"


def test_of_a_dsn(server: EchoServer) -> None:
    with ChaosProxy.of(f"redis://127.0.0.1:{server.port}/0") as proxy, client(proxy) as connection:
        assert ask(connection, b"hello") == b"hello"
    for dsn in ("redis:///0", "redis://host/0", "/tmp/jobs.db"):
        with pytest.raises(ConfigurationError, match="host and a port"):
            ChaosProxy.of(dsn)
