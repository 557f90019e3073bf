"""``goncordia init``: what it makes works, and what is there stays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from goncordia.cli.loading import load_registry
from goncordia.cli.settings import read_settings

from .conftest import Run

TABLE = '[tool.goncordia]\nurl = "memory://"\nregistry = "first:registry"\n'


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "first", raising=False)
    return tmp_path


def test_in_an_empty_folder(run: Run, empty: Path) -> None:
    result = run("init", "--url", "memory://", "--module", "first")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:3] == [
        "made     pyproject.toml: [tool.goncordia]",
        "made     first.py",
        "next:",
    ]
    assert (empty / "pyproject.toml").read_text() == TABLE
    settings = read_settings()
    assert settings.registry is not None
    assert load_registry(settings.registry).kinds == {"greet"}


@pytest.mark.parametrize("end", ["", "\n"])
def test_beside_what_is_there(run: Run, empty: Path, end: str) -> None:
    before = f"[project]\nname = 'shop'{end}"
    (empty / "pyproject.toml").write_text(before)
    (empty / "first.py").write_text("x = 1\n")
    result = run("init", "--url", "memory://", "--module", "first")
    assert result.stdout.splitlines()[:2] == [
        "added to pyproject.toml: [tool.goncordia]",
        "kept     first.py",
    ]
    assert (empty / "pyproject.toml").read_text() == f"{before.rstrip()}\n\n{TABLE}"
    assert (empty / "first.py").read_text() == "x = 1\n"


def test_again(run: Run, empty: Path) -> None:
    run("init", "--url", "memory://", "--module", "first")
    before = {path: path.read_text() for path in empty.iterdir()}
    result = run("init", "--url", "memory://", "--module", "first")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:2] == [
        "kept     pyproject.toml: it has [tool.goncordia] already",
        "kept     first.py",
    ]
    assert {path: path.read_text() for path in empty.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--module", "a.b"], "module: 'a.b' is not the name of a module, like jobs"),
        (["--module", "../x"], "module: '../x' is not the name of a module"),
        (["--url", "jobs.db"], "url: 'jobs.db' has no scheme"),
    ],
)
def test_what_is_refused(run: Run, empty: Path, words: list[str], told: str) -> None:
    result = run("init", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"goncordia: {told}")
    assert list(empty.iterdir()) == []


def test_a_broken_file_is_left_alone(run: Run, empty: Path) -> None:
    (empty / "pyproject.toml").write_text("[tool")
    result = run("init", "--url", "memory://", "--module", "first")
    assert result.exit_code == 2
    assert result.stderr.startswith("goncordia: pyproject.toml: it is not TOML")
    assert [path.name for path in empty.iterdir()] == ["pyproject.toml"]


def test_an_empty_table_is_one(run: Run, empty: Path) -> None:
    (empty / "pyproject.toml").write_text("[tool.goncordia]\n")
    result = run("init", "--url", "memory://", "--module", "first")
    assert result.stdout.startswith("kept     pyproject.toml")
    assert (empty / "pyproject.toml").read_text() == "[tool.goncordia]\n"


def test_a_file_that_nothing_can_be_added_to(run: Run, empty: Path) -> None:
    (empty / "pyproject.toml").write_text("tool = {}\n")
    result = run("init", "--url", "memory://", "--module", "first")
    assert result.exit_code == 2
    told = "pyproject.toml: [tool.goncordia] cannot follow what defines 'tool' there; "
    assert result.stderr == f"goncordia: {told}write it by hand\n"
    assert [path.name for path in empty.iterdir()] == ["pyproject.toml"]


def test_a_url_that_needs_quotes(run: Run, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goncordia.cli.init.connect", lambda url: None)
    url = 'sqlite:///a"b\\é.db'
    assert run("init", "--url", url, "--module", "first").exit_code == 0
    assert read_settings().url == url
