from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from goncordia import SyncClient
from goncordia.cli import backend
from goncordia.cli import worker as worker_module
from goncordia.cli.app import app
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver, MemoryTx

Run = Callable[..., Result]

APP = """
from dataclasses import dataclass
from typing import ClassVar
from goncordia import Job, Registry

@dataclass
class Mail:
    kind: ClassVar[str] = "mail"
    to: str

registry = Registry()
other = 5

class Box:
    inner = registry

@registry.worker(Mail)
async def mail(job: Job[Mail]) -> None:
    print("to", job.args.to)
"""


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


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with modules in it, as the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, text in {
        "good_app": APP,
        "raises_app": "def read():\n    raise KeyError('SECRET')\nread()\n",
        "ends_app": "raise SystemExit(0)",
        "syntax_app": "def (",
        "needs_app": "import no_such_library",
        "twice_app": APP + "\nregistry.worker(Mail)(mail)\n",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    for name in [name for name in sys.modules if name.endswith("_app")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


class FakePool:
    made: list[tuple[Any, Any, dict[str, Any]]]

    def __init__(self, driver: Any, registry: Any, **settings: Any) -> None:
        self.made.append((driver, registry, settings))

    async def run(self) -> None:
        pass


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, dict[str, Any]]]:
    FakePool.made = []
    monkeypatch.setattr(worker_module, "WorkerPool", FakePool)
    return FakePool.made
