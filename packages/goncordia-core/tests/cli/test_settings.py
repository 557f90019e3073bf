"""``[tool.goncordia]`` in pyproject.toml: what it sets, and what of it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goncordia.cli import backend
from goncordia.memory import MemoryDriver

from .conftest import Run


@pytest.fixture
def urls(driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs that drivers were asked for."""
    found: list[str] = []

    def connect(url: str) -> MemoryDriver:
        found.append(url)
        return driver

    monkeypatch.setattr(backend, "connect", connect)
    return found


def test_the_option_wins_then_the_environment(run: Run, urls: list[str], here: Path) -> None:
    (here / "pyproject.toml").write_text("[tool.goncordia]\nurl = 'memory://file'\n")
    assert run("migrate", "--url", "memory://option").exit_code == 0
    assert run("migrate").exit_code == 0
    assert run("migrate", GONCORDIA_URL="").exit_code == 0
    assert urls == ["memory://option", "memory://", "memory://file"]


@pytest.mark.usefixtures("driver")
def test_the_registry(run: Run, here: Path, pools: list[tuple[Any, Any, dict[str, Any]]]) -> None:
    absent = run("worker")
    assert absent.exit_code == 2
    assert absent.stderr == (
        "goncordia: registry: none is given; name one, such as app:registry, here or as registry "
        "in [tool.goncordia] of pyproject.toml\n"
    )
    (here / "pyproject.toml").write_text("[tool.goncordia]\nregistry = 'good_app:registry'\n")
    assert run("worker").exit_code == 0
    assert pools[0][1].kinds == {"mail"}
    assert run("worker", "absent_app:r").exit_code == 2
    assert run("doctor").exit_code == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool", "pyproject.toml: it is not TOML: Expected ']'"),
        ("[tool]\ngoncordia = 5", "pyproject.toml: tool.goncordia: 5 is not a table"),
        ("tool = 'x'", "pyproject.toml: tool: 'x' is not a table"),
        ("[tool.goncordia]\nulr = 'x'", "pyproject.toml: tool.goncordia: "),
        ("[tool.goncordia]\nurl = 5", "pyproject.toml: tool.goncordia.url: 5 is not a string"),
        ("[tool.goncordia]\nurl = ''", "pyproject.toml: tool.goncordia.url: '' is not a string"),
    ],
)
def test_a_broken_table(run: Run, urls: list[str], here: Path, text: str, told: str) -> None:
    (here / "pyproject.toml").write_text(text)
    result = run("migrate", GONCORDIA_URL="")
    assert (result.exit_code, result.stdout, urls) == (2, "", [])
    assert result.stderr.startswith(f"goncordia: {told}")
    assert len(result.stderr.splitlines()) == 1
    # Who says all that is needed does not ask the file.
    assert run("migrate", "--url", "memory://").exit_code == 0


@pytest.mark.parametrize("text", ["", "[project]\nname = 'x'\n", "[tool.goncordia]\n", "tool = {}"])
def test_nothing_is_set(run: Run, urls: list[str], here: Path, text: str) -> None:
    (here / "pyproject.toml").write_text(text)
    assert "url: none is given" in run("migrate", GONCORDIA_URL="").stderr
    assert urls == []


def test_no_text(run: Run, here: Path) -> None:
    (here / "pyproject.toml").write_bytes(b"\xff")
    assert "pyproject.toml: it is not TOML: " in run("migrate", GONCORDIA_URL="").stderr
    (here / "pyproject.toml").unlink()
    (here / "pyproject.toml").mkdir()
    assert "pyproject.toml: cannot be read: " in run("migrate", GONCORDIA_URL="").stderr
