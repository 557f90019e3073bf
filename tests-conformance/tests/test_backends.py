"""Where backends come from, with a web server in the place of a database."""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from goncordia_conformance import backends
from goncordia_conformance.backends import Backend, find_backend, needed
from goncordia_conformance.servers.process import NotHereError, free_port, serve

pytest_plugins = ["pytester"]


class Config:
    """As much of pytest's as is asked."""

    def __init__(self, required: str = "") -> None:
        self.required = required

    def getoption(self, name: str) -> str:
        assert name == "--require-backends"
        return self.required


def find(backend: Backend, required: str = "", **environ: str) -> Any:
    config: Any = Config(required)
    return find_backend(backend, config, environ)


@contextmanager
def web(log: Path) -> Generator[str, None, None]:
    port = free_port()
    url = f"http://127.0.0.1:{port}/"

    def ready() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return True
        except OSError:
            return False

    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    with serve(command, ready, log=log):
        yield url


@contextmanager
def nowhere() -> Generator[str, None, None]:
    if not Path("/no/such/mysqld").exists():
        raise NotHereError("there is no 'mysqld' on this machine")
    yield "mysql://"


@contextmanager
def contained() -> Generator[str, None, None]:
    yield "container://"


def test_a_dsn_in_the_environment_comes_first() -> None:
    backend = Backend("pg", container=contained, server=nowhere)
    with find(backend, GONCORDIA_TEST_PG_DSN="postgresql://x") as dsn:
        assert dsn == "postgresql://x"


def test_then_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "docker_runs", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    with find(Backend("pg", container=contained, server=nowhere)) as dsn:
        assert dsn == "container://"


def test_then_a_server_of_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "docker_runs", lambda: False)
    backend = Backend("web", container=contained, server=lambda: web(tmp_path / "log"))
    with find(backend) as dsn, urllib.request.urlopen(dsn, timeout=5) as answer:
        assert answer.status == 200
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(dsn, timeout=5)


@pytest.mark.parametrize("required", ["", "mysql,redis"])
def test_what_is_missing_is_skipped(required: str) -> None:
    with (
        pytest.raises(pytest.skip.Exception) as caught,
        find(Backend("pg", None, nowhere), required),
    ):
        pass
    assert "MISSING BACKEND: pg" in str(caught.value)
    assert "GONCORDIA_TEST_PG_DSN is not set" in str(caught.value)
    assert "no 'mysqld' on this machine" in str(caught.value)


@pytest.mark.parametrize("required", ["all", "pg", "mysql,pg"])
def test_what_is_required_fails(required: str) -> None:
    with (
        pytest.raises(pytest.fail.Exception, match="MISSING BACKEND: pg"),
        find(Backend("pg"), required),
    ):
        pass


def find_nothing() -> str:
    raise NotHereError("there is no 'mysqld' on this machine")


@pytest.mark.parametrize(("required", "outcome"), [("", pytest.skip), ("pg,mysql", pytest.fail)])
def test_what_must_be_here_itself(required: str, outcome: Any) -> None:
    config: Any = Config(required)
    assert needed("mysql", config, lambda: "it") == "it"
    with pytest.raises(outcome.Exception, match=r"MISSING BACKEND: mysql: .*no 'mysqld' on this"):
        needed("mysql", config, find_nothing)


def test_a_variable_has_no_dash() -> None:
    assert Backend("redis-cluster").variable == "GONCORDIA_TEST_REDIS_CLUSTER_DSN"


def test_without_docker_or_the_extra_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Backend("pg", container=contained)
    monkeypatch.setattr(backends, "docker_runs", lambda: False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    with pytest.raises(pytest.skip.Exception, match="Docker does not run"), find(backend):
        pass
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match="testcontainers"), find(backend):
        pass


def test_a_server_that_ends_is_told_with_its_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('out of memory'); raise SystemExit(3)"]
    with (
        pytest.raises(RuntimeError, match=r"ended with 3.*\n.*out of memory"),
        serve(command, lambda: False, log=tmp_path / "log"),
    ):
        pass


def test_a_server_that_is_not_ready_is_stopped(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with (
        pytest.raises(RuntimeError, match="not ready"),
        serve(command, lambda: False, log=tmp_path / "log", within=0.1),
    ):
        pass


def test_a_binary_that_is_not_there(tmp_path: Path) -> None:
    with (
        pytest.raises(NotHereError, match="no-such-server"),
        serve(["no-such-server"], lambda: True, log=tmp_path / "log"),
    ):
        pass
