"""Running a server binary: its port, its user, waiting until it answers, stopping it."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Final, TypeAlias, TypedDict

__all__ = ["NotHereError", "Start", "User", "comes_true", "free_port", "serve", "unprivileged_user"]

Start: TypeAlias = Callable[[], AbstractContextManager[str]]
"""Starts a backend and gives its DSN; stops it at the end. Raises :class:`NotHereError`."""

READY_WITHIN = 60.0
"""Seconds that a server may take to start."""

STOP_WITHIN = 10.0
"""Seconds that a server may take to stop before it is killed."""

POLL = 0.05
QUICKLY = 0.01

PORTS = range(10_000, 30_000)
"""Below the ports that systems give to outgoing connections: one of those could take the port of a
server that is down for a moment, or even connect to itself there."""

RANGES = 8
"""Into so many parts they are divided."""

_chance: Final = random.SystemRandom()
_given: Final[set[int]] = set()

User: TypeAlias = str | None
"""The name of the user that a server runs as; None: ours."""


class NotHereError(Exception):
    """What a backend needs to start is not on this machine; the message says what."""


def free_port() -> int:
    """A port of the loopback interface that is free now, and that nobody else is about to take.

    No process is given one twice, and pytest-xdist's workers have ranges of their own: what is
    started there may not listen yet.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    number = int(worker) if worker.isdigit() else os.getpid()
    ports = PORTS[number % RANGES :: RANGES]
    while True:
        with socket.socket() as probe:
            # Tests seed the common source of chance, all of them alike.
            port = _chance.choice(ports)
            if port in _given:
                continue
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _given.add(port)
            return port


def comes_true(condition: Callable[[], bool], within: float) -> bool:
    """Ask again and again; whether it came true within so many seconds."""
    until = time.monotonic() + within
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(QUICKLY)
    return True


def unprivileged_user(*preferred: str) -> User:
    """Whom a server runs as that refuses to be root: None, ourselves, where we are not root.

    Args:
        preferred: names of users that would do, the best first; ``nobody`` always does.
    """
    if sys.platform == "win32" or os.geteuid() != 0:
        return None
    import pwd

    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in preferred if name in known), "nobody")


class AsUser(TypedDict, total=False):
    """Arguments of :mod:`subprocess`."""

    user: int
    group: int
    extra_groups: list[int]


def as_user(user: User) -> AsUser:
    """The arguments by which :mod:`subprocess` runs a command as this user."""
    if user is None or sys.platform == "win32":
        return {}
    import pwd

    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


@contextmanager
def serve(
    command: Sequence[str],
    ready: Callable[[], bool],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    within: float = READY_WITHIN,
    user: User = None,
) -> Generator[subprocess.Popen[bytes], None, None]:
    """Run a server binary, and stop it at the end, also after a failure.

    Args:
        command: the binary and its arguments.
        ready: asks the server whether it answers; called until it does.
        log: where its output goes; shown when it does not start.
        env: its environment; None: ours.
        within: seconds that it may take to start.
        user: whom it runs as.

    Raises:
        NotHereError: there is no such binary.
        RuntimeError: it did not start in time, or ended; with the end of its output.
    """
    binary = shutil.which(command[0])
    if binary is None:
        raise NotHereError(f"there is no {command[0]!r} on this machine")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [binary, *command[1:]],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            **as_user(user),
        )
        try:
            _wait(process, ready, log, within)
            yield process
        finally:
            _stop(process, output)


def _wait(
    process: subprocess.Popen[bytes], ready: Callable[[], bool], log: Path, within: float
) -> None:
    deadline = time.monotonic() + within
    while process.poll() is None and time.monotonic() < deadline:
        if ready():
            return
        time.sleep(POLL)
    what = "is not ready" if process.returncode is None else f"ended with {process.returncode}"
    raise RuntimeError(f"the server {what}; its last words:\n{log.read_text()[-2000:]}")


def _stop(process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_WITHIN)
    except subprocess.TimeoutExpired:
        output.write(b"\n(killed: it did not stop)\n")
        process.kill()
        process.wait()
