from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from goncordia import SyncClient
from goncordia.cli import backend
from goncordia.cli.app import app
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver, MemoryTx

Run = Callable[..., Result]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> MemoryDriver:
    """What every URL of these tests leads to."""
    driver = MemoryDriver(MockClock())
    monkeypatch.setattr(backend, "connect", lambda url: driver)
    return driver


@pytest.fixture
def client(driver: MemoryDriver) -> SyncClient[MemoryTx]:
    return SyncClient(driver)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command with a URL in the environment, and gives code, stdout and stderr."""
    monkeypatch.setenv("GONCORDIA_URL", "memory://")

    def run(*words: str, **env: Any) -> Result:
        return CliRunner().invoke(app, list(words), env=env)

    return run
