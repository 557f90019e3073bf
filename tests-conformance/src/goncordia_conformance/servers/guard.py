"""Servers that live exactly as long as somebody needs them, whatever becomes of those who do.

A server is run by a process of its own, its guard. Whoever needs the server holds a connection to
the guard, which the system closes when that process ends, killed or not. When nobody holds one any
more, the guard stops the server, removes its files and ends. So no kill of a test run leaves a
server behind, and all processes of a run can share one.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from goncordia_conformance.servers.process import NotHereError, Start

if sys.platform != "win32":
    import fcntl

__all__ = ["guarded", "shared"]

RUN = "PYTEST_XDIST_TESTRUNUID"
"""The variable in which pytest-xdist tells its workers apart from those of other runs."""

PATIENCE = 180.0
"""Seconds that a guard may take to answer: a container's image may have to be fetched."""


@contextmanager
def guarded(start: Start) -> Generator[str, None, None]:
    """Run a server in a guard process of its own, for this process alone.

    Args:
        start: what runs it; importable and picklable, since it is called by the guard.

    Raises:
        NotHereError: what it needs is not on this machine.
        RuntimeError: it did not start; with its last words.
    """
    if sys.platform == "win32":  # it has no pipes that can be waited for
        with start() as dsn:
            yield dsn
        return
    guard, told = _launch(start, keep=None)
    try:
        yield told["dsn"]
    finally:
        _release(guard)


@contextmanager
def shared(start: Start, name: str) -> Generator[str, None, None]:
    """As :func:`guarded`, but one server for all pytest-xdist workers of a run.

    Args:
        start: see there.
        name: what tells this server from others of the run.

    Raises:
        NotHereError: what it needs is not on this machine.
        RuntimeError: it did not start; with its last words.
    """
    run = os.environ.get(RUN)
    if run is None or sys.platform == "win32":
        with guarded(start) as dsn:
            yield dsn
        return
    keep = Path(tempfile.gettempdir()) / f"goncordia-{os.getuid()}-{run}-{name}"
    guard: subprocess.Popen[bytes] | None = None
    with keep.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the first one starts it while the others wait here
        if (found := _join(keep)) is None:
            guard, told = _launch(start, keep)
            found = _hold(told["port"])
    assert found is not None, "a guard that has just answered is there"
    lease, dsn = found
    with lease:
        if guard is not None:
            _release(guard, wait=False)
        yield dsn


def _launch(start: Start, keep: Path | None) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """Start a guard; its pipe, which is the first hold on it, and what it tells."""
    guard = subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert guard.stdin is not None
    assert guard.stdout is not None
    order = {
        "path": sys.path,
        "start": base64.b64encode(pickle.dumps(start)).decode(),
        "keep": keep and str(keep),
    }
    guard.stdin.write(json.dumps(order).encode() + b"\n")
    guard.stdin.flush()
    told: dict[str, Any] = json.loads(guard.stdout.readline() or b'{"failed": "it was killed"}')
    if "dsn" in told:
        return guard, told
    _release(guard)
    if "missing" in told:
        raise NotHereError(told["missing"])
    raise RuntimeError(f"the server did not start:\n{told['failed']}")


def _release(guard: subprocess.Popen[bytes], *, wait: bool = True) -> None:
    """Let go of a guard; with ``wait``, until the server is gone."""
    assert guard.stdin is not None
    assert guard.stdout is not None
    guard.stdin.close()
    if wait:
        guard.stdout.read()  # to its end: the guard closes it last
    guard.stdout.close()
    guard.wait()


def _join(keep: Path) -> tuple[socket.socket, str] | None:
    """A hold on the guard that noted its port there, and the server's DSN."""
    text = keep.read_text()
    return _hold(int(text)) if text else None


def _hold(port: int) -> tuple[socket.socket, str] | None:
    lease = socket.socket()
    try:
        lease.settimeout(PATIENCE)
        lease.connect(("127.0.0.1", port))
        with lease.makefile("rb") as answer:
            if dsn := answer.readline().decode().strip():
                return lease, dsn
    except OSError:
        pass
    lease.close()
    return None


# ---------------------------------------------------------------- in the guard


class _Guard:
    """The server's keeper."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        """Where it can be asked for a hold."""

    def watch(self) -> None:
        """Return when nobody holds on any more; the first to hold is our standard input."""
        with selectors.DefaultSelector() as holds, self._door:
            holds.register(self._door, selectors.EVENT_READ)
            holds.register(sys.stdin, selectors.EVENT_READ)
            while len(holds.get_map()) > 1:
                for key, _ in holds.select():
                    if key.fileobj is self._door:
                        hold, _ = self._door.accept()
                        holds.register(hold, selectors.EVENT_READ)
                        with suppress(OSError):  # it may be gone again
                            hold.sendall(self._dsn.encode() + b"\n")
                    elif _has_left(key.fd):
                        holds.unregister(key.fileobj)


def _has_left(fd: int) -> bool:
    """Whether there is nobody any more at the other end."""
    try:
        return not os.read(fd, 1024)
    except OSError:
        return True


def _say(**words: Any) -> None:
    os.write(1, json.dumps(words).encode() + b"\n")


def _end(*_: object) -> NoReturn:
    raise SystemExit(1)


def _keep(start: Start, keep: Path | None) -> None:
    try:
        with start() as dsn:
            guard = _Guard(dsn)
            if keep is not None:
                keep.write_text(str(guard.port))
            _say(dsn=dsn, port=guard.port)
            guard.watch()
    except NotHereError as error:
        _say(missing=str(error))
    except Exception:  # noqa: BLE001 - it is told, whatever it is
        _say(failed=traceback.format_exc())
    finally:
        if keep is not None:
            keep.unlink(missing_ok=True)


def main() -> None:
    """Do as told on standard input, apart from the process that told it, and from its terminal."""
    order = sys.stdin.buffer.readline()
    if sys.platform == "win32":
        raise NotImplementedError
    if os.fork():
        os._exit(0)  # so that nobody has to wait for the guard's end
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    told = json.loads(order)
    sys.path[:] = told["path"]
    start: Start = pickle.loads(base64.b64decode(told["start"]))  # noqa: S301 - ours
    _keep(start, told["keep"] and Path(told["keep"]))


if __name__ == "__main__":
    main()
