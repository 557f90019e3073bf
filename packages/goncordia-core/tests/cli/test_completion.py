"""What shells complete: the scripts that are installed, and what these ask for."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from typer.testing import CliRunner

from goncordia import ConfigurationError, SyncClient
from goncordia.cli import backend, completing
from goncordia.cli.app import app
from goncordia.memory import MemoryDriver, MemoryTx

BIN = Path(sys.executable).parent
BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="there is no bash here")


@dataclass
class Mail:
    kind: ClassVar[str] = "mail"


@dataclass
class Report:
    kind: ClassVar[str] = "report"


def answers(line: str) -> list[str]:
    """What is offered for the last word of a line, in the protocol of bash."""
    words = line.split(" ")
    env = {
        "_GONCORDIA_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "GONCORDIA_URL": "memory://",
    }
    result = CliRunner().invoke(app, [], prog_name="goncordia", env=env)
    assert result.stderr == ""
    return result.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("goncordia j", ["jobs"]),
        ("goncordia jobs re", ["retry"]),
        ("goncordia queues ", ["list", "pause", "resume"]),
        ("goncordia jobs list --st", ["--state"]),
        ("goncordia jobs list --state re", ["retryable"]),
        ("goncordia worker --log-level w", ["warning"]),
    ],
)
def test_commands_options_and_fixed_values(line: str, offered: list[str]) -> None:
    assert answers(line) == offered


def test_names_that_the_backend_knows(client: SyncClient[MemoryTx]) -> None:
    assert answers("goncordia jobs list -q ") == []
    mail = client.enqueue(Mail(), queue="post")
    report = client.enqueue(Report(), queue="pressing")
    client.enqueue(Report())
    for command in ("jobs list -q", "jobs cancel --queue", "worker -q", "queues pause"):
        assert answers(f"goncordia {command} p") == ["post", "pressing"], command
    assert answers("goncordia enqueue mail -q p") == ["post", "pressing"]
    for command in ("jobs list --kind", "jobs retry --kind", "enqueue"):
        assert answers(f"goncordia {command} ") == ["mail", "report"], command
    for command in ("jobs show", "jobs cancel", f"jobs retry {mail.id}"):
        assert str(report.id) in answers(f"goncordia {command} {str(report.id)[:30]}"), command


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs that drivers were asked for; there are none."""
    urls: list[str] = []

    def connect(url: str) -> MemoryDriver:
        urls.append(url)
        raise ConfigurationError("url: no such driver")

    monkeypatch.setattr(backend, "connect", connect)
    return urls


def test_the_backend_is_the_one_of_the_line(asked: list[str]) -> None:
    assert answers("goncordia queues pause --url memory://other p") == []
    assert answers("goncordia queues pause p") == []
    assert asked == ["memory://other", "memory://"]


def test_a_backend_that_does_not_answer(
    driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ready() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(driver, "ready", ready)
    monkeypatch.setattr(completing, "PATIENCE", 0.01)
    assert answers("goncordia queues pause p") == []


# ---------------------------------------------------------------- real shells


def shell(name: str, home: Path, script: str, *words: str) -> str:
    """What a script prints in bash, which passes for the shell of this name."""
    assert BASH is not None
    env = {"HOME": str(home), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    command = [name, *words, "-c", script]
    done = subprocess.run(
        command, executable=BASH, env=env, cwd=home, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# A command more, so that the shell stays and is found as the parent.
INSTALL = "goncordia --install-completion && true; echo $?"


@needs_bash
def test_it_is_installed_for_bash_and_completes_there(tmp_path: Path) -> None:
    told = shell("bash", tmp_path, INSTALL)
    assert re.search("completion installed in .*goncordia.sh", told.replace("\n", " "))
    complete = """
shopt -s expand_aliases
. ~/.bashrc
tab() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    $(complete -p goncordia | sed 's/.* -F \\([^ ]*\\) .*/\\1/') goncordia
    echo "${COMPREPLY[*]}"
}
tab goncordia queues re
tab goncordia jobs list --stat
tab goncordia jobs list --state di
tab goncordia jobs list -q x
"""
    assert shell("bash", tmp_path, complete) == "resume\n--state\ndiscarded\n\n"


@needs_bash
@pytest.mark.parametrize(
    ("name", "where", "what"),
    [
        ("zsh", ".zfunc/_goncordia", "#compdef goncordia"),
        ("fish", ".config/fish/completions/goncordia.fish", "complete --command goncordia"),
    ],
)
def test_it_is_installed_for_others(tmp_path: Path, name: str, where: str, what: str) -> None:
    assert "completion installed in" in shell(name, tmp_path, INSTALL)
    script = (tmp_path / where).read_text()
    assert script.startswith(what)
    assert f"_GONCORDIA_COMPLETE=complete_{name}" in script


@pytest.mark.parametrize(
    ("name", "env", "offered"),
    [
        ("zsh", {}, '"retry":"'),
        ("fish", {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}, "retry\t"),
    ],
)
def test_what_others_ask_for(name: str, env: dict[str, str], offered: str) -> None:
    env |= {"_GONCORDIA_COMPLETE": f"complete_{name}", "_TYPER_COMPLETE_ARGS": "goncordia jobs re"}
    result = CliRunner().invoke(app, [], prog_name="goncordia", env=env)
    assert offered in result.stdout
    assert "delete" not in result.stdout
