"""``goncordia init``: what it makes works, and what is there stays."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import Result

from goncordia.cli.loading import load_registry
from goncordia.cli.settings import read_settings

from .conftest import Run

TABLE = '[tool.goncordia]\nurl = "memory://"\nregistry = "first:registry"\n'


def steps(result: Result) -> list[str]:
    """The commands that it says come next."""
    _, _, told = result.stdout.partition("next:\n")
    return [line.removeprefix("  ") for line in told.splitlines()]


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
    assert steps(result) == [
        "goncordia migrate",
        """goncordia enqueue greet '{"name": "Ann"}'""",
        "goncordia worker",
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
        "kept     first.py: its Registry must be named registry",
    ]
    assert steps(result) == ["goncordia migrate", "goncordia worker"]
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
    assert len(steps(result)) == 3  # the module is still ours
    assert {path: path.read_text() for path in empty.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--module", "a.b"], "module: 'a.b' is not the name of a module, like jobs"),
        (["--module", "../x"], "module: '../x' is not the name of a module"),
        (["--module", "class"], "module: 'class' is not the name of a module"),
        (["--module", "json"], "module: 'json' is the name of a module that is there already; "),
        (["--module", "typer"], "module: 'typer' is the name of a module that is there already; "),
        (["--url", "jobs.db"], "url: 'jobs.db' does not begin with a scheme"),
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


# ---------------------------------------------------------------- what comes next is what works


@pytest.mark.parametrize("registry", ["app.jobs:registry", "app:all", "typer:registry"])
def test_what_is_set_already_is_kept(run: Run, empty: Path, registry: str) -> None:
    (empty / "pyproject.toml").write_text(
        f"[tool.goncordia]\nurl = 'memory://'\nregistry = '{registry}'\n"
    )
    result = run("init", GONCORDIA_URL="")
    assert result.exit_code == 0
    assert result.stdout.startswith("kept     pyproject.toml: it has [tool.goncordia] already\n")
    assert steps(result) == ["goncordia migrate", "goncordia worker"]
    assert [path.name for path in empty.iterdir()] == ["pyproject.toml"]


def test_what_is_set_otherwise_must_be_said_to_the_commands(
    run: Run, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goncordia.cli.init.connect", lambda url: None)
    (empty / "pyproject.toml").write_text("[tool.goncordia]\nurl = 'memory://'\n")
    words = ["init", "--url", "sqlite:///a b.db", "--module", "first"]
    assert steps(run(*words, GONCORDIA_URL="")) == [
        "export GONCORDIA_URL='sqlite:///a b.db'",
        "goncordia migrate",
        """goncordia enqueue greet '{"name": "Ann"}'""",
        "goncordia worker first:registry",
    ]


def test_what_init_made_is_known_again(run: Run, empty: Path) -> None:
    first = run("init", "--module", "first")
    assert first.exit_code == 0
    again = run("init")
    assert again.stdout.splitlines()[1] == "kept     first.py"
    assert steps(again) == steps(first)
    assert not (empty / "jobs.py").exists()


def test_a_package_is_not_shadowed(run: Run, empty: Path) -> None:
    (empty / "jobs").mkdir()
    (empty / "jobs" / "__init__.py").touch()
    result = run("init")
    assert result.exit_code == 2
    assert result.stderr.startswith("goncordia: module: 'jobs' is the name of a module that is ")
    assert [path.name for path in empty.iterdir()] == ["jobs"]


def test_a_file_that_cannot_be_made(run: Run, empty: Path) -> None:
    (empty / "pyproject.toml").symlink_to(empty / "absent" / "pyproject.toml")
    result = run("init")
    assert result.exit_code == 2
    assert result.stderr == "goncordia: pyproject.toml: cannot be used: No such file or directory\n"


# ---------------------------------------------------------------- passwords


@pytest.fixture
def any_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goncordia.cli.init.connect", lambda url: None)


@pytest.mark.usefixtures("any_url")
@pytest.mark.parametrize(
    ("url", "written", "shown"),
    [
        ("postgresql://u:SECRET@h/d", "postgresql://u@h/d", "postgresql://u:PASSWORD@h/d"),
        (
            "postgresql://u:SECRET:x@SECRET@h1:1,h2:2/d?sslmode=require",
            "postgresql://u@h1:1,h2:2/d?sslmode=require",
            "postgresql://u:PASSWORD@h1:1,h2:2/d?sslmode=require",
        ),
        (
            "postgresql:///d?password=SECRET&user=u&sslPassword=SECRET",
            "postgresql:///d?user=u",
            "postgresql:///d?password=PASSWORD&user=u&sslPassword=PASSWORD",
        ),
        ("redis://:SECRET@h", "redis://@h", "redis://:PASSWORD@h"),
        (
            "postgresql://h/d?password=SECRET",
            "postgresql://h/d",
            "postgresql://h/d?password=PASSWORD",
        ),
    ],
)
def test_a_password_is_not_written(
    run: Run, empty: Path, url: str, written: str, shown: str
) -> None:
    result = run("init", "--url", url, GONCORDIA_URL="")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1] == (
        "left out the password: it has no place in pyproject.toml, but in GONCORDIA_URL"
    )
    assert steps(result)[:2] == [f"export GONCORDIA_URL={shlex.quote(shown)}", "goncordia migrate"]
    assert read_settings().url == written
    assert "SECRET" not in result.output + (empty / "pyproject.toml").read_text()
    # Where the variable has it, nothing needs to be said; it is the URL if none is given.
    (empty / "pyproject.toml").unlink()
    result = run("init", GONCORDIA_URL=url)
    assert steps(result)[0] == "goncordia migrate"
    assert read_settings().url == written


@pytest.mark.usefixtures("any_url", "empty")
@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///jobs.db",
        "sqlite:////var/lib/a:b@c.db",
        "postgresql://u@h:5432/d?application_name=a@b:c",
        "postgresql://h:5432/d?x=",
    ],
)
def test_a_url_without_a_password_is_written_as_it_is(run: Run, url: str) -> None:
    result = run("init", "--url", url, GONCORDIA_URL="")
    assert "password" not in result.stdout
    assert read_settings().url == url
    assert steps(result)[0] == "goncordia migrate"
