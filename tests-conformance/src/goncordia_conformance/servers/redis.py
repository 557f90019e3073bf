"""Redis and Valkey for tests: a server of their own from a binary on this machine, or a container.

::

    server = RedisServer.create(find_redis())
    with guarded(server.run) as url:
        ...
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from goncordia_conformance.backends import Backend
from goncordia_conformance.servers.containers import redis_container
from goncordia_conformance.servers.guard import guarded
from goncordia_conformance.servers.process import NotHereError, comes_true, free_port

__all__ = [
    "REDIS",
    "REDIS8",
    "REDIS_VERSION",
    "SAFE",
    "TESTS",
    "VALKEY",
    "RedisBinary",
    "RedisServer",
    "asked_for",
    "find_here",
    "find_redis",
    "redis_backend",
    "told_by",
]

Flavour: TypeAlias = Literal["redis", "valkey"]

TESTS: Final[Mapping[str, str]] = {
    "save": '""',
    "appendonly": "no",
}
"""Settings of a server that is thrown away after the tests."""

SAFE: Final[Mapping[str, str]] = {
    **TESTS,
    "appendonly": "yes",
    "appendfsync": "always",
    "auto-aof-rewrite-percentage": "0",
}
"""Settings of a server that keeps whatever it has answered to, however it ends."""

START_WITHIN = 30.0
"""Seconds that a server may take to start: after a crash it reads what it has written."""

STOP_WITHIN = 10.0

ANSWERS_WITHIN = 10.0

_PLACES: Final = (
    "/usr/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/opt/*/usr/bin",  # a newer system that was unpacked there, with libraries of its own
)

_TOLD: Final = re.compile(r"(Redis|Valkey) server v=(\d+)\.(\d+)")


@dataclass(frozen=True)
class RedisBinary:
    """A server program.

    Attributes:
        command: how it is called.
        flavour: ``redis`` or ``valkey``.
        version: its version, such as ``(7, 0)``.
    """

    command: tuple[str, ...]
    flavour: Flavour
    version: tuple[int, int]


def find_redis(flavour: Flavour | None = None, *version: int) -> RedisBinary:
    """Find a server program on this machine: on ``PATH``, or where systems put it.

    Args:
        flavour: ``redis`` or ``valkey``; None: either.
        version: the first numbers of its version, such as ``7`` or ``7, 0``; none: the first that
            is found.

    Raises:
        NotHereError: there is none.
    """
    for binary in _programs():
        if flavour in {None, binary.flavour} and binary.version[: len(version)] == version:
            return binary
    wanted = " ".join([flavour or "redis or valkey", ".".join(map(str, version))]).strip()
    raise NotHereError(f"there is no server program of {wanted} on this machine")


def _programs() -> Iterator[RedisBinary]:
    for name in ("redis-server", "valkey-server"):
        if on_path := shutil.which(name):
            yield from _program(Path(on_path))
    for place in _PLACES:
        for folder in sorted(Path("/").glob(place[1:])):
            for name in ("redis-server", "valkey-server"):
                yield from _program(folder / name)


def _program(path: Path) -> Iterator[RedisBinary]:
    """What this file is: one program, or none."""
    if not os.access(path, os.X_OK):
        return
    command, system = [str(path)], path.parents[2]
    # One of another system does not run with this one's libraries, and needs its loader, too.
    loaders = sorted(system.glob("usr/lib/*/ld-linux*"))
    if loaders and system != Path("/"):
        command = [str(loaders[0]), "--library-path", str(loaders[0].parent), *command]
    says = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    if told := _TOLD.match(says.stdout):
        flavour: Flavour = "redis" if told[1] == "Redis" else "valkey"
        yield RedisBinary(tuple(command), flavour, (int(told[2]), int(told[3])))


@dataclass(frozen=True)
class RedisServer:
    """A server in a folder of its own, on a port of its own, on the loopback interface.

    Attributes:
        binary: what it runs from.
        home: its folder.
        port: its port.
        settings: as in ``redis.conf``; written there as they are.
        words: more on its command line, such as ``--sentinel``.
    """

    binary: RedisBinary
    home: Path
    port: int
    settings: Mapping[str, str] = field(default_factory=lambda: dict(TESTS))
    words: Sequence[str] = ()

    @classmethod
    def create(cls, binary: RedisBinary, settings: Mapping[str, str] = TESTS, *words: str) -> Self:
        """Think up a server; nothing is started."""
        home = Path(tempfile.gettempdir()) / f"goncordia-redis-{os.urandom(6).hex()}"
        return cls(binary, home, free_port(), dict(settings), words)

    @property
    def address(self) -> str:
        """Its host and port."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Where it is."""
        return f"redis://{self.address}/0"

    @contextmanager
    def run(self) -> Generator[str, None, None]:
        """Make it and start it; stop it and remove it at the end. Meant for ``guarded``.

        Raises:
            RuntimeError: it did not start; with its last words.
        """
        try:
            self.make()
            self.start()
            yield self.url
        finally:
            self.kill()
            shutil.rmtree(self.home, ignore_errors=True)

    def make(self) -> None:
        """Make its folder and its configuration."""
        self.home.mkdir(mode=0o700)
        settings = {
            "bind": "127.0.0.1",
            "port": f"{self.port}",
            "dir": str(self.home),
            "daemonize": "yes",
            "pidfile": str(self.home / "pid"),
            "logfile": str(self.home / "log"),
        } | dict(self.settings)
        lines = [f"{name} {value}\n" for name, value in settings.items()]
        (self.home / "redis.conf").write_text("".join(lines))

    def start(self, *words: str) -> None:
        """Start it, and wait until it answers.

        Args:
            words: more settings on its command line, this time.

        Raises:
            RuntimeError: it did not start; with its last words.
        """
        command = [*self.binary.command, str(self.home / "redis.conf"), *self.words, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.home)
        if done.returncode or not comes_true(self._answers, START_WITHIN):
            log = self.home / "log"
            said = log.read_text()[-2000:] if log.exists() else ""
            raise RuntimeError(f"the server did not start:\n{done.stdout}{done.stderr}{said}")

    def stop(self) -> None:
        """Stop it as a service is stopped, and wait until it is gone.

        Raises:
            RuntimeError: it did not stop.
        """
        self._send(signal.SIGTERM)
        if not comes_true(self._is_gone, STOP_WITHIN):
            raise RuntimeError("the server did not stop")

    def kill(self) -> None:
        """Kill it with -9, if it runs, and wait until it is gone: nothing more is written."""
        self._send(signal.SIGKILL)
        comes_true(self._is_gone, STOP_WITHIN)
        (self.home / "pid").unlink(missing_ok=True)

    def freeze(self) -> None:
        """Let it stand still: it keeps its connections, and does not answer."""
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._send(signal.SIGCONT)

    def ask(self, *words: str | float) -> Any:
        """Send it a command; its answer. Needs redis-py, the kit's extra ``redis``."""
        from redis.connection import Connection

        connection: Any = Connection(  # type: ignore[no-untyped-call]  # redis-py's is not typed
            port=self.port,
            decode_responses=True,
            encoding_errors="surrogateescape",  # so that names of any bytes come and go
            socket_timeout=ANSWERS_WITHIN,
            protocol=2,
        )
        try:
            connection.send_command(*(os.fsencode(w) if isinstance(w, str) else w for w in words))
            return connection.read_response()
        finally:
            connection.disconnect()

    def info(self, section: str) -> dict[str, str]:
        """What it tells of itself, such as ``replication``."""
        return told_by(self.ask("INFO", section))

    def _send(self, what: signal.Signals) -> None:
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int((self.home / "pid").read_text()), what)

    def _answers(self) -> bool:
        """Whether it answers, and has loaded its data."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.sendall(b"PING\r\n")
            # Whoever needs a password answers all the same.
            return connection.recv(8).startswith((b"+PONG", b"-NOAUTH"))
        return False

    def _is_gone(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 5).close()
        except ConnectionRefusedError:
            return True
        except OSError:
            pass
        return False


def told_by(text: str) -> dict[str, str]:
    """The lines ``name:value`` of an answer."""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


# ---------------------------------------------------------------- as a backend of tests


@contextmanager
def _run(flavour: Flavour | None, version: tuple[int, ...]) -> Generator[str, None, None]:
    with RedisServer.create(find_redis(flavour, *version)).run() as url:
        yield url


def redis_backend(name: str, flavour: Flavour | None = None, *version: int) -> Backend:
    """Redis or Valkey as a backend of tests: each process has a server of its own.

    It starts in no time, and much of what it tells and can be told is about all of its databases.

    Args:
        name: of the backend, as in ``GONCORDIA_TEST_<NAME>_DSN``.
        flavour: ``redis`` or ``valkey``; None: whichever is found, or Redis.
        version: the first numbers of its version; none: the first that is found, or the newest that
            is known here.
    """
    image = version or ((9,) if flavour == "valkey" else (8,))
    container = partial(redis_container, flavour or "redis", ".".join(map(str, image)))
    return Backend(
        name,
        container=partial(guarded, container),
        server=partial(guarded, partial(_run, flavour, version)),
    )


def asked_for(text: str) -> tuple[Flavour | None, tuple[int, ...]]:
    """What ``GONCORDIA_TEST_REDIS_VERSION`` says, such as ``7.4`` or ``valkey-8``."""
    if not text:
        return None, ()
    flavour, _, version = text.rpartition("-")
    return (
        "valkey" if flavour == "valkey" else "redis",
        tuple(int(number) for number in version.split(".")),
    )


REDIS_VERSION: Final = asked_for(os.environ.get("GONCORDIA_TEST_REDIS_VERSION", ""))
"""Flavour and version that are to be tested; ``(None, ())``: whichever there is."""

REDIS: Final = redis_backend("redis", REDIS_VERSION[0], *REDIS_VERSION[1])
REDIS8: Final = redis_backend("redis8", "redis", 8)
VALKEY: Final = redis_backend("valkey", "valkey")


def find_here() -> RedisBinary:
    """The program for tests that need one on this machine, to kill or to cluster it.

    It is of the version that is to be tested, if that is here and not only in a container.

    Raises:
        NotHereError: there is none.
    """
    try:
        return find_redis(REDIS_VERSION[0], *REDIS_VERSION[1])
    except NotHereError:
        return find_redis()
