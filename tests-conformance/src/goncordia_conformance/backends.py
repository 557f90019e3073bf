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
import subprocess
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import pytest

from goncordia_conformance.marks import MISSING
from goncordia_conformance.servers.process import NotHereError, Start

__all__ = ["Backend", "docker_runs", "find_backend", "needed"]

T = TypeVar("T")


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
        return f"GONCORDIA_TEST_{self.name.upper().replace('-', '_')}_DSN"


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
    _missing(backend.name, config, tried)


def needed(name: str, config: pytest.Config, find: Callable[[], T]) -> T:
    """What a test needs on this machine itself, such as a server program to crash.

    Where it is not there the test is skipped, or fails, as with ``find_backend``.

    Args:
        name: of the backend.
        config: pytest's, for ``--require-backends``.
        find: finds it; raises :class:`NotHereError`.
    """
    try:
        return find()
    except NotHereError as error:
        _missing(name, config, [f"no container will do: {error}"])


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


def _missing(name: str, config: pytest.Config, tried: list[str]) -> NoReturn:
    required = str(config.getoption("--require-backends"))
    message = f"{MISSING}: {name}: {'; '.join(tried)}"
    if required == "all" or name in required.split(","):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
