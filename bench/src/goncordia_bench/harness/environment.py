"""Environments of their own for peers that cannot share ours, made at the first need."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from goncordia_bench.harness.interpreter import ROOT, NoInterpreterError, found_uv

if sys.platform != "win32":
    import fcntl

__all__ = ["environment", "pinned"]

_REQUIREMENTS: Final = ROOT / "bench" / "requirements"


def pinned(name: str) -> dict[str, str]:
    """The versions that the requirements of that name fix."""
    versions: dict[str, str] = {}
    for line in _text(name).splitlines():
        requirement, _, _ = line.partition(";")
        distribution, _, version = requirement.partition("==")
        versions[distribution.strip()] = version.strip()
    return versions


def _text(name: str) -> str:
    return (_REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")


@functools.cache
def environment(name: str) -> Path:
    """The Python of an environment with those requirements; empty: this one.

    Raises:
        NoInterpreterError: there is no uv, or it could not install them.
    """
    if not name:
        return Path(sys.executable)
    folder = ROOT / ".dev" / f"bench-{name}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    made_from = folder / "made-from"
    with _alone(folder):
        if not made_from.exists() or made_from.read_text(encoding="utf-8") != _text(name):
            _make(name, folder, python)
            made_from.write_text(_text(name), encoding="utf-8")
    return python


@contextmanager
def _alone(folder: Path) -> Generator[None, None, None]:
    """The first process makes the environment while the others wait; Windows has to do without."""
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("a") as file:
        if sys.platform != "win32":
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(name: str, folder: Path, python: Path) -> None:
    uv = found_uv()
    if uv is None:
        raise NoInterpreterError(f"{name}: uv is needed to make an environment for it")
    # As dev.py does: packages from the index, Python from this machine.
    given = {"UV_SYSTEM_CERTS": "1"} | os.environ | {"UV_PYTHON_DOWNLOADS": "never"}
    given.pop("VIRTUAL_ENV", None)
    requirements = _REQUIREMENTS / f"{name}.txt"
    for command in (
        [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
        [uv, "pip", "sync", "--quiet", "--python", str(python), str(requirements)],
    ):
        done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoInterpreterError(f"no environment from {requirements}: {done.stderr.strip()}")
