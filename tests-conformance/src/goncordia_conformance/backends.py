"""Where the backends of tests come from.

In this order: a DSN in the environment (``GONCORDIA_TEST_<NAME>_DSN``), a container where Docker
runs, a server binary on this machine. What is found nowhere is skipped and named at the end of the
run; with ``--require-backends`` it is a failure.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

import pytest

from goncordia_conformance.marks import MISSING

__all__ = ["Backend", "NotHereError", "docker_runs", "find_backend", "free_port", "serve"]

Start: TypeAlias = Callable[[], AbstractContextManager[str]]
"""Starts a backend and gives its DSN; stops it at the end. Raises :class:`NotHereError`."""

READY_WITHIN = 60.0
"""Seconds that a server may take to start."""

STOP_WITHIN = 10.0
"""Seconds that a server may take to stop before it is killed."""

POLL = 0.05


class NotHereError(Exception):
    """What a backend needs to start is not on this machine; the message says what."""


@dataclass(frozen=True)
class Backend:
    """A backend that tests need.

    Attributes:
        name: as in ``--require-backends`` and in the variable's name, such as ``"pg"``.
        container: starts it by testcontainers.
        server: starts it from a binary on this machine.
    """

    name: str
    container: Start | None = None
    server: Start | None = None

    @property
    def variable(self) -> str:
        """The variable that holds its DSN."""
        return f"GONCORDIA_TEST_{self.name.upper()}_DSN"


@contextmanager
def find_backend(
    backend: Backend, config: pytest.Config, environ: Mapping[str, str] = os.environ
) -> Generator[str, None, None]:
    """Find or start a backend; for a fixture of session scope.

    ::

        @pytest.fixture(scope="session")
        def dsn(request):
            with find_backend(POSTGRES, request.config) as dsn:
                yield dsn

    Args:
        backend: which.
        config: pytest's, for ``--require-backends``.
        environ: where DSNs are looked for.
    """
    if dsn := environ.get(backend.variable):
        yield dsn
        return
    tried = [f"{backend.variable} is not set"]
    for start in (_container(backend, tried), backend.server):
        if start is None:
            continue
        try:
            started = start()
            dsn = started.__enter__()
        except NotHereError as error:
            tried.append(str(error))
            continue
        try:
            yield dsn
        finally:
            started.__exit__(None, None, None)
        return
    _missing(backend, config, tried)


def _container(backend: Backend, tried: list[str]) -> Start | None:
    if backend.container is None:
        return None
    if importlib.util.find_spec("testcontainers") is None:
        tried.append("goncordia-conformance[testcontainers] is not installed")
    elif not docker_runs():
        tried.append("Docker does not run here")
    else:
        return backend.container
    return None


@functools.cache
def docker_runs() -> bool:
    """Whether there is a Docker to start containers with."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    asked = subprocess.run(
        [docker, "info"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    return asked.returncode == 0


def _missing(backend: Backend, config: pytest.Config, tried: list[str]) -> None:
    required = str(config.getoption("--require-backends"))
    message = f"{MISSING}: {backend.name}: {'; '.join(tried)}"
    if required == "all" or backend.name in required.split(","):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


# ---------------------------------------------------------------- servers of our own


def free_port() -> int:
    """A port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serve(
    command: Sequence[str],
    ready: Callable[[], bool],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    within: float = READY_WITHIN,
) -> Generator[subprocess.Popen[bytes], None, None]:
    """Run a server binary, and stop it at the end, also after a failure.

    Args:
        command: the binary and its arguments.
        ready: asks the server whether it answers; called until it does.
        log: where its output goes; shown when it does not start.
        env: its environment; None: ours.
        within: seconds that it may take to start.

    Raises:
        NotHereError: there is no such binary.
        RuntimeError: it did not start in time, or ended; with the end of its output.
    """
    binary = shutil.which(command[0])
    if binary is None:
        raise NotHereError(f"there is no {command[0]!r} on this machine")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [binary, *command[1:]], stdout=output, stderr=subprocess.STDOUT, env=env
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
